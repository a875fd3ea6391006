use std::time::Duration;

use trainjob_core::priority::Priority;

use super::*;

/// Creations of JobSets in this namespace.
pub(super) fn flow(namespace: &str) -> Flow {
    Flow {
        namespace: namespace.into(),
        operation: Operation { verb: Verb::Create, kind: "jobsets" },
    }
}

/// Takes a place and sends a request of `flow`, if that is allowed.
fn send(
    shares: &mut Shares<Priority>,
    priority: Priority,
    flow: &Flow,
    now: Instant,
) -> Option<PlaceId> {
    let namespace = &flow.namespace;
    let share = shares.share(priority, shares.room(priority)?, namespace, now)?;
    shares.admits(flow, share, now).then(|| {
        let place = shares.take(priority, namespace.clone(), share, Some(flow.clone()));
        assert!(shares.enter(place, flow, now));
        shares.asked(place, now);
        place
    })
}

fn answer(shares: &mut Shares<Priority>, place: PlaceId, now: Instant) {
    shares.answered(place, now);
    shares.give_back(place);
}

/// Sends as many requests of `flow` as are allowed.
fn flood(shares: &mut Shares<Priority>, flow: &Flow, now: Instant) -> Vec<PlaceId> {
    std::iter::from_fn(|| send(shares, Priority::Live, flow, now)).collect()
}

/// One request of each namespace is answered at once.
fn know(shares: &mut Shares<Priority>, namespaces: &[&str], now: Instant) {
    for namespace in namespaces {
        let place = send(shares, Priority::Live, &flow(namespace), now).unwrap();
        answer(shares, place, now);
    }
}

#[test]
fn every_priority_has_a_place_that_others_do_not_get() {
    for places in [0, 3, 5, 8, 64] {
        for hungry in Priority::ALL {
            let mut shares = Shares::new(places);
            while shares.room(hungry).is_some() {
                shares.take(hungry, "ns".into(), Share::Own, None);
            }
            assert!(shares.taken() >= 1, "{hungry:?} of {places} gets none");
            for other in hungry.others() {
                assert!(
                    shares.room(other).is_some(),
                    "{hungry:?} of {places} leaves {other:?} none"
                );
                shares.take(other, "ns".into(), Share::Own, None);
            }
        }
    }
}

#[test]
fn places_are_a_bound() {
    for places in [3, 5, 64] {
        let mut shares = Shares::new(places);
        while let Some(priority) = Priority::ALL.into_iter().find(|it| shares.room(*it).is_some()) {
            shares.take(priority, "ns".into(), Share::Own, None);
        }
        assert_eq!(shares.taken(), places);
    }
}

/// What is on loan is called back, one place after the other, as for deadlines that need them all.
fn call_loans_back(shares: &mut Shares<Priority>, now: Instant) -> usize {
    let mut called_back = 0;
    loop {
        let overdue = shares.overdue_loans(Priority::Stop, now).map(|(place, _)| place).next();
        let Some(place) = overdue else { return called_back };
        shares.call_back(place);
        assert_eq!(shares.overdue_loans(Priority::Stop, now).count(), 0, "one after the other");
        assert!(shares.called_back(place, now).is_some_and(|waited| waited >= LOAN));
        answer(shares, place, now);
        called_back += 1;
    }
}

#[test]
fn one_namespace_gets_half_and_borrows_the_rest_until_it_hangs_for_a_second() {
    for (places, half, all, rest) in [(5, 2, 3, 1), (8, 3, 6, 3), (64, 28, 62, 27)] {
        let (mut shares, begin) = (Shares::new(places), Instant::now());
        know(&mut shares, &["a", "b"], begin);
        assert_eq!(flood(&mut shares, &flow("a"), begin).len(), all, "of {places}");
        assert_eq!(flood(&mut shares, &flow("b"), begin).len(), 0, "of {places}");
        let later = begin + LOAN;
        assert_eq!(call_loans_back(&mut shares, later), all - half, "of {places}");
        assert_eq!(flood(&mut shares, &flow("a"), later).len(), 0, "of {places}");
        assert_eq!(flood(&mut shares, &flow("b"), later).len(), rest, "of {places}");
    }
}

#[test]
fn what_is_kept_is_lent_but_for_one_place_and_called_back_for_whom_it_is_kept_alone() {
    let (mut shares, begin) = (Shares::new(64), Instant::now());
    know(&mut shares, &["a", "b", "c"], begin);
    let (a, b) = (flow("a"), flow("b"));
    let own = (0..55).map(|n| [&a, &b][n % 2]);
    let own = own.filter_map(|flow| send(&mut shares, Priority::Live, flow, begin)).count();
    assert_eq!((own, shares.room(Priority::Live)), (55, Some(Share::OnLoan)));
    assert_eq!(shares.room(Priority::Stop), Some(Share::Own));
    assert_eq!(flood(&mut shares, &flow("c"), begin).len(), 7);
    assert_eq!(shares.room(Priority::Live), None);
    send(&mut shares, Priority::Stop, &a, begin).unwrap();
    assert_eq!(shares.room(Priority::Stop), None, "its other places are lent");
    assert_eq!(shares.room(Priority::Cleanup), Some(Share::Own));
    let later = begin + LOAN;
    assert_eq!(shares.overdue_loans(Priority::Live, later).count(), 0, "of no use to it");
    assert_eq!(call_loans_back(&mut shares, later), 7);
    let stopped = std::iter::from_fn(|| send(&mut shares, Priority::Stop, &flow("d"), later));
    assert_eq!(stopped.count(), 7);
}

#[test]
fn nothing_is_on_loan_while_answers_are_not_quick_or_when_a_request_waits_for_long() {
    let (mut shares, begin) = (Shares::new(64), Instant::now());
    know(&mut shares, &["a"], begin);
    send(&mut shares, Priority::Live, &flow("a"), begin).unwrap();
    let now = begin + Duration::from_millis(251);
    assert_eq!(flood(&mut shares, &flow("a"), now).len(), 27, "one waits for long");

    let mut shares = Shares::new(64);
    (0..127).for_each(|_| shares.answers.record(flow("a"), Duration::from_millis(251)));
    assert_eq!(flood(&mut shares, &flow("a"), begin).len(), 28, "answers are not quick");
}

#[test]
fn place_on_loan_is_for_flows_that_are_known_to_be_quick() {
    let (mut shares, now) = (Shares::new(64), Instant::now());
    know(&mut shares, &["quick"; 127], now);
    shares.answers.record(flow("slow"), Duration::from_secs(5));
    for (namespace, expected) in [("quick", true), ("new", false), ("slow", false)] {
        let place = shares.take(Priority::Live, namespace.into(), Share::OnLoan, None);
        assert_eq!(shares.enter(place, &flow(namespace), now), expected, "{namespace}");
        shares.give_back(place);
        assert!(shares.admits(&flow(namespace), Share::Own, now), "{namespace}");
    }
}

#[test]
fn flows_that_have_not_answered_get_half_and_those_of_one_namespace_a_quarter() {
    let (mut shares, now) = (Shares::new(64), Instant::now());
    for (namespace, expected) in [("a", 16), ("b", 16), ("c", 0)] {
        assert_eq!(flood(&mut shares, &flow(namespace), now).len(), expected, "{namespace}");
    }
    let (mut shares, now) = (Shares::new(64), Instant::now());
    know(&mut shares, &["c"], now);
    flood(&mut shares, &flow("a"), now);
    flood(&mut shares, &flow("b"), now);
    assert!(flood(&mut shares, &flow("c"), now).len() > 16, "what has answered is not held up");
}

#[test]
fn slow_flow_has_one_request_at_a_time_and_all_of_them_a_quarter() {
    let (mut shares, begin) = (Shares::new(64), Instant::now());
    let names: Vec<_> = (0..40).map(|n| format!("slow {n}")).collect();
    let now = begin + Duration::from_secs(30);
    know(&mut shares, &["quick"; 127], now);
    for name in &names {
        shares.answers.record(flow(name), Duration::from_secs(5));
        know(&mut shares, &["quick"; 3], now);
    }
    let sent: Vec<_> = names.iter().map(|it| flood(&mut shares, &flow(it), now).len()).collect();
    assert_eq!(sent.iter().max(), Some(&1));
    assert_eq!(sent.iter().sum::<usize>(), 16);
    assert_eq!(shares.slow_flows(now), names.len());
    assert!(!flood(&mut shares, &flow("quick"), now).is_empty());
}

#[test]
fn slow_flows_of_one_namespace_leave_those_of_others_a_turn() {
    let verbs = [Verb::Get, Verb::List, Verb::Create, Verb::Patch, Verb::Delete];
    let operations = verbs.into_iter().flat_map(|verb| {
        ["jobsets", "trainjobs", "configmaps", "pods"].map(|kind| Operation { verb, kind })
    });
    let hang: Vec<_> = operations.map(|operation| Flow { operation, ..flow("hang") }).collect();
    for places in [3, 5, 8, 64] {
        let (mut shares, now) = (Shares::new(places), Instant::now());
        know(&mut shares, &["quick"; 127], now);
        for slow in hang.iter().chain([&flow("late once")]) {
            shares.answers.record(slow.clone(), Duration::from_secs(5));
        }
        let hanging = hang.iter().flat_map(|it| flood(&mut shares, it, now)).count();
        assert!(hanging >= 1, "of {places}");
        assert!(shares.admits(&flow("late once"), Share::Own, now), "of {places}, {hanging} hang");
    }
}

#[test]
fn flow_that_hangs_is_slow_from_the_first_second_on_and_no_more_once_it_answers_again() {
    let (mut shares, begin) = (Shares::new(64), Instant::now());
    know(&mut shares, &["a", "b"], begin);
    let hung = flood(&mut shares, &flow("a"), begin);
    let later = begin + Duration::from_millis(1_001);
    call_loans_back(&mut shares, later);
    assert!(send(&mut shares, Priority::Live, &flow("a"), later).is_none());
    let other = send(&mut shares, Priority::Live, &flow("b"), later).unwrap();
    answer(&mut shares, other, later);
    let timeout = begin + Duration::from_secs(15);
    for place in hung {
        answer(&mut shares, place, timeout);
    }
    // So many answers have moved the median: others say again what is usual.
    know(&mut shares, &["b"; 127], timeout);
    let probe = flood(&mut shares, &flow("a"), timeout);
    assert_eq!(probe.len(), 1);
    for place in probe {
        answer(&mut shares, place, timeout);
    }
    assert!(flood(&mut shares, &flow("a"), timeout).len() > 1);
}

#[test]
fn request_of_a_slow_flow_that_nobody_waits_for_keeps_its_place_and_not_the_turn_of_its_flow() {
    let (mut shares, begin) = (Shares::new(64), Instant::now());
    know(&mut shares, &["quick"; 3], begin);
    let hangs = send(&mut shares, Priority::Stop, &flow("a"), begin).unwrap();
    let later = begin + Duration::from_secs(4);
    assert!(!shares.admits(&flow("a"), Share::Own, later));
    shares.leave(hangs);
    assert!(shares.admits(&flow("a"), Share::Own, later));
    assert_eq!(shares.taken(), 1);
}

#[test]
fn when_everything_is_slow_nothing_is() {
    let (mut shares, begin) = (Shares::new(64), Instant::now());
    let mut now = begin;
    for _ in 0..20 {
        let sent: Vec<_> =
            ["a", "b", "c"].iter().flat_map(|it| flood(&mut shares, &flow(it), now)).collect();
        assert!(!sent.is_empty());
        now += Duration::from_secs(5);
        for place in sent {
            answer(&mut shares, place, now);
        }
    }
    for namespace in ["a", "b"] {
        assert!(flood(&mut shares, &flow(namespace), now).len() > 16, "{namespace}");
    }
}

#[test]
fn place_given_for_a_flow_is_counted_in_it_while_another_request_is_sent_first() {
    let (mut shares, now) = (Shares::new(64), Instant::now());
    know(&mut shares, &["quick"; 3], now);
    shares.answers.record(flow("ns"), Duration::from_secs(5));
    let read = Flow { operation: Operation { verb: Verb::Get, kind: "configmaps" }, ..flow("ns") };
    let place = shares.take(Priority::Live, "ns".into(), Share::Own, Some(flow("ns")));
    assert!(shares.enter(place, &read, now));
    assert!(!shares.admits(&flow("ns"), Share::Own, now), "its place is kept");
    shares.asked(place, now);
    shares.answered(place, now);
    assert!(shares.enter(place, &flow("ns"), now));
    shares.give_back(place);
    assert!(shares.admits(&flow("ns"), Share::Own, now));
}

mod hostile {
    use proptest::prelude::*;

    use trainjob_core::priority::Priority;

    use super::*;

    /// What happens next: a request of one of many flows is to be sent, one is answered, or time passes.
    #[derive(Debug, Clone)]
    enum Event {
        Send { namespace: u8, kind: bool, priority: u8 },
        Answer { nth: usize },
        Pass { millis: u64 },
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0..6_u8, any::<bool>(), 0..3_u8)
                .prop_map(|(namespace, kind, priority)| Event::Send { namespace, kind, priority }),
            2 => (0..64_usize).prop_map(|nth| Event::Answer { nth }),
            1 => (0..3_000_u64).prop_map(|millis| Event::Pass { millis }),
        ]
    }

    /// Places, and the requests under way.
    struct Scene {
        shares: Shares<Priority>,
        now: Instant,
        sent: Vec<PlaceId>,
    }

    impl Scene {
        fn new(places: usize) -> Self {
            Self { shares: Shares::new(places), now: Instant::now(), sent: Vec::new() }
        }

        fn go_on(&mut self, event: &Event) {
            match *event {
                Event::Send { namespace, kind, priority } => {
                    let kind = if kind { "jobsets" } else { "trainjobs" };
                    let operation = Operation { verb: Verb::Delete, kind };
                    let flow = Flow { namespace: namespace.to_string().into(), operation };
                    let priority = Priority::ALL[usize::from(priority)];
                    self.sent.extend(send(&mut self.shares, priority, &flow, self.now));
                }
                Event::Answer { nth } if nth < self.sent.len() => {
                    answer(&mut self.shares, self.sent.swap_remove(nth), self.now);
                }
                Event::Answer { .. } => {}
                Event::Pass { millis } => self.pass(Duration::from_millis(millis)),
            }
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
            call_loans_back(&mut self.shares, self.now);
            self.sent.retain(|place| self.shares.taken.contains_key(place));
        }

        /// Whether a quick flow is served.
        fn serves(&mut self, priority: Priority) -> bool {
            let served = send(&mut self.shares, priority, &flow("quick"), self.now);
            served.inspect(|place| answer(&mut self.shares, *place, self.now)).is_some()
        }
    }

    /// The same, but all requests are of one namespace.
    fn of_one_namespace(event: Event) -> Event {
        match event {
            Event::Send { kind, priority, .. } => Event::Send { namespace: 0, kind, priority },
            other => other,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever one namespace sends and never gets answered, another one that is answered at once is served: at once,
        /// or when what is on loan has been given up.
        #[test]
        fn one_namespace_never_keeps_another_from_its_first_request_for_long(
            places in 8..80_usize,
            events in prop::collection::vec(event().prop_map(of_one_namespace), 0..300),
        ) {
            let mut scene = Scene::new(places);
            for event in events {
                scene.go_on(&event);
                for priority in Priority::ALL {
                    let served = scene.serves(priority) || {
                        scene.pass(LOAN);
                        scene.serves(priority)
                    };
                    prop_assert!(served, "{priority:?} with {} taken", scene.shares.taken());
                }
            }
        }

        /// The bounds hold whoever sends what.
        #[test]
        fn bounds_hold(places in 0..80_usize, events in prop::collection::vec(event(), 0..300)) {
            let mut scene = Scene::new(places);
            for event in events {
                scene.go_on(&event);
                let places = places.max(FEWEST_PLACES);
                prop_assert!(scene.shares.taken() <= places);
                for namespace in 0..6_u8 {
                    let namespace = namespace.to_string();
                    let taken = scene.shares.taken.values();
                    let of = taken
                        .filter(|it| *it.namespace == *namespace && it.share == Share::Own);
                    prop_assert!(of.count() <= places.div_ceil(2));
                }
            }
        }
    }
}
