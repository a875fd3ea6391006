//! What of an object the breaker is told to be due (`docs/retention.md`, R41).

use trainjob_retention_core::{
    breaker::{DueObject, OwnerEnd, Stage},
    facts::Facts,
    keep_last::Groups,
    outcome::Guards,
    plan::{Answers, Release, plan},
    policy::{Decide, Delete, Lifetime, Phases, PodsStage, RuleAction},
};

use crate::scene::{at, finish, job, policy, seconds, there, ttl};

#[test]
fn the_last_stage_that_has_come_is_due_since_its_time() {
    let pods = PodsStage::new(("batch", "Job"), seconds(60), Phases::All).unwrap();
    let decide = Decide::new(Lifetime::Ttl(seconds(3_600)), Some(pods), Delete::Object).unwrap();
    let policies = there(vec![policy(RuleAction::Decide(decide))]);
    let object = job();
    for (now, pods_deleted, expected) in [
        (59, false, None),
        (60, false, Some((60, Stage::Pods))),
        (3_599, false, Some((60, Stage::Pods))),
        (3_599, true, None),
        (3_600, false, Some((3_600, Stage::Object))),
        (9_999, true, Some((3_600, Stage::Object))),
    ] {
        let answers = Answers { pods_deleted, ..Answers::default() };
        let plan = plan(&object, &answers, &Groups::default(), &policies, at(now)).unwrap();
        let due = DueObject::of(&plan, &"a".into(), at(now));
        let expected = expected.map(|(due, stage)| {
            let (namespace, owner) = ("a".into(), OwnerEnd::Irrelevant);
            DueObject { namespace, due: at(due), stage, owner }
        });
        assert_eq!(due, expected, "at {now}, Pods deleted: {pods_deleted}");
    }
}

#[test]
fn what_a_guard_delays_is_due() {
    let guards = Guards { release: true, ..Guards::default() };
    let mut finish = finish();
    finish.guards = guards;
    let object = Facts { finishes: [finish].into(), ..job() };
    let policies = there(vec![policy(ttl(60))]);
    let answers = Answers { release: Some(Release::Pending), ..Answers::default() };
    let plan = plan(&object, &answers, &Groups::default(), &policies, at(90)).unwrap();
    let due = DueObject::of(&plan, &"a".into(), at(90)).map(|object| object.due);
    assert_eq!(due, Some(at(60)));
}
