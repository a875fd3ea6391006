//! What Pod templates get so that the Pods are counted (`docs/accounting.md`, AM0 to AM4).
//!
//! A JobSet is marked when it is created. A stored one keeps its mark or its absence: JobSet lets labels of a suspended
//! template change, and nothing lets a finalizer change. An update takes our labels from what is stored, since a
//! finalizer without a label would be invisible to the program that counts.

use std::time::Duration;

use k8s_openapi::{api::core::v1::PodTemplateSpec, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trainjob_api::{
    JobSet,
    jobset::ReplicatedJob,
    lifecycle::v1alpha1::{
        ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
    },
};

/// For how long a Lease that stands still is still believed (AM2).
pub const LEASE_BELIEVED: Duration = Duration::from_mins(1);

/// `accounting.mode` (AM0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
pub enum Mode {
    /// No object has anything of ours.
    #[default]
    Off,
    /// Labels: Pods are counted, and none waits for us.
    Observe,
    /// Labels and the finalizer: no Pod goes uncounted.
    Exact,
}

/// What decides whether a new JobSet is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accounting {
    /// What is configured.
    pub mode: Mode,
    /// Whether somebody will count.
    pub program: Program,
}

/// Whether a program will count what is marked (AM2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Program {
    /// This process is too young to know whether the Lease changes, which has a holder.
    Young {
        /// Whether somebody holds the Lease.
        held: bool,
    },
    /// The Lease was seen to change so long ago.
    Changed(Duration),
    /// No change of it was seen.
    #[default]
    Silent,
}

impl Program {
    /// Whether it lives, as far as anybody knows.
    #[must_use]
    pub fn lives(self) -> bool {
        match self {
            Self::Young { held } => held,
            Self::Changed(ago) => ago < LEASE_BELIEVED,
            Self::Silent => false,
        }
    }
}

/// What marking a new JobSet came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marking {
    /// Nothing of ours is in it, because nothing is to be.
    Off,
    /// It is marked.
    Marked,
    /// It is not, because no program lives: the event `AccountingSkipped` says so (AM2).
    Skipped,
}

/// Marks a JobSet that is created for a TrainJob, after it has dropped what is ours from what users wrote (AM1). Of a
/// TrainJob that is managed elsewhere no JobSet is made, so nothing is marked (AM4).
pub fn mark_new(job_set: &mut JobSet, accounting: Accounting, name: &str, uid: &str) -> Marking {
    let Accounting { mode, program } = accounting;
    if mode == Mode::Off {
        // Not one byte differs from what it would be without this feature (A13).
        return Marking::Off;
    }
    let lives = program.lives();
    for template in templates_mut(job_set) {
        if let Some(metadata) = &mut template.metadata {
            strip(metadata);
        }
        if lives {
            mark(template.metadata.get_or_insert_default(), mode, name, uid);
        }
    }
    if lives { Marking::Marked } else { Marking::Skipped }
}

fn mark(metadata: &mut ObjectMeta, mode: Mode, name: &str, uid: &str) {
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(TRAIN_JOB_NAME_LABEL.into(), name.into());
    labels.insert(TRAIN_JOB_UID_LABEL.into(), uid.into());
    if mode == Mode::Exact {
        metadata.finalizers.get_or_insert_default().push(ACCOUNTING_FINALIZER.into());
    }
}

/// Gives a JobSet that is built for an update what the stored one has of ours, and nothing else of ours (AM3). So neither
/// a mark nor its absence is a difference.
///
/// Half a mark is made whole: an operator that does not know ours replaces all labels and keeps the finalizer.
pub fn keep_mark(built: &mut JobSet, stored: &JobSet, name: &str, uid: &str) {
    for job in built.spec.replicated_jobs.iter_mut().flatten() {
        let mut known = stored.spec.replicated_jobs.iter().flatten();
        let known = known.find(|known| known.name == job.name).and_then(template);
        let (Some(template), Some(known)) = (template_mut(job), known) else { continue };
        let nothing = ObjectMeta::default();
        let known = known.metadata.as_ref().unwrap_or(&nothing);
        let built = template.metadata.as_ref().unwrap_or(&nothing);
        // If users wrote our finalizer while accounting was off, it marks nothing.
        let whole = (is_held(known) && !is_held(built)).then(|| labelled(known, name, uid));
        let known = whole.as_ref().unwrap_or(known);
        if ours(built) != ours(known) {
            keep(template.metadata.get_or_insert_default(), known);
        }
    }
}

/// The same with those of our labels that it lacks.
fn labelled(metadata: &ObjectMeta, name: &str, uid: &str) -> ObjectMeta {
    let mut metadata = metadata.clone();
    let labels = metadata.labels.get_or_insert_default();
    for (key, value) in [(TRAIN_JOB_NAME_LABEL, name), (TRAIN_JOB_UID_LABEL, uid)] {
        labels.entry(key.into()).or_insert_with(|| value.into());
    }
    metadata
}

/// What of it is ours.
fn ours(metadata: &ObjectMeta) -> [Option<&str>; 4] {
    let label = |key| metadata.labels.as_ref()?.get(key).map(String::as_str);
    let annotation = metadata.annotations.as_ref().and_then(|all| all.get(ACCOUNTED_ANNOTATION));
    let finalizer = is_held(metadata).then_some(ACCOUNTING_FINALIZER);
    let [name, uid] = [TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL].map(label);
    [name, uid, annotation.map(String::as_str), finalizer]
}

fn keep(metadata: &mut ObjectMeta, known: &ObjectMeta) {
    strip(metadata);
    let [name, uid, accounted, finalizer] = ours(known);
    for (key, value) in [(TRAIN_JOB_NAME_LABEL, name), (TRAIN_JOB_UID_LABEL, uid)] {
        if let Some(value) = value {
            metadata.labels.get_or_insert_default().insert(key.into(), value.into());
        }
    }
    if let Some(value) = accounted {
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(ACCOUNTED_ANNOTATION.into(), value.into());
    }
    if let Some(finalizer) = finalizer {
        let finalizers = metadata.finalizers.get_or_insert_default();
        finalizers.push(finalizer.into());
        // In another order it would be a change.
        let known = known.finalizers.as_deref().unwrap_or_default();
        finalizers.sort_by_key(|it| known.iter().position(|known| known == it));
    }
}

/// Drops what is ours.
fn strip(metadata: &mut ObjectMeta) {
    for label in [TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL] {
        metadata.labels.as_mut().and_then(|labels| labels.remove(label));
    }
    metadata.annotations.as_mut().and_then(|all| all.remove(ACCOUNTED_ANNOTATION));
    if let Some(finalizers) = &mut metadata.finalizers {
        finalizers.retain(|finalizer| finalizer != ACCOUNTING_FINALIZER);
    }
}

/// Whether a suspended JobSet is made anew without the mark (AM3): accounting is off, and it never ran, so that nothing
/// is lost.
#[must_use]
pub fn is_remade(mode: Mode, stored: &JobSet, never_ran: bool) -> bool {
    let metadata = || templates(stored).filter_map(|template| template.metadata.as_ref());
    mode == Mode::Off && never_ran && metadata().any(is_held)
}

fn is_held(metadata: &ObjectMeta) -> bool {
    metadata.finalizers.iter().flatten().any(|finalizer| finalizer == ACCOUNTING_FINALIZER)
}

fn templates(job_set: &JobSet) -> impl Iterator<Item = &PodTemplateSpec> {
    job_set.spec.replicated_jobs.iter().flatten().filter_map(template)
}

fn templates_mut(job_set: &mut JobSet) -> impl Iterator<Item = &mut PodTemplateSpec> {
    job_set.spec.replicated_jobs.iter_mut().flatten().filter_map(template_mut)
}

fn template(job: &ReplicatedJob) -> Option<&PodTemplateSpec> {
    job.template.spec.as_ref().map(|spec| &spec.template)
}

fn template_mut(job: &mut ReplicatedJob) -> Option<&mut PodTemplateSpec> {
    job.template.spec.as_mut().map(|spec| &mut spec.template)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const LIVES: Program = Program::Changed(Duration::ZERO);

    /// A JobSet whose only template has this metadata.
    fn of(metadata: &Value) -> JobSet {
        let pod = json!({"metadata": metadata, "spec": {"containers": []}});
        let jobs = json!([{"name": "node", "template": {"spec": {"template": pod}}}]);
        serde_json::from_value(json!({"metadata": {}, "spec": {"replicatedJobs": jobs}})).unwrap()
    }

    fn plain() -> JobSet {
        of(&json!({"labels": {"team": "a"}, "finalizers": ["x/y"]}))
    }

    fn marked(finalizers: &[&str]) -> JobSet {
        let labels = json!({"team": "a", TRAIN_JOB_NAME_LABEL: "llm", TRAIN_JOB_UID_LABEL: "u1"});
        of(&json!({"labels": labels, "finalizers": finalizers}))
    }

    fn new(mode: Mode, program: Program, job_set: &mut JobSet) -> Marking {
        mark_new(job_set, Accounting { mode, program }, "llm", "u1")
    }

    #[test]
    fn am0_the_mode_says_what_is_added() {
        for (mode, marking, expected) in [
            (Mode::Off, Marking::Off, plain()),
            (Mode::Observe, Marking::Marked, marked(&["x/y"])),
            (Mode::Exact, Marking::Marked, marked(&["x/y", ACCOUNTING_FINALIZER])),
        ] {
            let mut job_set = plain();
            assert_eq!((new(mode, LIVES, &mut job_set), job_set), (marking, expected), "{mode:?}");
        }
    }

    #[test]
    fn am1_what_users_forge_is_dropped_first() {
        let forged = || {
            let labels = json!({"team": "a", TRAIN_JOB_UID_LABEL: "forged"});
            let annotations = json!({ACCOUNTED_ANNOTATION: "forged", "other": "kept"});
            let finalizers = [ACCOUNTING_FINALIZER];
            of(&json!({"labels": labels, "annotations": annotations, "finalizers": finalizers}))
        };
        for (mode, program, finalizers, lives) in [
            (Mode::Exact, LIVES, vec![ACCOUNTING_FINALIZER], true),
            (Mode::Observe, LIVES, vec![], true),
            (Mode::Exact, Program::Silent, vec![], false),
        ] {
            let mut job_set = forged();
            new(mode, program, &mut job_set);
            let metadata = templates(&job_set).next().unwrap().metadata.clone().unwrap();
            assert_eq!(metadata.finalizers.unwrap(), finalizers, "{mode:?}");
            assert_eq!(metadata.annotations.unwrap().len(), 1);
            let uid = metadata.labels.unwrap().get(TRAIN_JOB_UID_LABEL).cloned();
            assert_eq!(uid.as_deref(), lives.then_some("u1"));
        }
    }

    #[test]
    fn am2_without_a_program_that_lives_nothing_new_is_marked() {
        let seconds = Duration::from_secs;
        for (program, lives) in [
            (Program::Young { held: true }, true),
            (Program::Young { held: false }, false),
            (Program::Changed(seconds(59)), true),
            (Program::Changed(seconds(60)), false),
            (Program::Silent, false),
        ] {
            let mut job_set = plain();
            let marking = new(Mode::Exact, program, &mut job_set);
            let expected = if lives { Marking::Marked } else { Marking::Skipped };
            assert_eq!(marking, expected, "{program:?}");
            assert_eq!(job_set == plain(), !lives, "{program:?}");
        }
    }

    #[test]
    fn am3_a_stored_job_set_keeps_its_mark_or_its_absence() {
        for stored in
            [marked(&[ACCOUNTING_FINALIZER, "x/y"]), marked(&[]), plain(), of(&json!(null))]
        {
            let forged = json!({"labels": {"team": "b", TRAIN_JOB_UID_LABEL: "forged"}});
            for built in [forged, json!({"finalizers": ["x/y"]}), json!(null)] {
                let mut kept = of(&built);
                keep_mark(&mut kept, &stored, "llm", "u1");
                let nothing = ObjectMeta::default();
                let metadata = |of| {
                    let template: &PodTemplateSpec = templates(of).next().unwrap();
                    template.metadata.clone().unwrap_or(nothing.clone())
                };
                let (kept, stored) = (metadata(&kept), metadata(&stored));
                assert_eq!(ours(&kept), ours(&stored), "{built}");
                if kept.finalizers.iter().flatten().count() == 2 {
                    assert_eq!(kept.finalizers, stored.finalizers, "their order is no difference");
                }
            }
        }
    }

    #[test]
    fn am3_a_finalizer_without_our_labels_gets_them_back() {
        let stripped = of(&json!({"labels": {"team": "a"}, "finalizers": [ACCOUNTING_FINALIZER]}));
        let mut kept = of(&json!({"labels": {"team": "b"}}));
        keep_mark(&mut kept, &stripped, "llm", "u1");
        let labels = json!({"team": "b", TRAIN_JOB_NAME_LABEL: "llm", TRAIN_JOB_UID_LABEL: "u1"});
        assert_eq!(kept, of(&json!({"labels": labels, "finalizers": [ACCOUNTING_FINALIZER]})));

        // With accounting off, a runtime may have it.
        let mut forged = stripped.clone();
        keep_mark(&mut forged, &stripped, "llm", "u1");
        assert_eq!(forged, stripped);
    }

    #[test]
    fn am3_only_what_never_ran_is_made_anew_when_accounting_is_switched_off() {
        let held = marked(&[ACCOUNTING_FINALIZER]);
        for (mode, stored, never_ran, expected) in [
            (Mode::Off, &held, true, true),
            (Mode::Off, &held, false, false),
            (Mode::Off, &marked(&[]), true, false),
            (Mode::Observe, &held, true, false),
            (Mode::Exact, &held, true, false),
        ] {
            assert_eq!(is_remade(mode, stored, never_ran), expected, "{mode:?}");
        }
    }

    #[test]
    fn a13_off_leaves_every_template_as_it_is() {
        let forged = marked(&[ACCOUNTING_FINALIZER]);
        let mut job_set = forged.clone();
        assert_eq!(new(Mode::Off, LIVES, &mut job_set), Marking::Off);
        keep_mark(&mut job_set, &forged, "llm", "u1");
        assert_eq!(job_set, forged);
    }
}
