//! Defects seeded into good lives, each of which breaks one of S1–S11.

use std::collections::BTreeSet;

use invariants::{Clock, Hold, Job, Rule, State};
use trainjob_api::time::Timestamp;

use crate::scenario::{
    Scenario, complete, condition, deadline, exceeded, finished, job, job_set, object, recreated,
    released, request, resumed, running, vanish,
};

/// Sees that the seeded defect breaks this rule and no other.
pub(crate) fn breaks(rule: Rule, what: &str, scenario: Scenario) {
    let (rules, how) = scenario.broken();
    assert_eq!(rules, BTreeSet::from([rule]), "{what}: {how:#?}");
}

#[test]
fn s1_sees_a_delete_that_is_early_or_not_called_for() {
    let deleted_at = |at: i64| {
        let mut scenario = finished();
        scenario.delete(at, "job");
        vanish(&mut scenario, at + 100);
        scenario
    };
    breaks(Rule::S1, "a second early", deleted_at(1_011_999));

    let everywhere = |edit: &dyn Fn(&mut Job)| {
        let mut scenario = complete();
        for change in &mut scenario.history.changes {
            if let State::TrainJob(job) = &mut change.object.state {
                edit(job);
            }
        }
        scenario
    };
    breaks(Rule::S1, "no TTL", everywhere(&|job| job.ttl = None));
    breaks(Rule::S1, "a longer TTL", everywhere(&|job| job.ttl = Some(11)));
    let later = Hold::Until(Timestamp(1_013));
    breaks(Rule::S1, "a hold", everywhere(&|job| job.hold = Some(later)));
    breaks(Rule::S1, "a hold", everywhere(&|job| job.hold = Some(Hold::Unreadable)));
    breaks(Rule::S1, "a remote copy", everywhere(&|job| job.remote_copy = true));
    breaks(Rule::S1, "unfinished", everywhere(&|job| job.conditions.clear()));
}

#[test]
fn s2_sees_a_change_of_what_is_not_named_or_not_ours() {
    let mut unnamed = complete();
    unnamed.asked("delete", "trainjobs").uid = None;
    breaks(Rule::S2, "a delete without a UID", unnamed);

    let mut misnamed = complete();
    misnamed.asked("patch", "trainjobs").uid = Some("nobody".into());
    breaks(Rule::S2, "a status of nobody", misnamed);

    let mut foreign = deadline();
    foreign.history.changes.iter_mut().filter(|it| it.object.uid == "set").for_each(|it| {
        it.object.owner = None;
    });
    foreign.asked("create", "jobsets").owner = None;
    breaks(Rule::S2, "a JobSet of nobody", foreign);

    let mut elsewhere = released();
    for change in elsewhere.history.changes.iter_mut().filter(|it| it.object.uid == "job") {
        job(&mut change.object).managed_elsewhere = true;
    }
    breaks(Rule::S2, "a job of somebody else", elsewhere);
}

#[test]
fn s3_sees_an_end_that_is_not_final() {
    type Seed = fn(&mut Job);
    for (what, seed) in [
        ("reverted", (|job| job.conditions.clear()) as Seed),
        ("two ends", |job| job.conditions.push(condition("Failed", true, "Why", 1_003))),
        ("another reason", |job| job.conditions[0].reason = "Other".into()),
        ("another time", |job| job.conditions[0].since = Timestamp(1_003)),
    ] {
        let mut scenario = finished();
        scenario.history.end = 1_010_000;
        scenario.history.requests.retain(|request| request.sent < 1_010_000);
        scenario.edit(1_003_000, "job", seed);
        breaks(Rule::S3, what, scenario);
    }
}

#[test]
fn s3_sees_a_creation_for_a_job_that_was_known_to_have_finished() {
    let mut scenario = finished();
    scenario.gone(1_003_000, "set");
    scenario.create_job_set(1_003_010, "job", "again");
    scenario.delete(1_003_050, "again");
    scenario.gone(1_003_060, "again");
    scenario.delete(1_012_003, "job");
    scenario.gone(1_012_100, "snapshot-of-job");
    scenario.gone(1_012_110, "job");
    breaks(Rule::S3, "its own answer had told it", scenario);
}

#[test]
fn s4_sees_a_resurrection() {
    let mut scenario = released();
    scenario.create_job_set(1_013_010, "job", "again");
    scenario.delete(1_013_050, "again");
    scenario.gone(1_013_060, "again");
    scenario.delete(1_020_005, "job");
    scenario.gone(1_020_100, "snapshot-of-job");
    scenario.gone(1_020_110, "job");
    breaks(Rule::S4, "created again", scenario);

    let mut scenario = resumed(Clock::Creation);
    scenario.finish(1_020_001, "job", "Failed", "DeadlineExceeded");
    scenario.change(1_020_002, "set", |it| crate::scenario::job_set(it).suspend = true);
    scenario.suspend(1_020_020, "set", false);
    scenario.delete(1_020_030, "set");
    scenario.gone(1_020_500, "set");
    breaks(Rule::S4, "resumed", scenario);

    let mut scenario = running();
    scenario.history.changes.pop();
    scenario.terminate(1_002_000, "job");
    scenario.terminate(1_002_010, "set");
    scenario.gone(1_002_020, "set");
    scenario.create_job_set(1_005_000, "job", "again");
    scenario.terminate(1_005_010, "again");
    scenario.gone(1_005_020, "again");
    scenario.gone(1_005_030, "snapshot-of-job");
    scenario.gone(1_005_040, "job");
    breaks(Rule::S4, "created while it is being deleted", scenario);
}

#[test]
fn s5_sees_a_deadline_that_is_early_or_not_called_for() {
    let failed_at = |mut scenario: Scenario, at: i64| {
        scenario.finish(at, "job", "Failed", "DeadlineExceeded");
        scenario.delete(at + 5, "set");
        scenario.gone(at + 400, "pod");
        scenario.gone(at + 500, "set");
        scenario.delete(at + 10_000, "job");
        scenario.gone(at + 10_010, "snapshot-of-job");
        scenario.gone(at + 10_020, "job");
        scenario
    };
    breaks(Rule::S5, "a second early", failed_at(running(), 1_009_999));

    let mut ended = running();
    ended.end_job_set(1_006_000, "set", "Completed");
    breaks(Rule::S5, "its JobSet had ended", failed_at(ended, 1_010_001));

    let mut raised = running();
    raised.edit(1_005_000, "job", |job| job.deadline = Some(100));
    breaks(Rule::S5, "the deadline was raised", failed_at(raised, 1_010_001));

    let mut resumed = resumed(Clock::LastResume);
    resumed.finish(1_020_001, "job", "Failed", "DeadlineExceeded");
    resumed.delete(1_020_010, "set");
    resumed.gone(1_020_500, "set");
    breaks(Rule::S5, "counted from the creation", resumed);
}

#[test]
fn s6_sees_a_second_child() {
    let mut scenario = running();
    scenario.create_job_set(1_000_150, "job", "twin");
    scenario.history.end = 1_005_000;
    scenario.history.requests.retain(|request| request.sent < 1_005_000);
    breaks(Rule::S6, "two JobSets", scenario);
}

#[test]
fn s7_sees_a_jobset_deleted_before_the_end_is_stored() {
    let mut scenario = running();
    scenario.delete(1_010_001, "set");
    scenario.finish(1_010_010, "job", "Failed", "DeadlineExceeded");
    scenario.gone(1_010_400, "pod");
    scenario.gone(1_010_500, "set");
    scenario.delete(1_020_005, "job");
    scenario.gone(1_020_100, "snapshot-of-job");
    scenario.gone(1_020_110, "job");
    breaks(Rule::S7, "deleted first", scenario);
}

#[test]
fn s7_lets_a_jobset_be_made_anew_by_its_version_and_while_it_has_never_run() {
    let made_anew = |fenced: bool, has_run: bool| {
        let mut scenario = Scenario::new();
        scenario.create_job("job", Job { suspend: true, ..Job::default() });
        scenario.create_children(1_000_100, "job", "set");
        let suspended = condition("Suspended", true, "Suspended", 1_000);
        scenario.write_status(1_000_120, "job", |job| job.conditions = vec![suspended.clone()]);
        if has_run {
            scenario.change(1_002_000, "set", |it| job_set(it).suspend = false);
            scenario.change(1_003_000, "set", |it| job_set(it).suspend = true);
        }
        let version = scenario.version("set");
        scenario.delete(1_005_000, "set");
        scenario.asked("delete", "jobsets").version = fenced.then_some(version);
        scenario.gone(1_005_100, "set");
        scenario.create_job_set(1_005_200, "job", "another");
        scenario.history.end = 1_008_000;
        scenario
    };
    let (rules, how) = made_anew(true, false).broken();
    assert_eq!(rules, BTreeSet::new(), "{how:#?}");
    breaks(Rule::S7, "without its version", made_anew(false, false));
    breaks(Rule::S7, "after it has run", made_anew(true, true));
}

#[test]
fn s8_sees_a_write_that_does_not_name_the_version_it_meets() {
    for (verb, resource, scenario) in [
        ("patch", "trainjobs", complete()),
        ("delete", "trainjobs", complete()),
        ("patch", "jobsets", {
            let mut scenario = resumed(Clock::Creation);
            scenario.end_job_set(1_008_000, "set", "Completed");
            scenario.finish(1_008_010, "job", "Complete", "Over");
            scenario
        }),
    ] {
        let mut unfenced = scenario;
        unfenced.asked(verb, resource).version = None;
        breaks(Rule::S8, &format!("{verb} {resource} without a version"), unfenced);
    }
    let mut overwritten = running();
    overwritten.edit(1_010_001, "job", |job| job.ttl = Some(20));
    overwritten.finish(1_010_004, "job", "Failed", "DeadlineExceeded");
    overwritten.asked("patch", "trainjobs").version = Some(1);
    overwritten.delete(1_010_010, "set");
    overwritten.gone(1_010_900, "pod");
    overwritten.gone(1_011_000, "set");
    overwritten.history.end = 1_030_000;
    breaks(Rule::S8, "an edit overwritten", overwritten);
}

#[test]
fn s9_sees_what_nobody_may_do() {
    let mut curious = complete();
    curious.history.requests.push(request(1_001_000, "get", "secrets", "token"));
    breaks(Rule::S9, "a Secret", curious);

    let mut elsewhere = running();
    let child = object("far", "far", Some("job"), 1_001, State::Other("podgroups".into()));
    elsewhere.create(1_001_000, invariants::Object { namespace: "far".into(), ..child });
    elsewhere.history.end = 1_005_000;
    elsewhere.history.requests.retain(|request| request.sent < 1_005_000);
    breaks(Rule::S9, "another namespace", elsewhere);
}

#[test]
fn s10_sees_pressure() {
    let mut crowd = Scenario::new();
    for _ in 0..=crowd.history.terms.in_flight {
        crowd.history.requests.push(request(1_000_000, "list", "pods", ""));
    }
    breaks(Rule::S10, "too many at a time", crowd);

    let refused = |sent: i64, code: u16, retry_after: Option<u32>| {
        let mut refused = request(sent, "delete", "jobsets", "job");
        refused.uid = Some("set".into());
        refused.answer.code = Some(code);
        refused.answer.served = None;
        refused.answer.retry_after = retry_after;
        refused
    };
    let mut impatient = Scenario::new();
    impatient.history.requests.push(refused(1_001_000, 429, Some(3)));
    impatient.history.requests.push(refused(1_003_999, 500, None));
    breaks(Rule::S10, "Retry-After", impatient);

    let mut of_successor = recreated();
    let told = |uid: &str| invariants::Request {
        uid: Some(uid.into()),
        ..refused(1_003_500, 429, Some(3))
    };
    of_successor.history.requests.push(told("set-2"));
    breaks(Rule::S10, "Retry-After of the same job", of_successor);
    let mut of_predecessor = recreated();
    of_predecessor.history.requests.push(told("set"));
    assert_eq!(of_predecessor.broken(), Default::default(), "a successor need not wait");

    let mut hot = Scenario::new();
    hot.history.requests.extend((0..9).map(|n| refused(1_001_000 + n * 100, 500, None)));
    breaks(Rule::S10, "a hot loop", hot);

    let mut idle = complete();
    let write = idle.asked("patch", "trainjobs").clone();
    let again =
        invariants::Request { sent: write.sent + 10, version: write.answer.version, ..write };
    idle.history.requests.push(again);
    breaks(Rule::S10, "nothing changed", idle);
}

#[test]
fn s11_sees_a_status_that_goes_back() {
    let ends_well = |mut scenario: Scenario| {
        scenario.end_job_set(1_008_000, "set", "Completed");
        scenario.finish(1_008_010, "job", "Complete", "Over");
        scenario
    };
    let mut earlier = resumed(Clock::Creation);
    earlier.edit(1_006_000, "job", |job| job.conditions[0].since = Timestamp(999));
    breaks(Rule::S11, "a time", ends_well(earlier));

    let mut ahead = resumed(Clock::Creation);
    ahead.edit(1_006_000, "job", |job| job.conditions[0].observed_generation = Some(2));
    breaks(Rule::S11, "a generation that is not there", ends_well(ahead));

    let mut undeleted = exceeded();
    undeleted.terminate(1_010_500, "job");
    undeleted.change(1_010_600, "job", |object| object.deleting = None);
    undeleted.terminate(1_010_700, "job");
    undeleted.gone(1_010_800, "pod");
    vanish(&mut undeleted, 1_010_900);
    breaks(Rule::S11, "a deletion undone", undeleted);

    let mut back = recreated();
    back.history.changes.iter_mut().filter(|it| it.object.uid == "job-2").for_each(|it| {
        it.object.generation = 2;
    });
    back.change(1_005_000, "job-2", |object| object.generation = 1);
    breaks(Rule::S11, "a generation", back);
}
