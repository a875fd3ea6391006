//! What policies in Audit ask about owners and releases.

use std::sync::Arc;

use super::*;

fn audits_after_owner(seconds: i64) -> StoredPolicy {
    let change = json!({"mode": "Audit", "owned": "AfterOwner"});
    policy(&json!({"ttlSecondsAfterFinished": seconds}), &change)
}

impl Scene {
    /// How many objects the policy would delete now, and how many it keeps for their owner.
    fn shown(&mut self, now: Now) -> (u64, u64) {
        let mut survey = Survey::default();
        while self.state.survey(JOBS, &mut survey, 2, now) {}
        let tally = survey.tally(&Uid::from("p")).unwrap();
        (tally.would_delete.now, tally.counts.owned)
    }

    fn answer(&mut self, name: &str, answer: OwnerAnswer) {
        self.owner_is(name, answer, at(60));
    }

    fn asks_owner(&mut self, name: &str, now: Now) -> bool {
        matches!(self.look(name, now), Step::AskOwner(_))
    }
}

#[test]
fn owner_is_asked_for_when_its_object_is_due_and_not_before() {
    let mut scene = Scene::before_the_list(vec![audits_after_owner(60)]);
    scene.list(&[of_job_set("j"), finished("free", 7, 0)], at(59));
    let mut later = Vec::new();
    while let Some(slice) = scene.state.evaluate(2, at(59)) {
        assert!(slice.look.is_empty());
        later.extend(slice.later);
    }
    assert_eq!(later, [(key("j"), END.plus(60))], "a timer only where something may be asked");
    assert_eq!(scene.look("j", at(59)), until(60));
    assert!(scene.asks_owner("j", at(60)));
    assert_eq!(scene.look("free", at(60)), Step::Wait(Wait::default()));
}

#[test]
fn what_an_owner_lets_go_is_shown_and_its_owner_is_not_asked_for_again() {
    for owner in [
        OwnerAnswer::Gone,
        OwnerAnswer::Found(FoundOwner { finished: Some(END), ..FoundOwner::default() }),
    ] {
        let mut scene = Scene::before_the_list(vec![audits_after_owner(60)]);
        scene.list(&[of_job_set("j")], at(60));
        assert_eq!(scene.evaluate(at(60)), ["j"]);
        assert_eq!(scene.shown(at(60)), (0, 1), "nobody was asked yet");
        scene.answer("j", owner);
        scene.pass(3_600);
        assert_eq!(scene.look("j", at(3_660)), Step::Wait(Wait::default()), "{owner:?}");
        assert_eq!(scene.shown(at(3_660)), (1, 0));
    }
}

#[test]
fn owner_that_has_not_finished_is_asked_for_again_after_a_while_that_grows() {
    let mut scene = Scene::new(vec![audits_after_owner(60)], &[of_job_set("j")], at(60));
    for minutes in [1, 2, 4] {
        assert!(scene.asks_owner("j", at(60)), "{minutes}");
        scene.answer("j", OwnerAnswer::Found(FoundOwner::default()));
        let longest = Some(Duration::from_mins(minutes));
        assert_eq!(scene.look("j", at(60)), Step::Wait(Wait { until: None, longest }));
        assert_eq!(scene.shown(at(60)), (0, 1));
        scene.pass(60 * minutes);
    }
    let ended = FoundOwner { finished: Some(END.plus(90)), ..FoundOwner::default() };
    scene.answer("j", OwnerAnswer::Found(ended));
    assert_eq!(scene.look("j", at(60)), until(90), "not before its owner's end");
    assert_eq!(scene.shown(at(89)), (0, 0));
    assert_eq!(scene.shown(at(90)), (1, 0));
}

#[test]
fn owner_is_asked_for_beside_a_policy_that_enforces_and_leaves_the_object_alone() {
    let mut enforces = ttl(60);
    let other = Arc::make_mut(&mut enforces.policy);
    (other.uid, other.name, other.priority) = (Uid::from("q"), "q".into(), -1);
    let policies = vec![audits_after_owner(60), enforces];
    let mut scene = Scene::new(policies, &[of_job_set("j")], at(60));
    assert!(scene.asks_owner("j", at(60)));
    scene.answer("j", OwnerAnswer::Gone);
    assert_eq!(scene.look("j", at(60)), Step::Wait(Wait::default()));
    assert_eq!(scene.shown(at(60)), (1, 0));
}

#[test]
fn policy_in_audit_that_may_not_read_owners_says_so() {
    let mut scene = Scene::new(vec![audits_after_owner(60)], &[of_job_set("j")], at(60));
    assert_eq!(scene.review(&[]).len(), 3);
    assert!(scene.asks_owner("j", at(60)));
    let get = right("jobset.x-k8s.io", "jobsets", Verb::Get);
    scene.state.owner_refused(&key("j"), slice::from_ref(&get), at(60), scene.monotonic);
    assert_eq!(scene.review(slice::from_ref(&get)), slice::from_ref(&get));
    assert_eq!(scene.missing(), ["get jobset.x-k8s.io/jobsets"]);
    scene.pass(30);
    assert_eq!(scene.review(&[]), slice::from_ref(&get));
    assert_eq!(scene.evaluate(at(60)), ["j"], "the right is given");
    assert!(scene.asks_owner("j", at(60)));
}
