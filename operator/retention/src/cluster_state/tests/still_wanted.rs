//! What is looked at again right before an owner is deleted.

use trainjob_retention_core::wish::HoldWish;

use super::*;

/// A Job that is to be deleted by way of its owner, and the deletion.
fn scene() -> (Scene, Deletion) {
    let rules = json!([{
        "name": "all", "delete": "Owner", "action": {"ttlSecondsAfterFinished": 60},
    }]);
    let policy = policy(&Value::Null, &json!({"owned": "Any", "rules": rules}));
    let mut scene = Scene::new(vec![policy], &[of_job_set("j")], at(60));
    assert!(matches!(scene.look("j", at(60)), Step::AskOwner(_)));
    let ended = FoundOwner { finished: Some(END), ..FoundOwner::default() };
    scene.owner_is("j", OwnerAnswer::Found(ended), at(60));
    let Step::Delete(deletion) = scene.step("j", at(60)) else { panic!() };
    assert_eq!(deletion.owner.as_ref().map(|owner| &*owner.name), Some("s"));
    (scene, *deletion)
}

fn still_wants(scene: &mut Scene, deletion: &Deletion, now: Now) -> bool {
    let monotonic = scene.monotonic;
    scene.state.still_wants(&key("j"), deletion, now, monotonic)
}

#[test]
fn a_deletion_is_still_wanted_as_long_as_nothing_has_changed() {
    let (mut scene, deletion) = scene();
    assert!(still_wants(&mut scene, &deletion, at(61)));
    assert!(still_wants(&mut scene, &deletion, at(61)), "to ask changes nothing");
}

#[test]
fn a_deletion_is_not_wanted_any_more_once_something_speaks_against_it() {
    type Change = fn(&mut Scene);
    let changes: [(&str, Change); 9] = [
        ("another version", |scene| {
            let text = of_job_set("j").replace("\"7\"", "\"8\"");
            scene.see("j", &text, at(61));
        }),
        ("unfinished", |scene| {
            let mut object: Value = serde_json::from_str(&of_job_set("j")).unwrap();
            object["status"] = json!({});
            scene.see("j", &object.to_string(), at(61));
        }),
        ("gone", |scene| {
            scene.state.object_gone(JOBS, &key("j").object);
        }),
        ("a policy in Audit", |scene| {
            scene.set(audited(60));
            scene.evaluate(at(61));
        }),
        ("a policy that was not evaluated yet", |scene| {
            scene.set(audited(60));
        }),
        ("a hold of the owner", |scene| {
            let hold = Some(HoldWish::Until(END.plus(3_600)));
            let owner = FoundOwner { finished: Some(END), hold, ..FoundOwner::default() };
            scene.owner_is("j", OwnerAnswer::Found(owner), at(61));
        }),
        ("an owner that goes already", |scene| {
            let owner = FoundOwner { terminating: true, ..FoundOwner::default() };
            scene.owner_is("j", OwnerAnswer::Found(owner), at(61));
        }),
        ("silent watches", |scene| scene.monotonic += Duration::from_secs(91)),
        ("a DELETE that was refused meanwhile", |scene| {
            scene.reply("j", Reply::Failed);
        }),
    ];
    for (what, change) in changes {
        let (mut scene, deletion) = scene();
        change(&mut scene);
        assert!(!still_wants(&mut scene, &deletion, at(61)), "{what}");
    }
}

#[test]
fn a_deletion_is_not_wanted_while_the_time_is_not_known() {
    let (mut scene, deletion) = scene();
    assert!(!still_wants(&mut scene, &deletion, Now::Held { likely: END.plus(3_600) }));
}
