//! Marking, so that Pods are counted (AM0 to AM4 of `docs/accounting.md`).

use std::time::Duration;

use serde_json::{Value, json};
use trainjob_api::JobSet;
use trainjob_core::{
    Action,
    action::DeletionReason,
    mark::{self, Accounting, Mode, Program},
    observed::Reading,
    take_over::Comparison,
};

use crate::{
    common::{condition, patches, set_spec},
    scene::{CREATED, JOB_SET_UID, JOB_SET_VERSION, Scene, UID, built, new},
};

const LIVES: Program = Program::Changed(Duration::ZERO);

fn under(mode: Mode, program: Program, scene: Scene) -> Scene {
    Scene { accounting: Accounting { mode, program }, ..scene }
}

/// The metadata of the first Pod template.
fn template(job_set: &JobSet) -> Value {
    let job_set = serde_json::to_value(job_set).unwrap();
    job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["metadata"].clone()
}

/// A suspended job that has changed, whose JobSet was made with this mode; everything is read.
fn suspended(made_with: Mode) -> Scene {
    let mut recorded = condition("Suspended", "True", "Suspended", CREATED);
    recorded.message = "TrainJob is suspended".into();
    let mut scene = built(&json!({"suspend": true})).with_conditions(&[recorded]);
    let job_set = scene.job_set.as_mut().unwrap();
    mark::mark_new(job_set, Accounting { mode: made_with, program: LIVES }, "job", UID);
    set_spec(&mut scene.job, &json!({"runtimePatches": patches("new")}));
    scene.readings.snapshot = Reading::Found(scene.snapshot("now"));
    scene.read_job_set();
    scene
}

#[test]
fn am1_am2_a_new_job_set_gets_what_the_mode_says_if_somebody_counts() {
    for (mode, program, labels, finalizers, event) in [
        (Mode::Off, LIVES, 0, 0, false),
        (Mode::Observe, LIVES, 2, 0, false),
        (Mode::Exact, LIVES, 2, 1, false),
        (Mode::Exact, Program::Silent, 0, 0, true),
        (Mode::Off, Program::Silent, 0, 0, false),
    ] {
        let plan = under(mode, program, new(&json!({}))).plan(CREATED);
        let created = plan.actions.iter().find_map(|action| match action {
            Action::CreateJobSet { job_set, .. } => Some(template(&job_set.read().unwrap())),
            _ => None,
        });
        let metadata = created.unwrap();
        let ours = |(key, _): &(&String, &Value)| key.starts_with("lifecycle.trainjob.dev/");
        let marked = metadata["labels"].as_object().into_iter().flatten().filter(ours).count();
        let held = metadata["finalizers"].as_array().map_or(0, Vec::len);
        assert_eq!((marked, held), (labels, finalizers), "{mode:?} {program:?}");
        let told = plan.actions.iter().any(|action| match action {
            Action::RecordEvent(event) => event.reason() == "AccountingSkipped",
            _ => false,
        });
        assert_eq!(told, event, "{mode:?} {program:?}");
    }
}

#[test]
fn am3_a_suspended_job_set_that_changes_keeps_its_mark_or_its_absence() {
    for made_with in [Mode::Off, Mode::Observe, Mode::Exact] {
        for mode in [Mode::Off, Mode::Observe, Mode::Exact] {
            if (made_with, mode) == (Mode::Exact, Mode::Off) {
                continue;
            }
            let scene = under(mode, LIVES, suspended(made_with));
            let before = template(scene.job_set.as_ref().unwrap());
            let plan = scene.plan(2_000);
            let after = template(&scene.updated(&plan));
            assert_eq!(after["labels"]["patch"], "new");
            assert_eq!(after["finalizers"], before["finalizers"], "{made_with:?} {mode:?}");
            for label in ["trainjob-name", "trainjob-uid"] {
                let label = format!("lifecycle.trainjob.dev/{label}");
                assert_eq!(after["labels"][&label], before["labels"][&label]);
            }
        }
    }
}

#[test]
fn am3_a_held_job_set_that_never_ran_is_made_anew_when_accounting_is_switched_off() {
    let mut scene = under(Mode::Off, Program::Silent, suspended(Mode::Exact));
    // Its spec has not changed since, so it was never resumed.
    scene.job_set.as_mut().unwrap().metadata.generation = Some(1);
    let plan = scene.plan(2_000);
    let reason = DeletionReason::Rebuild { resource_version: JOB_SET_VERSION.into() };
    assert_eq!(plan.actions, [Action::DeleteJobSet { uid: JOB_SET_UID.into(), reason }]);
}

#[test]
fn am3_a_held_job_set_is_made_anew_at_the_take_over_and_any_other_waits_until_it_is_resumed() {
    for (made_with, mode, planned) in [
        (Mode::Exact, Mode::Off, vec!["delete JobSet"]),
        (Mode::Exact, Mode::Exact, vec![]),
        (Mode::Exact, Mode::Observe, vec![]),
        (Mode::Observe, Mode::Off, vec![]),
        (Mode::Off, Mode::Exact, vec![]),
    ] {
        let mut scene = under(mode, LIVES, suspended(made_with));
        scene.job_set.as_mut().unwrap().metadata.generation = Some(1);
        scene.comparison = Comparison::OnResume;
        assert_eq!(scene.words(2_000), planned, "{made_with:?} {mode:?}");
    }
}
