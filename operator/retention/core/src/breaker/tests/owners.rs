//! Objects that wait for their owner, which is asked for now and then (R24, R41).

use super::{
    super::{DueObject, Hold, News, OWNER_ASKED_WITHIN, OwnerEnd, SLACK, Standing},
    scene::{LIMIT, MAX_COUNT, Scene, at, due_object},
};
use crate::uid::Uid;

const DAY: i64 = 86_400;

/// One more than the limit, due since then in namespace `a`.
fn too_many(due: i64, owner: OwnerEnd) -> Vec<(Uid, DueObject)> {
    let object = |number: usize| {
        let object = DueObject { owner, ..due_object(&"a".into(), due) };
        (Uid::from(&*number.to_string()), object)
    };
    (0..=LIMIT).map(object).collect()
}

impl Scene {
    fn observe(&mut self, objects: Vec<(Uid, DueObject)>, news: News) {
        for (uid, object) in objects {
            self.breaker.observe(uid, object, news, at(self.now));
        }
        self.settle();
    }

    /// How one of them stands.
    fn standing(&self) -> Option<Standing> {
        self.breaker.standing(&Uid::from("0"))
    }
}

#[test]
fn what_may_not_be_due_is_not_counted_before_its_owner_is_known() {
    let tripped = Some(MAX_COUNT.get() + 1);
    for (owner, ago, expected) in [
        (OwnerEnd::Irrelevant, DAY, tripped),
        (OwnerEnd::Decides, SLACK + 1, tripped),
        (OwnerEnd::Decides, SLACK, None),
    ] {
        let mut scene = Scene::at_rest();
        scene.pass(600);
        let asked = scene.now;
        scene.observe(too_many(asked - DAY, OwnerEnd::Unknown), News::Other);
        assert_eq!((scene.tripped(), scene.breaker.unexpected()), (None, 0));
        assert_eq!(scene.breaker.may_delete(&Uid::from("0")), Err(Hold::Waiting));
        // The answer takes its time.
        scene.pass(600);
        scene.observe(too_many(asked - DAY, OwnerEnd::Unknown), News::Other);
        scene.observe(too_many(asked - ago, owner), News::Other);
        assert_eq!(scene.tripped(), expected, "{owner:?}, {ago}");
        let since = at(scene.now);
        let standing = match expected {
            Some(_) => Standing::Waiting { since },
            None => Standing::Expected { since },
        };
        assert_eq!(scene.standing(), Some(standing), "{owner:?}, {ago}");
    }
}

#[test]
fn what_time_or_an_end_made_due_is_expected_before_its_owner_is_known_and_after() {
    for (ago, news) in [(0, News::Other), (DAY, News::End)] {
        let mut scene = Scene::at_rest();
        scene.pass(600);
        let due = scene.now - ago;
        scene.observe(too_many(due, OwnerEnd::Unknown), news);
        scene.pass(600);
        scene.observe(too_many(due, OwnerEnd::Irrelevant), News::Other);
        assert_eq!((scene.tripped(), scene.breaker.unexpected()), (None, 0), "{ago} {news:?}");
    }
}

#[test]
fn an_owner_that_ended_before_a_start_is_expected_as_far_back_as_nobody_may_have_asked_for_it() {
    for (ago, is_expected) in
        [(OWNER_ASKED_WITHIN + SLACK, true), (OWNER_ASKED_WITHIN + SLACK + 1, false)]
    {
        for asked_first in [true, false] {
            let mut scene = Scene::at_rest();
            scene.pass(DAY);
            scene.store();
            let due = scene.now - ago;
            let owner = if asked_first { OwnerEnd::Unknown } else { OwnerEnd::Decides };
            scene.due = too_many(due, owner);
            scene.start();
            scene.settle();
            scene.pass(60);
            scene.observe(too_many(due, OwnerEnd::Decides), News::Other);
            assert_eq!(scene.tripped().is_none(), is_expected, "{ago}, {asked_first}");
        }
    }
}

#[test]
fn a_jump_of_the_clock_stops_what_may_not_be_due_too() {
    let mut scene = Scene::at_rest();
    scene.pass(600);
    scene.observe(too_many(scene.now - DAY, OwnerEnd::Unknown), News::Other);
    scene.due = too_many(scene.now - DAY, OwnerEnd::Unknown);
    scene.step_clock(4_000);
    assert_eq!(scene.tripped(), Some(MAX_COUNT.get() + 1));
    scene.store();
    assert!(scene.acknowledge());
    scene.store();
    assert_eq!(scene.deletable(), LIMIT + 1);
}
