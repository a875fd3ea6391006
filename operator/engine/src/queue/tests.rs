mod standby;

use futures::FutureExt;
use tokio::time::advance;
use trainjob_core::{
    facts::ObjectKey,
    priority::{Priority, QueuePosition},
    server_time::Sample,
};
use trainjob_process::server_time::{ServerTime, boot_time};

use super::{state::LONGEST_SLEEP, *};
use crate::{
    places::{Place, UnderWay},
    shares::{Flow, LOAN, Share, Verb},
};

type Queue = super::Queue<ObjectKey, Priority>;
type Next = super::Next<ObjectKey, Priority>;

/// A clock that knows the time.
fn clock() -> Clock {
    let server_time = ServerTime::new(Duration::ZERO);
    let (sent, date) = (boot_time(), Timestamp(1_000_000));
    server_time.record(&Sample { sent, received: boot_time(), date });
    Clock::new(server_time)
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("ns", name)
}

fn open_queue() -> Queue {
    let queue = Queue::standby(Places::new(64), clock());
    queue.open();
    queue
}

/// Takes the next key.
fn pop(queue: &Queue) -> Option<Next> {
    queue.pop(Instant::now())
}

fn drain(queue: &Queue) -> Vec<(String, Priority)> {
    let next = || pop(queue).map(|next| (next.key.name.to_string(), next.priority));
    std::iter::from_fn(next).collect()
}

/// The names of what waits, in the order in which it is taken.
fn names(queue: &Queue) -> Vec<String> {
    drain(queue).into_iter().map(|(name, _)| name).collect()
}

const fn at(priority: Priority, due: i64) -> QueuePosition {
    QueuePosition { priority, due: Timestamp(due) }
}

#[test]
fn lanes_go_in_order_and_the_last_has_one_turn_in_eight() {
    let queue = open_queue();
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
fn a_key_waits_once_in_the_best_lane_it_was_put_in() {
    let queue = open_queue();
    for priority in [Priority::Cleanup, Priority::Live, Priority::Stop, Priority::Cleanup] {
        queue.add(key("a"), at(priority, 5));
    }
    assert_eq!(drain(&queue), vec![("a".to_owned(), Priority::Stop)]);
}

#[test]
fn a_key_that_is_worked_on_waits_until_that_is_done() {
    let queue = open_queue();
    queue.add(key("a"), QueuePosition::LIVE);
    assert!(pop(&queue).is_some());
    queue.add(key("a"), at(Priority::Cleanup, 0));
    queue.add(key("a"), at(Priority::Stop, 0));
    assert_eq!(drain(&queue), vec![]);
    queue.done(&key("a"));
    assert_eq!(drain(&queue), vec![("a".to_owned(), Priority::Stop)]);
}

#[test]
fn what_was_due_first_goes_first_and_live_work_in_the_order_it_came() {
    let queue = open_queue();
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
fn namespaces_take_turns() {
    let queue = open_queue();
    let key = |namespace: &str, name: &str| ObjectKey::new(namespace, name);
    for n in 0..50 {
        queue.add(key("many", &format!("many {n}")), QueuePosition::LIVE);
    }
    queue.add(key("few", "few"), QueuePosition::LIVE);
    assert_eq!(names(&queue)[..3], ["many 0", "few", "many 1"]);
}

#[test]
fn first_attempts_go_before_repeated_ones_which_have_one_turn_in_eight() {
    let queue = open_queue();
    for n in 0..20 {
        let (name, now) = (key(&format!("repeated {n}")), Instant::now());
        queue.lock().add(name, QueuePosition::LIVE, Attempt::Repeated, now);
    }
    for n in 0..20 {
        queue.add(key(&format!("first {n}")), QueuePosition::LIVE);
    }
    let order = names(&queue);
    let repeated = order[..16].iter().filter(|name| name.starts_with("repeated")).count();
    assert_eq!(repeated, 2, "{order:?}");
    assert_eq!(order.len(), 40);
}

#[test]
fn news_make_a_repeated_attempt_a_first_one() {
    let (queue, now) = (open_queue(), Instant::now());
    for name in ["other", "news"] {
        queue.lock().add(key(name), QueuePosition::LIVE, Attempt::Repeated, now);
    }
    queue.add(key("news"), QueuePosition::LIVE);
    assert_eq!(names(&queue), ["news", "other"]);
}

const DELETE: Operation = Operation { verb: Verb::Delete, kind: "jobsets" };

/// A queue in which `a` sends a request that is not answered, and `b` waits to send one like it.
async fn hanging() -> (Queue, (Place<Priority>, UnderWay<Priority>)) {
    let queue = open_queue();
    for name in ["a", "b"] {
        queue.add(key(name), QueuePosition::LIVE);
    }
    let flow = Flow { namespace: "ns".into(), operation: DELETE };
    let a = pop(&queue).unwrap();
    assert!(a.place.enter(&flow));
    let request = a.place.ask();
    advance(Duration::from_secs(2)).await;
    let b = pop(&queue).unwrap();
    assert!(!b.place.enter(&flow));
    queue.wait_for(&b.key, QueuePosition::LIVE, b.attempt, DELETE);
    (queue, (a.place, request))
}

#[tokio::test(start_paused = true)]
async fn key_whose_request_may_not_be_sent_waits_until_one_like_it_is_answered() {
    let (queue, hangs) = hanging().await;
    assert!(pop(&queue).is_none());
    queue.add(key("c"), QueuePosition::LIVE);
    assert_eq!(pop(&queue).unwrap().key, key("c"), "others go on");
    drop(hangs);
    assert_eq!(pop(&queue).unwrap().key, key("b"));
}

#[tokio::test(start_paused = true)]
async fn key_goes_on_once_nobody_waits_for_the_request_like_its_own() {
    let (queue, (place, _request)) = hanging().await;
    assert!(pop(&queue).is_none());
    drop(place);
    assert_eq!(pop(&queue).unwrap().key, key("b"));
}

#[tokio::test(start_paused = true)]
async fn key_goes_on_once_flows_that_have_not_answered_are_slow() {
    let queue = open_queue();
    let take = |namespace: &str| {
        let flow = Flow { namespace: namespace.into(), operation: DELETE };
        let mut shares = queue.places.shares();
        let place =
            queue.places.take(&mut shares, Priority::Live, namespace.into(), Share::Own, None);
        drop(shares);
        assert!(place.enter(&flow));
        let request = place.ask();
        (place, request)
    };
    // All that flows of other namespaces may have before they have answered.
    let _hang: Vec<_> = ["a", "b"].into_iter().flat_map(|it| [it; 16]).map(take).collect();
    queue.add(key("waits"), QueuePosition::LIVE);
    let next = pop(&queue).unwrap();
    assert!(!next.place.enter(&Flow { namespace: "ns".into(), operation: DELETE }));
    queue.wait_for(&next.key, QueuePosition::LIVE, next.attempt, DELETE);
    drop(next);
    assert!(pop(&queue).is_none());
    assert_eq!(queue.next().await.key, key("waits"));
}

#[tokio::test(start_paused = true)]
async fn news_of_a_key_that_waits_for_its_flow_are_looked_at_at_once() {
    let (queue, _hangs) = hanging().await;
    queue.add(key("b"), at(Priority::Stop, 5));
    let next = pop(&queue).unwrap();
    assert_eq!((next.key, next.priority), (key("b"), Priority::Stop));
}

#[test]
fn key_that_was_put_again_during_its_pass_does_not_wait_for_a_flow() {
    let queue = open_queue();
    queue.add(key("a"), QueuePosition::LIVE);
    let a = pop(&queue).unwrap();
    queue.add(key("a"), at(Priority::Stop, 5));
    queue.wait_for(&a.key, QueuePosition::LIVE, a.attempt, DELETE);
    assert_eq!(drain(&queue), [("a".to_owned(), Priority::Stop)]);
}

#[tokio::test]
async fn what_waits_is_woken_when_a_place_is_given_back() {
    let queue = Arc::new(open_queue());
    for n in 0..40 {
        queue.add(key(&n.to_string()), QueuePosition::LIVE);
    }
    let mut taken: Vec<_> = std::iter::from_fn(|| queue.next().now_or_never()).collect();
    let under_way = taken.len();
    assert_eq!(queue.numbers().under_way, under_way);
    let detached = taken[0].place.ask();
    let waits = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.next().await }
    });
    taken.swap_remove(0);
    tokio::task::yield_now().await;
    assert_eq!(queue.numbers().under_way, under_way, "a request under way keeps its place");
    assert!(!waits.is_finished());
    drop(detached);
    waits.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn place_on_loan_is_called_back_for_a_key_of_another_namespace_or_priority() {
    const STOP: QueuePosition = QueuePosition { priority: Priority::Stop, due: Timestamp(0) };
    for (namespace, position, called_back) in [
        ("ns", QueuePosition::LIVE, false),
        ("other", QueuePosition::LIVE, true),
        ("ns", STOP, true),
    ] {
        let queue = open_queue();
        (0..80).for_each(|n| queue.add(key(&n.to_string()), QueuePosition::LIVE));
        let send = |next: Next| {
            assert!(next.place.enter(&Flow { namespace: "ns".into(), operation: DELETE }));
            (next.place.ask(), next.place)
        };
        drop(pop(&queue).map(send));
        let mut hang: Vec<_> = std::iter::from_fn(|| pop(&queue).map(send)).collect();
        assert_eq!(hang.len(), 62, "all but one of each other priority");
        queue.add(key("deadline"), STOP);
        let first_stop = pop(&queue).map(send);
        assert!(first_stop.is_some(), "one place is never lent");
        let new = ObjectKey::new(namespace, "new");
        queue.add(new.clone(), position);
        let overdue = || {
            let shares = queue.places.shares();
            shares.overdue_loans(position.priority, Instant::now()).count()
        };
        assert!(pop(&queue).is_none());
        advance(LOAN).await;
        assert_eq!(overdue(), 34);
        assert!(pop(&queue).is_none());
        assert_eq!(overdue() == 0, called_back, "{namespace}, {position:?}");
        hang.retain(|(request, _)| request.called_back_after().is_none());
        assert_eq!(hang.len(), if called_back { 61 } else { 62 }, "{namespace}, {position:?}");
        assert_eq!(pop(&queue).map(|next| next.key), called_back.then_some(new));
    }
}

#[test]
fn a_timer_counts_only_as_last_set() {
    let queue = open_queue();
    let past = Timestamp(1);
    queue.requeue_at(&key("moved"), Some(past));
    queue.requeue_at(&key("moved"), Some(Timestamp(i64::MAX)));
    queue.requeue_at(&key("due"), Some(past));
    queue.requeue_at(&key("dropped"), Some(past));
    queue.requeue_at(&key("dropped"), None);
    assert_eq!(queue.due(), Some(vec![(key("due"), Attempt::First)]));
    assert_eq!(queue.lock().sleep(&queue.clock), LONGEST_SLEEP);
    assert!(queue.lock().take_due(&queue.clock).is_empty());
}

#[test]
fn timers_that_are_moved_again_and_again_take_no_room() {
    let queue = open_queue();
    for at in 0..100_000 {
        queue.requeue_at(&key("a"), Some(Timestamp(i64::MAX - at)));
    }
    assert_eq!(queue.lock().requeues.len(), 1);
}

#[test]
fn the_sleep_ends_with_the_earliest_timer() {
    let queue = open_queue();
    queue.retry(&key("late"), Some(Duration::from_secs(90)));
    queue.retry(&key("early"), Some(Duration::from_millis(50)));
    assert!(queue.lock().take_due(&queue.clock).is_empty());
    let sleep = queue.lock().sleep(&queue.clock);
    assert!(sleep <= Duration::from_millis(50), "{sleep:?}");
}

#[test]
fn what_comes_due_is_put_in_its_place_until_the_queue_is_closed() {
    let queue = open_queue();
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

#[test]
fn key_that_waits_for_long_rises_when_its_time_comes() {
    let queue = open_queue();
    let due = Timestamp(1);
    let rising = |at| Placement { rises_at: Some(at), ..QueuePosition::LIVE.into() };
    for n in 0..20 {
        queue.add(key(&format!("before {n}")), QueuePosition::LIVE);
    }
    queue.place(key("news"), rising(due));
    queue.add_all([(rising(due), key("take-over"))]);
    std::thread::scope(|scope| {
        scope.spawn(|| queue.run_timers(|_| Some(at(Priority::Stop, 1))));
        let waits = |name: &str| {
            let waiting = queue.lock().waiting.get(&key(name)).copied();
            waiting.is_some_and(|ticket| ticket.priority() == Priority::Live)
        };
        while waits("news") || waits("take-over") {
            std::thread::yield_now();
        }
        queue.close();
    });
    let order = drain(&queue);
    let risen: Vec<_> = order.iter().take(2).map(|(name, _)| name.as_str()).collect();
    assert_eq!(risen, ["news", "take-over"], "{order:?}");
}

#[test]
fn rise_is_armed_unless_something_comes_before_it_and_never_on_standby() {
    let placed = |armed: Option<i64>, rises_at, standby| {
        let queue = if standby { Queue::standby(Places::new(64), clock()) } else { open_queue() };
        queue.requeue_at(&key("a"), armed.map(Timestamp));
        let rises_at = Some(Timestamp(rises_at));
        queue.place(key("a"), Placement { rises_at, ..QueuePosition::LIVE.into() });
        let at = queue.lock().requeues.at(&key("a"));
        at.map(|Timestamp(at)| at)
    };
    for (armed, rises_at, standby, expected) in [
        (None, 7, false, Some(7)),
        (Some(5), 7, false, Some(5)),
        (Some(9), 7, false, Some(7)),
        (None, 7, true, None),
    ] {
        assert_eq!(placed(armed, rises_at, standby), expected, "{armed:?}, {standby}");
    }
}
