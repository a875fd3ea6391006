//! L6: what makes two outcomes differ, and what does not.

use invariants::{Clock, Outcome};

use crate::scenario::{
    Scenario, complete, condition, deadline, exceeded, recreated, released, resumed,
};

fn differences(one: &Scenario, other: &Scenario) -> Vec<String> {
    Outcome::of(&one.history).differences(&Outcome::of(&other.history))
}

#[test]
fn uids_versions_times_and_namespaces_do_not_matter() {
    let mut other = deadline();
    for change in &mut other.history.changes {
        change.revision += 1_000;
        change.at += 7_000;
        let object = &mut change.object;
        object.namespace = "other".into();
        object.uid.push_str("-other");
        object.owner.iter_mut().for_each(|owner| owner.push_str("-other"));
    }
    assert_eq!(differences(&deadline(), &other), [""; 0]);
}

#[test]
fn l6_sees_every_other_end() {
    let mut made_twice = released();
    made_twice.create_job_set(1_012_000, "job", "again");
    made_twice.gone(1_012_100, "again");
    let mut other_reason = released();
    other_reason.edit(1_012_000, "job", |job| job.conditions[0].reason = "Other".into());
    let mut another_condition = released();
    another_condition.edit(1_012_000, "job", |job| {
        job.conditions.push(condition("Waiting", true, "Why", 1_012));
    });
    for (what, scenario) in [
        ("the JobSet is left", exceeded()),
        ("the job is gone", deadline()),
        ("a JobSet was made twice", made_twice),
        ("another reason", other_reason),
        ("another condition", another_condition),
        ("another life", complete()),
        ("two lives", recreated()),
        ("no end", resumed(Clock::Creation)),
    ] {
        assert_ne!(differences(&released(), &scenario), [""; 0], "{what}");
    }
}
