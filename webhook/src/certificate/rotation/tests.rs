//! The rules of rotation, as tables.

use super::*;

const LIFE: u64 = 10_000;

/// Seconds on a clock that shows `LIFE` when the signer's life begins.
fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + seconds_of(seconds)
}

const fn seconds_of(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn ca(name: u8, begin: u64, end: u64) -> Certificate {
    Certificate { der: vec![name].into(), not_before: at(begin), not_after: at(end) }
}

/// Lives from 10 000 to 20 000.
fn signer() -> Certificate {
    ca(1, LIFE, 2 * LIFE)
}

/// Made 1 000 before the signer is over.
fn next() -> Certificate {
    ca(2, 19_000, 29_000)
}

fn settings() -> Settings {
    Settings {
        authority_lifetime: seconds_of(LIFE),
        authority_renew_before: seconds_of(1_000),
        lifetime: seconds_of(500),
        renew_before: seconds_of(100),
        bundle_lead: seconds_of(300),
        ..Settings::new("ns".into(), "ca".into(), "hook".into())
    }
}

fn state(signer: Place, next: Place, previous: &[&Certificate]) -> State {
    State { signer, next, previous: previous.iter().copied().cloned().collect() }
}

fn wait(seconds: u64) -> Step {
    Step::Wait(seconds_of(seconds))
}

#[test]
fn ca_in_use_is_not_forgotten_under_a_signer_of_any_age() {
    let in_use = ca(3, LIFE, 900_000);
    // The second one counts as out of use: its signer was made 1 500 ago.
    for (now, expected) in [(11_000, Step::Remember), (11_500, Step::Wait(Duration::MAX))] {
        let mut state = state(Place::Usable(signer()), Place::Empty, &[]);
        assert!(state.remember(&in_use, at(now)));
        let step = plan(&state, None, &settings(), at(now)).with_remembered();
        assert_eq!(step, expected);
        let after = after(&state, step, None, &settings(), at(now));
        assert_eq!(after.previous == [in_use.clone()], step == Step::Remember);
    }
}

#[test]
fn every_state_has_its_next_step() {
    use Place::{Empty, Unusable, Usable};
    use Reason::{LastMoment, NoSigner, Stood};
    use Step::{AddNext, Create, DropPrevious, Promote};
    let signs = || Usable(signer());
    let waits = || Usable(next());
    let foreign = ca(9, 0, 900_000);
    for (what, state, stood, now, expected) in [
        ("an empty cluster", State::default(), None, 1, Create),
        ("a damaged CA", state(Unusable(None), Empty, &[]), None, 1, Create),
        ("a foreign CA", state(Unusable(Some(foreign.clone())), Empty, &[]), None, 1, Create),
        ("a CA that is over", state(signs(), Empty, &[]), None, 20_000, Create),
        ("both over", state(signs(), waits(), &[]), Some(900), 29_000, Create),
        ("over, the next damaged", state(signs(), Unusable(None), &[]), None, 20_000, Create),
        ("a fresh CA", state(signs(), Empty, &[]), None, LIFE, wait(9_000)),
        ("a CA of a clock that is ahead", state(signs(), Empty, &[]), None, 1, wait(18_999)),
        ("not yet due", state(signs(), Empty, &[]), None, 18_999, wait(1)),
        ("due", state(signs(), Empty, &[]), None, 19_000, AddNext),
        (
            "due, the next damaged",
            state(signs(), Unusable(Some(next())), &[]),
            None,
            19_500,
            AddNext,
        ),
        ("due, the next over", state(signs(), Usable(ca(2, 1, 2)), &[]), None, 19_500, AddNext),
        ("not due, the next damaged", state(signs(), Unusable(None), &[]), None, LIFE, wait(9_000)),
        (
            "not in the webhook configurations",
            state(signs(), waits(), &[]),
            None,
            19_500,
            wait(440),
        ),
        ("just in them", state(signs(), waits(), &[]), Some(0), 19_500, wait(300)),
        ("nearly long enough", state(signs(), waits(), &[]), Some(299), 19_500, wait(1)),
        ("long enough", state(signs(), waits(), &[]), Some(300), 19_500, Promote(Stood)),
        ("early, put there by hand", state(signs(), waits(), &[]), Some(300), LIFE, Promote(Stood)),
        ("nearly the last moment", state(signs(), waits(), &[]), Some(9), 19_939, wait(1)),
        ("the last moment", state(signs(), waits(), &[]), Some(9), 19_940, Promote(LastMoment)),
        ("also not in them", state(signs(), waits(), &[]), None, 19_940, Promote(LastMoment)),
        ("over, a next one", state(signs(), waits(), &[]), None, 20_000, Promote(NoSigner)),
        (
            "damaged, a next one",
            state(Unusable(None), waits(), &[]),
            None,
            19_000,
            Promote(NoSigner),
        ),
        ("none, a next one", state(Empty, waits(), &[]), None, 19_000, Promote(NoSigner)),
        ("a previous one", state(signs(), Empty, &[&ca(0, 1, 10_007)]), None, LIFE, wait(7)),
        ("one over", state(signs(), Empty, &[&ca(0, 1, LIFE)]), None, LIFE, DropPrevious),
        ("a foreign one", state(signs(), Empty, &[&foreign]), None, LIFE, wait(1_500)),
        ("unused by now", state(signs(), Empty, &[&foreign]), None, 11_500, DropPrevious),
        ("but renewal first", state(signs(), Empty, &[&ca(0, 1, 2)]), None, 19_000, AddNext),
    ] {
        let stood = stood.map(seconds_of);
        assert_eq!(plan(&state, stood, &settings(), at(now)), expected, "{what}");
    }
}

#[test]
fn short_lives_are_renewed_in_their_second_half_and_have_short_last_moments() {
    let settings = Settings::new("ns".into(), "ca".into(), "hook".into());
    let short = |next| state(Place::Usable(ca(1, 100, 120)), next, &[]);
    assert_eq!(plan(&short(Place::Empty), None, &settings, at(100)), wait(10));
    assert_eq!(plan(&short(Place::Empty), None, &settings, at(110)), Step::AddNext);
    let waits = short(Place::Usable(ca(2, 110, 130)));
    assert_eq!(plan(&waits, Some(seconds_of(0)), &settings, at(110)), wait(8));
    let last = Step::Promote(Reason::LastMoment);
    assert_eq!(plan(&waits, Some(seconds_of(8)), &settings, at(118)), last);
}

#[test]
fn the_bundle_is_what_may_be_in_use_in_a_stable_order() {
    let (before, foreign) = (ca(0, 1, 10_500), ca(9, 0, 900_000));
    let names = |state: &State, now| -> Vec<u8> {
        bundle(state, at(now)).into_iter().map(|certificate| certificate.der[0]).collect()
    };
    let (signs, waits) = (Place::Usable(signer()), Place::Usable(next()));
    let all = state(signs.clone(), waits.clone(), &[&foreign, &before]);
    for (what, state, now, expected) in [
        ("nothing", &State::default(), 1, &[][..]),
        ("all", &all, LIFE, &[9, 0, 1, 2]),
        ("what is over is not", &all, 10_500, &[9, 1, 2]),
        ("nor the signer", &all, 20_000, &[9, 2]),
        ("each once", &state(signs.clone(), signs.clone(), &[&signer()]), LIFE, &[1]),
        (
            "what others trust is",
            &state(Place::Unusable(Some(foreign)), waits, &[]),
            19_000,
            &[9, 2],
        ),
        ("what never signed is not", &state(signs, Place::Unusable(Some(next())), &[]), LIFE, &[1]),
    ] {
        assert_eq!(names(state, now), expected, "{what}");
    }
}

#[test]
fn steps_move_the_authorities_along_and_forget_what_is_over() {
    use Place::{Empty, Unusable, Usable};
    let (over, foreign) = (ca(0, 1, 10_500), ca(9, 0, 900_000));
    let new = ca(7, 19_000, 29_000);
    let promote = Step::Promote(Reason::Stood);
    for (step, before, expected) in [
        (Step::Create, State::default(), state(Usable(new.clone()), Empty, &[])),
        (
            Step::Create,
            state(Unusable(Some(foreign.clone())), Unusable(None), &[&over]),
            state(Usable(new.clone()), Empty, &[&foreign]),
        ),
        (Step::Create, state(Unusable(None), Empty, &[]), state(Usable(new.clone()), Empty, &[])),
        (
            Step::AddNext,
            state(Usable(signer()), Empty, &[]),
            state(Usable(signer()), Usable(new.clone()), &[]),
        ),
        (
            promote,
            state(Usable(signer()), Usable(next()), &[&over]),
            state(Usable(next()), Empty, &[&signer()]),
        ),
        (promote, state(Empty, Usable(next()), &[]), state(Usable(next()), Empty, &[])),
        (
            Step::DropPrevious,
            state(Usable(next()), Empty, &[&over, &signer()]),
            state(Usable(next()), Empty, &[&signer()]),
        ),
    ] {
        let new = matches!(step, Step::Create | Step::AddNext).then(|| new.clone());
        assert_eq!(after(&before, step, new, &settings(), at(19_000)), expected, "{step:?}");
    }
}

#[test]
fn standing_is_counted_from_when_it_was_first_seen_and_anew_after_an_interruption() {
    let begin = Instant::now();
    let (one, two) = (ca(1, 0, 1), ca(2, 0, 1));
    let mut standing = Standing::default();
    for (second, held, expected) in [
        (0, None, None),
        (5, Some(&one), Some(0)),
        (15, Some(&one), Some(10)),
        (16, None, None),
        (20, Some(&one), Some(0)),
        (29, Some(&one), Some(9)),
        (30, Some(&two), Some(0)),
        (31, Some(&two), Some(1)),
    ] {
        let stood = standing.observe(held, begin + seconds_of(second));
        assert_eq!(stood, expected.map(seconds_of), "{second}");
    }
}

#[test]
fn a_leaf_is_signed_anew_before_its_end_unless_the_authority_ends_with_it() {
    let before = settings().renew_before;
    for (end, now, expected) in [
        (LIFE + 500, LIFE, false),
        (LIFE + 500, LIFE + 399, false),
        (LIFE + 500, LIFE + 400, true),
        (LIFE + 500, LIFE + 900, true),
        (2 * LIFE, 2 * LIFE - 1, false),
    ] {
        let leaf = ca(5, LIFE, end);
        assert_eq!(is_due(&leaf, &signer(), before, at(now)), expected, "{end} {now}");
    }
}

#[test]
fn a_ca_of_which_a_certificate_is_in_use_is_remembered() {
    let (one, other, now) = (next(), signer(), at(19_500));
    let mut state = State { signer: Place::Usable(one.clone()), ..State::default() };
    assert!(!state.remember(&one, now));
    assert!(state.remember(&other, now));
    assert!(!state.remember(&other, now), "it is known by now");
    assert_eq!(bundle(&state, now), [&other, &one]);
    let mut over = State::default();
    assert!(!over.remember(&other, at(2 * LIFE)), "nobody can use it any more");
}
