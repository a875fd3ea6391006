//! Before everything is worked on.

use super::*;

#[test]
fn on_standby_nothing_is_taken_in_and_nothing_takes_room() {
    let queue = Queue::standby(Places::new(64), clock());
    queue.add(key("a"), at(Priority::Stop, 0));
    queue.add_all(vec![(QueuePosition::LIVE, key("b"))]);
    assert!(queue.lock().waiting.is_empty());
    assert_eq!(drain(&queue), vec![]);
    queue.open();
    queue.add(key("c"), QueuePosition::LIVE);
    assert_eq!(drain(&queue), vec![("c".to_owned(), Priority::Live)]);
}

fn placed(begins: Begins, rises_at: Option<i64>) -> Placement<Priority> {
    Placement { position: QueuePosition::LIVE, rises_at: rises_at.map(Timestamp), begins }
}

#[test]
fn what_is_noted_on_standby_is_armed_and_known_until_it_is_gone_or_needs_nothing() {
    let queue = Queue::standby(Places::new(64), clock());
    for (name, placement) in [
        ("new", Some(placed(Begins::First, Some(7)))),
        ("expired", Some(placed(Begins::Early, None))),
        ("settled", Some(placed(Begins::Last, Some(8)))),
        ("settled since", Some(placed(Begins::First, Some(9)))),
        ("gone", Some(placed(Begins::First, Some(9)))),
    ] {
        assert!(queue.note(&key(name), placement));
    }
    assert!(queue.note(&key("settled since"), Some(placed(Begins::Last, None))));
    assert!(queue.note(&key("gone"), None));
    assert!(queue.lock().take_due(&queue.clock).is_empty(), "no timer fires on standby");
    assert_eq!(queue.precision(), Precision::Promised, "nor is the time needed");
    let armed = ["new", "expired", "settled", "settled since", "gone"]
        .map(|name| queue.lock().requeues.at(&key(name)).map(|Timestamp(at)| at));
    assert_eq!(armed, [Some(7), None, Some(8), None, None]);
    let mut noted = queue.open();
    noted.sort();
    assert_eq!(noted, [key("expired"), key("new")]);
    assert!(!queue.note(&key("new"), None), "from now on keys are placed");
    let due = queue.due().map(|due| due.len());
    assert_eq!(due, Some(2), "what has come due on standby is due at once");
}

#[test]
fn before_all_is_listed_only_what_begins_early_is_taken_in_and_the_rest_is_noted() {
    let queue = Queue::standby(Places::new(64), clock());
    assert!(queue.note(&key("expired before"), Some(placed(Begins::Early, None))));
    assert_eq!(queue.open_early(), [key("expired before")]);
    for (name, begins) in
        [("new", Begins::First), ("expired", Begins::Early), ("settled", Begins::Last)]
    {
        assert!(queue.note(&key(name), Some(placed(begins, None))));
    }
    assert_eq!(names(&queue), ["expired"]);
    for name in ["expires", "comes due"] {
        queue.requeue_at(&key(name), Some(Timestamp(1)));
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            queue.run_timers(|key| {
                let is_early = &*key.name == "expires";
                Some(placed(if is_early { Begins::Early } else { Begins::First }, None))
            });
        });
        while queue.noted().len() < 2 || queue.waiting() == 0 {
            std::thread::yield_now();
        }
        queue.close();
    });
    assert_eq!(names(&queue), ["expires"]);
    let mut noted = queue.open();
    noted.sort();
    assert_eq!(noted, [key("comes due"), key("new")]);
}
