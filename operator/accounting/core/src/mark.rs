//! What the operator adds to the Pod templates of a JobSet that it creates (AM0 to AM4).
//!
//! A stored JobSet keeps its mark or its absence: JobSet lets labels of a suspended template change, and nothing lets a
//! finalizer change. An update takes our labels from what is stored, since a finalizer without a label would be
//! invisible to the program.

use std::{collections::BTreeMap, time::Duration};

use trainjob_api::lifecycle::v1alpha1::{
    ACCOUNTED_ANNOTATION, ACCOUNTING_FINALIZER, TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL,
};

use crate::holding::LEASE_BELIEVED;

/// `accounting.mode` (AM0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// No object has anything of ours.
    #[default]
    Off,
    /// Labels: Pods are counted, and none waits for us.
    Observe,
    /// Labels and the finalizer: no Pod goes uncounted.
    Exact,
}

/// Whether a program will count what is marked (AM2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// This process is too young to know whether the Lease changes, which has a holder.
    Young {
        /// Whether somebody holds the Lease.
        held: bool,
    },
    /// The Lease was seen to change so long ago.
    Changed(Duration),
    /// No change of it was seen.
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

/// The metadata of a Pod template that marking changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
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

/// Marks the template of a JobSet that is created for a TrainJob, after it has dropped what is ours from what users
/// wrote (AM1). Of a TrainJob that is managed elsewhere no JobSet is made, so nothing is marked (AM4).
pub fn mark_new(
    template: &mut Template,
    mode: Mode,
    program: Program,
    name: &str,
    uid: &str,
) -> Marking {
    if mode == Mode::Off {
        // Not one byte differs from what it would be without this feature (A13).
        return Marking::Off;
    }
    strip(template);
    if !program.lives() {
        return Marking::Skipped;
    }
    template.labels.insert(TRAIN_JOB_NAME_LABEL.into(), name.into());
    template.labels.insert(TRAIN_JOB_UID_LABEL.into(), uid.into());
    if mode == Mode::Exact {
        template.finalizers.push(ACCOUNTING_FINALIZER.into());
    }
    Marking::Marked
}

/// Drops what is ours.
pub fn strip(template: &mut Template) {
    for label in [TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL] {
        template.labels.remove(label);
    }
    template.annotations.remove(ACCOUNTED_ANNOTATION);
    template.finalizers.retain(|finalizer| finalizer != ACCOUNTING_FINALIZER);
}

/// Gives a template that is built for an update what the stored one has of ours, and nothing else of ours (AM3). So
/// neither a mark nor its absence is a difference.
pub fn keep_mark(built: &mut Template, stored: &Template) {
    strip(built);
    for label in [TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL] {
        if let Some(value) = stored.labels.get(label) {
            built.labels.insert(label.into(), value.clone());
        }
    }
    if is_held(stored) {
        built.finalizers.push(ACCOUNTING_FINALIZER.into());
    }
}

/// Whether a stored JobSet is made anew without the mark (AM3): accounting is off, and it was suspended from its first
/// day on, so that nothing is lost.
#[must_use]
pub fn is_remade(mode: Mode, stored: &Template, suspended: bool, ever_ran: bool) -> bool {
    mode == Mode::Off && is_held(stored) && suspended && !ever_ran
}

fn is_held(template: &Template) -> bool {
    template.finalizers.iter().any(|finalizer| finalizer == ACCOUNTING_FINALIZER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVES: Program = Program::Changed(Duration::ZERO);

    fn of(labels: &[(&str, &str)], finalizers: &[&str]) -> Template {
        Template {
            labels: labels.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect(),
            annotations: BTreeMap::new(),
            finalizers: finalizers.iter().map(|it| (*it).into()).collect(),
        }
    }

    fn marked(finalizers: &[&str]) -> Template {
        of(&[("team", "a"), (TRAIN_JOB_NAME_LABEL, "llm"), (TRAIN_JOB_UID_LABEL, "u1")], finalizers)
    }

    fn new(mode: Mode, program: Program, template: &mut Template) -> Marking {
        mark_new(template, mode, program, "llm", "u1")
    }

    #[test]
    fn am0_the_mode_says_what_is_added() {
        for (mode, marking, expected) in [
            (Mode::Off, Marking::Off, of(&[("team", "a")], &["x/y"])),
            (Mode::Observe, Marking::Marked, marked(&["x/y"])),
            (Mode::Exact, Marking::Marked, marked(&["x/y", ACCOUNTING_FINALIZER])),
        ] {
            let mut template = of(&[("team", "a")], &["x/y"]);
            assert_eq!(
                (new(mode, LIVES, &mut template), template),
                (marking, expected),
                "{mode:?}"
            );
        }
    }

    #[test]
    fn am1_what_users_forge_is_dropped_first() {
        let mut forged =
            of(&[("team", "a"), (TRAIN_JOB_UID_LABEL, "forged")], &[ACCOUNTING_FINALIZER]);
        forged.annotations.insert(ACCOUNTED_ANNOTATION.into(), "forged".into());
        let mut template = forged.clone();
        assert_eq!(new(Mode::Exact, LIVES, &mut template), Marking::Marked);
        assert_eq!(template, marked(&[ACCOUNTING_FINALIZER]));
        let mut template = forged;
        assert_eq!(new(Mode::Observe, LIVES, &mut template), Marking::Marked);
        assert_eq!(template, marked(&[]));
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
            let mut template = of(&[("team", "a")], &[]);
            let marking = new(Mode::Exact, program, &mut template);
            let expected = if lives { Marking::Marked } else { Marking::Skipped };
            assert_eq!(marking, expected, "{program:?}");
            assert_eq!(template == of(&[("team", "a")], &[]), !lives, "{program:?}");
        }
    }

    #[test]
    fn am3_a_stored_job_set_keeps_its_mark_or_its_absence() {
        for stored in [marked(&[ACCOUNTING_FINALIZER]), marked(&[]), of(&[], &[])] {
            let mut built = of(&[("team", "b"), (TRAIN_JOB_UID_LABEL, "forged")], &["x/y"]);
            keep_mark(&mut built, &stored);
            for label in [TRAIN_JOB_NAME_LABEL, TRAIN_JOB_UID_LABEL] {
                assert_eq!(built.labels.get(label), stored.labels.get(label), "{stored:?}");
            }
            assert_eq!((is_held(&built), &*built.labels["team"]), (is_held(&stored), "b"));
        }
    }

    #[test]
    fn am3_only_what_never_ran_is_made_anew_when_accounting_is_switched_off() {
        let held = marked(&[ACCOUNTING_FINALIZER]);
        for (mode, stored, suspended, ever_ran, expected) in [
            (Mode::Off, &held, true, false, true),
            (Mode::Off, &held, true, true, false),
            (Mode::Off, &held, false, false, false),
            (Mode::Off, &marked(&[]), true, false, false),
            (Mode::Observe, &held, true, false, false),
            (Mode::Exact, &held, true, false, false),
        ] {
            assert_eq!(
                is_remade(mode, stored, suspended, ever_ran),
                expected,
                "{mode:?} {stored:?}"
            );
        }
    }

    #[test]
    fn a13_off_leaves_every_template_as_it_is() {
        let forged = marked(&[ACCOUNTING_FINALIZER]);
        let mut template = forged.clone();
        assert_eq!(new(Mode::Off, LIVES, &mut template), Marking::Off);
        assert_eq!(template, forged);
    }
}
