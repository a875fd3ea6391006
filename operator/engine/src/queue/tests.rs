use trainjob_core::server_time::Sample;
use trainjob_process::server_time::{ServerTime, boot_time};

use super::{timers::SWEEP_FROM, *};

/// A clock that knows the time.
fn clock() -> Clock {
    let server_time = ServerTime::new(Duration::ZERO);
    let (sent, date) = (boot_time(), Timestamp(1_000_000));
    server_time.record(&Sample { sent, received: boot_time(), date });
    Clock::new(server_time)
}

/// A queue that takes in what it is given.
fn queue() -> Queue {
    let queue = Queue::standby(clock());
    queue.open();
    queue
}

fn key(name: &str) -> ObjectKey {
    ObjectKey { namespace: "ns".into(), name: name.into() }
}

fn drain(queue: &Queue) -> Vec<(String, Priority)> {
    let next = || queue.lock().pop(Priority::Cleanup);
    std::iter::from_fn(next).map(|next| (next.key.name.to_string(), next.priority)).collect()
}

const fn at(priority: Priority, due: i64) -> QueuePosition {
    QueuePosition { priority, due: Timestamp(due) }
}

#[test]
fn lanes_go_in_order_and_the_last_has_one_turn_in_eight() {
    let queue = queue();
    for n in 0..20 {
        queue.add(key(&format!("cleanup {n}")), at(Priority::Cleanup, 0));
    }
    for n in 0..20 {
        queue.add(key(&format!("live {n}")), QueuePosition::LIVE);
    }
    queue.add(key("stop"), at(Priority::Stop, 0));
    let order = drain(&queue);
    let priorities: Vec<_> = order.iter().map(|(_, priority)| *priority).collect();
    let expected = [Priority::Cleanup, Priority::Stop, Priority::Live, Priority::Live];
    assert_eq!(priorities[..4], expected);
    let share = priorities[..24].iter().filter(|priority| **priority == Priority::Cleanup).count();
    assert_eq!(share, 3, "{order:?}");
    assert_eq!(order.len(), 41);
}

#[test]
fn on_standby_nothing_is_taken_in_and_nothing_takes_room() {
    let queue = Queue::standby(clock());
    queue.add(key("a"), at(Priority::Stop, 0));
    queue.add_all(vec![(QueuePosition::LIVE, key("b"))]);
    assert!(queue.lock().waiting.is_empty());
    assert_eq!(drain(&queue), vec![]);
    queue.open();
    queue.add(key("c"), QueuePosition::LIVE);
    assert_eq!(drain(&queue), vec![("c".to_owned(), Priority::Live)]);
}

#[test]
fn a_key_waits_once_in_the_best_lane_it_was_put_in() {
    let queue = queue();
    for priority in [Priority::Cleanup, Priority::Live, Priority::Stop, Priority::Cleanup] {
        queue.add(key("a"), at(priority, 5));
    }
    assert_eq!(drain(&queue), vec![("a".to_owned(), Priority::Stop)]);
}

#[test]
fn a_key_that_is_worked_on_waits_until_that_is_done() {
    let queue = queue();
    queue.add(key("a"), QueuePosition::LIVE);
    assert!(queue.lock().pop(Priority::Cleanup).is_some());
    queue.add(key("a"), at(Priority::Cleanup, 0));
    queue.add(key("a"), at(Priority::Stop, 0));
    assert_eq!(drain(&queue), vec![]);
    queue.done(&key("a"));
    assert_eq!(drain(&queue), vec![("a".to_owned(), Priority::Stop)]);
}

#[test]
fn what_was_due_first_goes_first_and_live_work_in_the_order_it_came() {
    let queue = queue();
    for (name, due) in [("second", 20), ("third", 30), ("first", 10)] {
        queue.add(key(name), at(Priority::Cleanup, due));
    }
    for name in ["z", "a"] {
        queue.add(key(name), QueuePosition::LIVE);
    }
    queue.lock().turn = 1;
    let order: Vec<_> = drain(&queue).into_iter().map(|(name, _)| name).collect();
    assert_eq!(order, ["z", "a", "first", "second", "third"]);
}

#[test]
fn a_worse_lane_than_asked_for_is_left_alone() {
    let queue = queue();
    queue.add(key("live"), QueuePosition::LIVE);
    assert_eq!(queue.lock().pop(Priority::Stop), None);
    assert!(queue.lock().pop(Priority::Live).is_some());
}

#[test]
fn a_timer_counts_only_as_last_set() {
    let queue = queue();
    let past = Timestamp(1);
    queue.requeue_at(&key("moved"), Some(past));
    queue.requeue_at(&key("moved"), Some(Timestamp(i64::MAX)));
    queue.requeue_at(&key("due"), Some(past));
    queue.requeue_at(&key("dropped"), Some(past));
    queue.requeue_at(&key("dropped"), None);
    assert_eq!(queue.due(), Some(vec![key("due")]));
    assert_eq!(queue.lock().sleep(&queue.clock), LONGEST_SLEEP);
    assert!(queue.lock().take_due(&queue.clock).is_empty());
}

#[test]
fn timers_that_are_moved_again_and_again_take_no_room() {
    let queue = queue();
    for at in 0..100_000 {
        queue.requeue_at(&key("a"), Some(Timestamp(i64::MAX - at)));
    }
    assert!(queue.lock().requeues.entries() <= SWEEP_FROM + 1);
}

#[test]
fn the_sleep_ends_with_the_earliest_timer() {
    let queue = queue();
    queue.retry(&key("late"), Some(Duration::from_secs(90)));
    queue.retry(&key("early"), Some(Duration::from_millis(50)));
    assert!(queue.lock().take_due(&queue.clock).is_empty());
    let sleep = queue.lock().sleep(&queue.clock);
    assert!(sleep <= Duration::from_millis(50), "{sleep:?}");
}

#[test]
fn what_comes_due_is_put_in_its_place_until_the_queue_is_closed() {
    let queue = queue();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            queue.run_timers(|key| (&*key.name != "gone").then_some(at(Priority::Cleanup, 1)));
        });
        queue.requeue_at(&key("later"), Some(Timestamp(i64::MAX)));
        queue.requeue_at(&key("gone"), Some(Timestamp(1)));
        queue.retry(&key("due"), Some(Duration::from_millis(20)));
        let mut moved = Vec::new();
        while moved.is_empty() {
            std::thread::yield_now();
            moved = drain(&queue);
        }
        queue.close();
        assert_eq!(moved, vec![("due".to_owned(), Priority::Cleanup)]);
    });
}
