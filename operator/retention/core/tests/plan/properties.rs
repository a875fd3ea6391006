//! What holds for all objects, policies and times, sensible or not.

use std::sync::Arc;

use proptest::{array, collection::vec, option, prelude::*, sample::select};
use trainjob_api::time::Timestamp;
use trainjob_retention_core::{
    facts::{Facts, Owner},
    keep_last::Groups,
    kind::BuiltIn,
    labels::Labels,
    outcome::{Bond, Guards, Outcome},
    plan::{Act, Answers, Delay, FoundOwner, OwnerAnswer, Plan, Release, plan},
    policies::{NamespacePolicies, Policies},
    policy::{
        Annotation, Decide, Delete, KeepLast, Lifetime, Limits, Match, Mode, OwnTtl, Owned, Phases,
        PodsStage, Policy, Reach, RuleAction, Scope, UnreadablePolicy,
    },
    seconds::Seconds,
    selector::Selector,
    uid::Uid,
    wish::{HoldWish, TtlWish, Wishes},
};

use crate::scene::{
    controller, job_with, namespace, policy, rules, selector, selector_without, there_for,
};

/// Any instant, those at the ends of time and those close together first.
fn instant() -> impl Strategy<Value = Timestamp> {
    let ends = select(vec![i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX]);
    prop_oneof![ends, -300..300_i64, any::<i64>()].prop_map(Timestamp)
}

fn seconds() -> impl Strategy<Value = Seconds> {
    let short = (0..300_i64).prop_map(|seconds| Seconds::new(seconds).unwrap());
    prop_oneof![4 => short, 1 => Just(Seconds::MAX)]
}

fn hold() -> impl Strategy<Value = Option<HoldWish>> {
    option::of(prop_oneof![instant().prop_map(HoldWish::Until), Just(HoldWish::Unreadable)])
}

fn wishes() -> impl Strategy<Value = Wishes> {
    let ttl = prop_oneof![seconds().prop_map(TtlWish::Seconds), Just(TtlWish::Unreadable)];
    (option::of(ttl), hold()).prop_map(|(ttl, hold)| Wishes { ttl, hold })
}

fn labels() -> impl Strategy<Value = Labels> {
    let value = || option::of(select(vec!["x", "y"]));
    (value(), value()).prop_map(|(a, b)| {
        let present =
            [("a", a), ("b", b)].into_iter().filter_map(|(key, value)| Some((key, value?)));
        crate::scene::labels(&present.collect::<Vec<_>>())
    })
}

fn owner() -> impl Strategy<Value = Owner> {
    select(vec![Owner::None, Owner::Others, controller()])
}

fn object() -> impl Strategy<Value = Facts> {
    let times = (instant(), option::weighted(0.95, instant()));
    let bonds = select(vec![Bond::None, Bond::UntilOwnerFinished, Bond::OnlyWithOwner]);
    let end = (select(Outcome::ALL.to_vec()), option::of(seconds()), any::<(bool, bool)>(), bonds);
    let flags = (option::weighted(0.05, instant()), prop::bool::weighted(0.05));
    (times, end, wishes(), labels(), owner(), flags, 0..9_u8).prop_map(
        |((created, time), (outcome, own_ttl, guards, bond), wishes, labels, owner, flags, uid)| {
            let object = job_with(|finish| {
                (finish.time, finish.outcome, finish.own_ttl) = (time.into(), outcome, own_ttl);
                finish.guards = Guards { release: guards.0, archive: guards.1 };
                finish.bond = bond;
            });
            let (terminating, remote_copy) = (flags.0.into(), flags.1);
            let uid = Uid::from(&*uid.to_string());
            Facts { created, wishes, labels, owner, terminating, remote_copy, uid, ..object }
        },
    )
}

fn answers() -> impl Strategy<Value = Answers> {
    let found = (option::of(instant()), any::<(bool, bool)>(), hold()).prop_map(
        |(finished, (owned, terminating), hold)| {
            OwnerAnswer::Found(FoundOwner { finished, owned, terminating, hold })
        },
    );
    let owner = option::of(prop_oneof![Just(OwnerAnswer::Gone), found]);
    let release = option::of(select(vec![Release::Pending, Release::Done]));
    (owner, release, any::<bool>()).prop_map(|(owner, release, pods_deleted)| Answers {
        owner,
        release,
        pods_deleted,
    })
}

fn a_selector() -> impl Strategy<Value = Selector> {
    select(vec![Selector::default(), selector(&[("a", "x")]), selector_without("b")])
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    let ages = (seconds(), option::of(seconds()))
        .prop_map(|(minimum, maximum)| (minimum, maximum.map(|maximum| maximum.max(minimum))));
    let keep_last = (1..3_i64, select(vec![vec![], vec!["a"]]), ages).prop_map(
        |(count, keys, (minimum, maximum))| {
            let keys = keys.into_iter().map(Arc::from).collect();
            Lifetime::KeepLast(KeepLast::new(count, keys, minimum, maximum).unwrap())
        },
    );
    prop_oneof![3 => seconds().prop_map(Lifetime::Ttl), 1 => Just(Lifetime::Never), 2 => keep_last]
}

fn action() -> impl Strategy<Value = RuleAction> {
    let pods =
        seconds().prop_map(|ttl| PodsStage::new(("batch", "Job"), ttl, Phases::All).unwrap());
    let delete = select(vec![Delete::Object, Delete::Object, Delete::Owner]);
    let decide = (lifetime(), option::of(pods), delete).prop_map(|(lifetime, pods, delete)| {
        let without = Decide::new(lifetime.clone(), None, delete).unwrap();
        RuleAction::Decide(Decide::new(lifetime, pods, delete).unwrap_or(without))
    });
    prop_oneof![1 => Just(RuleAction::Defer), 4 => decide]
}

fn scope() -> impl Strategy<Value = Scope> {
    let limits = array::uniform3(option::of(seconds())).prop_map(|[minimum, maximum, hold]| {
        let maximum = maximum.map(|maximum| maximum.max(minimum.unwrap_or_default()));
        Limits::new(minimum, maximum, hold).unwrap()
    });
    let namespaces = Selector::default();
    let cluster =
        limits.prop_map(move |limits| Scope::Cluster { namespaces: namespaces.clone(), limits });
    prop_oneof![Just(Scope::Namespace("a".into())), cluster]
}

fn a_policy() -> impl Strategy<Value = Policy> {
    let matching = Match::new(Some(vec![Outcome::Failed]), None, Selector::default()).unwrap();
    let modes = select(vec![Mode::Audit, Mode::Enforce, Mode::Enforce]);
    let owned = select(vec![Owned::Skip, Owned::AfterOwner, Owned::Any]);
    let overrides = (
        select(vec![Annotation::Allowed, Annotation::Ignored]),
        select(vec![OwnTtl::Respected, OwnTtl::Ignored]),
    );
    (
        scope(),
        modes,
        (-1..2_i32, -1..2_i64),
        a_selector(),
        (action(), action()),
        owned,
        overrides,
        seconds(),
    )
        .prop_map(
            move |(
                scope,
                mode,
                (priority, created),
                selector,
                (first, last),
                owned,
                overrides,
                hold,
            )| {
                let (annotation, own_ttl) = overrides;
                Policy {
                    scope,
                    mode,
                    priority,
                    created: Timestamp(created),
                    selector,
                    rules: rules(vec![(matching.clone(), first)], last.clone()),
                    owned,
                    annotation,
                    own_ttl,
                    maximum_hold: hold,
                    ..policy(last)
                }
            },
        )
}

/// Policies whose names tell them apart.
fn policies() -> impl Strategy<Value = Vec<Policy>> {
    vec(a_policy(), 0..6).prop_map(|policies| {
        let named = policies.into_iter().enumerate();
        named
            .map(|(index, policy)| {
                let name = format!("p{index}");
                Policy { uid: Uid::from(&*name), name: name.into(), ..policy }
            })
            .collect()
    })
}

/// The groups that objects make under policies.
fn groups(objects: &[Facts], policies: &NamespacePolicies, now: Timestamp) -> Groups {
    let mut groups = Groups::default();
    let governed = objects.iter().filter_map(|object| policies.governing(object));
    for candidate in governed.filter_map(|governed| governed.candidate(&Answers::default(), now)) {
        groups.enter(&candidate);
    }
    groups
}

fn without_hold(object: &Facts) -> Facts {
    let ttl = object.wishes.ttl.filter(|ttl| *ttl != TtlWish::Unreadable);
    Facts { wishes: Wishes { hold: None, ttl }, ..object.clone() }
}

/// When the object is due; never is last.
fn due(plan: &Plan<'_>) -> i128 {
    plan.due.map_or(i128::MAX, |due| i128::from(due.at.0))
}

fn is_deletion(act: Act) -> bool {
    matches!(act, Act::DeletePods | Act::DeleteObject | Act::DeleteOwner)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nothing_is_deleted_before_it_is_due_nor_before_any_value_would_let_it(
        objects in vec(object(), 1..5), policies in policies(), answers in answers(), now in instant(),
    ) {
        let there = there_for(BuiltIn::Job, policies);
        let groups = groups(&objects, &there, now);
        for object in &objects {
            let Some(governed) = there.governing(object) else { continue };
            let plan = governed.plan(&answers, &groups, now);
            let Some(time) = object.finishes[0].time.get() else {
                prop_assert!(!is_deletion(plan.act));
                continue;
            };
            let earliest = time.max(object.created).plus(governed.bounds.minimum().get());
            for due in plan.due.iter().chain(&plan.pods_due) {
                prop_assert!(due.at >= earliest, "{due:?}");
            }
            let due = match plan.act {
                Act::DeletePods => plan.pods_due,
                Act::DeleteObject | Act::DeleteOwner => plan.due,
                Act::Nothing | Act::Ask(_) => continue,
            };
            prop_assert!(due.unwrap().at <= now);
            prop_assert!(object.terminating.get().is_none() && !object.remote_copy);
        }
    }

    #[test]
    fn a_hold_never_makes_anything_due_earlier(
        object in object(), policies in policies(), answers in answers(), now in instant(),
    ) {
        let there = there_for(BuiltIn::Job, policies);
        let free = without_hold(&object);
        let plan_of = |object| plan(object, &answers, &Groups::default(), &there, now);
        let (Some(held), Some(free)) = (plan_of(&object), plan_of(&free)) else { return Ok(()) };
        prop_assert!(due(&held) >= due(&free));
        if is_deletion(held.act) {
            prop_assert!(is_deletion(free.act));
        }
    }

    #[test]
    fn a_hold_reaches_no_further_than_it_may(
        object in object(), policies in policies(), answers in answers(), now in instant(),
    ) {
        let there = there_for(BuiltIn::Job, policies);
        let free = without_hold(&object);
        let answers = Answers {
            owner: answers.owner.map(|owner| match owner {
                OwnerAnswer::Found(found) => OwnerAnswer::Found(FoundOwner { hold: None, ..found }),
                OwnerAnswer::Gone => OwnerAnswer::Gone,
            }),
            ..answers
        };
        let plan_of = |object| plan(object, &answers, &Groups::default(), &there, now);
        let (Some(held), Some(free)) = (plan_of(&object), plan_of(&free)) else { return Ok(()) };
        // Without a readable annotation the value is the rule's, and that is what a hold is counted from.
        prop_assert_eq!(held.due.is_some(), free.due.is_some());
        if let (Some(later), Some(due)) = (held.due, free.due) {
            prop_assert!(later.at <= due.at.plus(held.policy.maximum_hold.get()));
        }
    }

    #[test]
    fn limits_bind_every_value_but_not_holds_and_owners(
        objects in vec(object(), 1..5), policies in policies(), answers in answers(), now in instant(),
    ) {
        let there = there_for(BuiltIn::Job, policies);
        let groups = groups(&objects, &there, now);
        for object in &objects {
            let Some(governed) = there.governing(object) else { continue };
            let plan = governed.plan(&answers, &groups, now);
            let (Some(due), Some(time)) = (plan.due, governed.finish.time.get()) else { continue };
            let start = time.max(object.created);
            prop_assert!(due.at >= start.plus(governed.bounds.minimum().get()));
            let may_be_later = matches!(due.delay, Some(Delay::Hold(_) | Delay::Owner));
            if let (Some(maximum), false) = (governed.bounds.maximum(), may_be_later) {
                prop_assert!(due.at <= start.plus(maximum.get()));
            }
        }
    }

    #[test]
    fn policies_that_audit_decide_nothing(
        objects in vec(object(), 1..5), policies in policies(), answers in answers(), now in instant(),
    ) {
        let enforcing = policies.iter().filter(|policy| policy.mode == Mode::Enforce).cloned().collect();
        let (all, enforcing) =
            (there_for(BuiltIn::Job, policies), there_for(BuiltIn::Job, enforcing));
        let groups = [&all, &enforcing].map(|policies| groups(&objects, policies, now));
        for object in &objects {
            let with = plan(object, &answers, &groups[0], &all, now);
            prop_assert_eq!(with, plan(object, &answers, &groups[1], &enforcing, now));
        }
    }

    #[test]
    fn a_policy_that_audits_shows_what_it_does_when_it_enforces(
        object in object(), policies in policies(), answers in answers(), now in instant(),
    ) {
        let there = there_for(BuiltIn::Job, policies.clone());
        for shown in there.audited(&object) {
            let enforce = |policy: &Policy| {
                let enforces = policy.name == shown.policy.name || policy.mode == Mode::Enforce;
                enforces.then(|| Policy { mode: Mode::Enforce, ..policy.clone() })
            };
            let enforced = there_for(BuiltIn::Job, policies.iter().filter_map(enforce).collect());
            let done = plan(&object, &answers, &Groups::default(), &enforced, now).unwrap();
            let shown = shown.plan(&answers, &Groups::default(), now);
            prop_assert_eq!(&done.policy.name, &shown.policy.name);
            prop_assert_eq!((done.state, done.due, done.act), (shown.state, shown.due, shown.act));
        }
    }

    #[test]
    fn the_order_in_which_policies_are_found_does_not_matter(
        object in object(),
        (policies, shuffled) in policies().prop_flat_map(|it| (Just(it.clone()), Just(it).prop_shuffle())),
        answers in answers(), now in instant(),
    ) {
        let [one, other] = [policies, shuffled].map(|policies| there_for(BuiltIn::Job, policies));
        let plan_under = |policies| plan(&object, &answers, &Groups::default(), policies, now);
        prop_assert_eq!(plan_under(&one), plan_under(&other));
        let audited = |policies: &NamespacePolicies| {
            policies.audited(&object).map(|governed| governed.policy.name.clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(audited(&one), audited(&other));
    }

    #[test]
    fn time_alone_changes_a_plan_at_the_instant_it_names(
        object in object(), policies in policies(), answers in answers(), now in instant(), later in 1..400_i64,
    ) {
        let there = there_for(BuiltIn::Job, policies);
        let plan_at = |now| plan(&object, &answers, &Groups::default(), &there, now);
        let Some(first) = plan_at(now) else { return Ok(()) };
        let later = now.plus(later);
        if first.next.is_none_or(|next| later < next) {
            let second = plan_at(later).unwrap();
            prop_assert_eq!((first.state, first.act, first.due), (second.state, second.act, second.due));
        } else {
            prop_assert!(first.next > Some(now));
        }
    }

    #[test]
    fn an_unreadable_policy_for_everything_lets_nothing_be_deleted(
        object in object(), policies in policies(), answers in answers(), now in instant(),
    ) {
        let policies = policies.into_iter().map(Arc::new).collect();
        let reach = Reach::Scope(Scope::Namespace("a".into()));
        let unreadable = UnreadablePolicy { reach, selector: Selector::default() };
        let policies = Policies::new(Some(BuiltIn::Job), policies, vec![unreadable]);
        let there = policies.in_namespace(&namespace("a"));
        let plan = plan(&object, &answers, &Groups::default(), &there, now);
        prop_assert!(plan.is_none_or(|plan| plan.act == Act::Nothing));
    }
}
