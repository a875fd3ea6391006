//! What people and controllers do.

use super::{
    objects::{
        Action, Job, Limits, NAMESPACES, Namespace, Outcome, Owned, Policy, Rule, Spec, Wish,
    },
    rules::{JobId, PolicyId},
    world::World,
};
use crate::random::Random;

/// The most Jobs of a namespace.
const MOST_JOBS: usize = 7;
/// How late a controller tells an end at most, in seconds.
const LATEST_END: i64 = 400;
const TTLS: [i64; 7] = [0, 5, 30, 60, 120, 600, 100_000];

/// Namespaces and policies, and a few Jobs.
pub(super) fn begin(world: &mut World, random: &mut Random) {
    for index in 0..NAMESPACES.len() {
        let env = u8::try_from(random.below(2)).unwrap_or_default();
        world.server.put_namespace(index, Some(Namespace { env, terminating: false }));
    }
    for _ in 0..random.between(1, 3) {
        create_policy(world, random);
    }
    if !world.is_calm {
        for _ in 0..random.below(12) {
            work(world, random);
        }
    }
    if world.is_steady {
        begin_with_old_jobs(world, random);
    }
}

/// Jobs that have run for longer than an end may be late.
fn begin_with_old_jobs(world: &mut World, random: &mut Random) {
    for _ in 0..12 {
        create_job(world, random);
    }
    for id in world.server.view.jobs.keys().copied().collect::<Vec<_>>() {
        world.server.edit_job(id, |job| job.end = None);
    }
    world.wait(LATEST_END * 1_000);
}

fn number(random: &mut Random, below: usize) -> u32 {
    u32::try_from(random.below(below)).unwrap_or_default()
}

fn label(random: &mut Random) -> Option<u8> {
    let value = u8::try_from(random.below(2)).unwrap_or_default();
    random.percent(80).then_some(value)
}

fn ttl(random: &mut Random) -> i64 {
    random.pick(&TTLS).unwrap_or_default()
}

fn action(random: &mut Random, is_last: bool) -> Action {
    match random.below(10) {
        0 => Action::Keep,
        1 if !is_last || random.percent(40) => Action::Defer,
        2..=4 => Action::KeepLast {
            count: u16::try_from(random.between(1, 3)).unwrap_or(1),
            grouped: random.percent(50),
            minimum: random.pick(&[0, 0, 10, 120]).unwrap_or_default(),
            maximum: random.percent(30).then_some(600),
        },
        _ => Action::Ttl(ttl(random)),
    }
}

fn spec(random: &mut Random) -> Spec {
    let mut rules = Vec::new();
    if random.percent(40) {
        let outcome = random.pick(&[Outcome::Failed, Outcome::Succeeded]);
        rules.push(Rule { outcome, action: action(random, false) });
    }
    rules.push(Rule { outcome: None, action: action(random, true) });
    Spec {
        enforces: random.percent(85),
        priority: i32::try_from(random.below(2)).unwrap_or_default(),
        team: random.percent(30).then(|| u8::from(random.percent(50))),
        env: random.percent(30).then(|| u8::from(random.percent(50))),
        rules,
        annotation: random.percent(50),
        respects_own_ttl: random.percent(60),
        hold: random.pick(&[0, 60, 300, 100_000]).unwrap_or_default(),
        limits: limits(random),
        owned: random.pick(&[Owned::Skip, Owned::AfterOwner, Owned::Any]).unwrap_or(Owned::Skip),
        rate: random.pick(&[0, 1, 5, 20]).unwrap_or_default(),
        max_count: random.pick(&[1, 2, 3, 5]).unwrap_or(1),
        unknown: false,
    }
}

/// Bounds that are in order (R5).
fn limits(random: &mut Random) -> Limits {
    if random.percent(60) {
        return Limits::default();
    }
    let minimum = random.percent(50).then(|| random.pick(&[0, 20, 100]).unwrap_or_default());
    let maximum = random.percent(50).then(|| random.pick(&[100, 900]).unwrap_or_default());
    let hold = random.percent(30).then(|| random.pick(&[0, 30, 600]).unwrap_or_default());
    Limits { minimum, maximum, hold }
}

fn create_policy(world: &mut World, random: &mut Random) {
    let namespace = random.percent(50).then(|| random.below(NAMESPACES.len()));
    let namespace = namespace.filter(|it| world.server.view.namespaces.contains_key(it));
    let id = (namespace, number(random, 2));
    if world.server.view.policies.contains_key(&id) {
        return;
    }
    let (uid, created) = (world.server.new_uid(), world.server.seconds());
    let mut spec = spec(random);
    if namespace.is_some() {
        (spec.env, spec.limits) = (None, Limits::default());
    }
    if world.is_steady {
        // So that an end which is taken for an edit trips soon.
        spec.max_count = 1;
    }
    // An end that is told late makes others due by number since long ago, which the breaker takes for an edit (R41).
    for rule in spec.rules.iter_mut().filter(|_| world.is_steady) {
        if matches!(rule.action, Action::KeepLast { .. }) {
            rule.action = Action::Ttl(ttl(random));
        }
    }
    let (namespace, name) = id;
    let policy = Policy {
        namespace,
        name,
        uid,
        version: 0,
        generation: 0,
        created,
        spec,
        acknowledged: None,
        record: None,
    };
    world.note(|| format!("policy {}", policy.text()));
    world.server.write_policy(policy);
    world.judge.edited(&world.server, Some(id));
}

/// Jobs are created, end, and are created ended; owners finish.
pub(super) fn work(world: &mut World, random: &mut Random) {
    let open: Vec<JobId> = world
        .server
        .view
        .jobs
        .values()
        .filter(|job| job.end.is_none())
        .map(|job| job.key())
        .collect();
    match random.below(10) {
        0 => {
            let owner = world.server.owners.iter().find(|(_, finished)| finished.is_none());
            if let Some(owner) = owner.map(|(owner, _)| *owner) {
                let now = world.server.seconds();
                world.note(|| format!("owner {owner} has finished"));
                world.server.owners.insert(owner, Some(now));
            }
        }
        1..=4 => {
            // A controller that is late is so for all.
            let all = world.is_steady && random.percent(30);
            let ended = if all { open } else { random.pick(&open).into_iter().collect() };
            for id in ended {
                end(world, random, id);
            }
        }
        _ => create_job(world, random),
    }
}

fn end(world: &mut World, random: &mut Random, id: JobId) {
    let outcome = if random.percent(40) { Outcome::Failed } else { Outcome::Succeeded };
    let mut ended = world.server.seconds();
    if world.is_steady && random.percent(60) {
        // Its controller is late. It had not ended before it was there.
        ended -= random.between(0, LATEST_END);
    }
    world.note(|| format!("job {id:?} ends"));
    world.server.edit_job(id, |job| job.end = Some((outcome, ended.max(job.created))));
}

fn create_job(world: &mut World, random: &mut Random) {
    let namespace = random.pick(&[0, 0, 0, 1, 1, 2, 3]).unwrap_or_default();
    let there = world.server.view.namespaces.get(&namespace);
    if there.is_none_or(|there| there.terminating) {
        return;
    }
    let id = (namespace, number(random, MOST_JOBS));
    if world.server.view.jobs.contains_key(&id) {
        return;
    }
    let (uid, now) = (world.server.new_uid(), world.server.seconds());
    let owner = random.percent(15).then(|| world.server.new_uid());
    if let Some(owner) = owner {
        world.server.owners.insert(owner, None);
    }
    // A restored backup has old ends.
    let ago = if random.percent(10) && !world.is_calm { random.between(1, 2_000) } else { 0 };
    let outcome = if random.percent(40) { Outcome::Failed } else { Outcome::Succeeded };
    let job = Job {
        namespace,
        name: id.1,
        uid,
        version: 0,
        created: now,
        end: random.percent(50).then_some((outcome, now - ago)),
        team: label(random),
        experiment: label(random),
        wish: random.percent(10).then(|| wish(random)),
        hold: random.percent(8).then(|| now + random.between(-50, 400)),
        own_ttl: random.percent(10).then(|| ttl(random)),
        owner,
        finalizer: random.percent(10),
        terminating: false,
    };
    world.note(|| format!("job {}", job.text()));
    world.server.put_job(job);
}

fn wish(random: &mut Random) -> Wish {
    if random.percent(25) { Wish::Unreadable } else { Wish::Seconds(ttl(random)) }
}

/// Somebody edits something.
pub(super) fn edit(world: &mut World, random: &mut Random) {
    let jobs: Vec<JobId> = world.server.view.jobs.keys().copied().collect();
    let policies: Vec<PolicyId> = world.server.view.policies.keys().copied().collect();
    let policy = random.pick(&policies);
    let edited = match random.below(20) {
        0..=7 => {
            let many = if random.percent(20) { jobs.len() } else { 1 };
            for _ in 0..many {
                if let Some(id) = random.pick(&jobs) {
                    edit_job(world, random, id);
                    world.judge.edited(&world.server, None);
                }
            }
            None
        }
        8..=13 => {
            if let Some(id) = policy {
                edit_policy(world, random, id);
            }
            policy
        }
        14 => {
            create_policy(world, random);
            None
        }
        15 => {
            if let Some(id) = policy.filter(|_| random.percent(50)) {
                world.note(|| format!("policy {id:?} is deleted"));
                world.server.remove_policy(id);
            }
            None
        }
        16 => {
            edit_namespace(world, random);
            None
        }
        _ => {
            if let Some(id) = policy {
                acknowledge(world, random, id);
            }
            None
        }
    };
    world.judge.edited(&world.server, edited);
}

fn edit_job(world: &mut World, random: &mut Random, id: JobId) {
    let now = world.server.seconds();
    world.note(|| format!("job {id:?} is edited"));
    if random.percent(10) {
        return world.server.remove_job(id);
    }
    let (label, what, until) = (label(random), random.below(8), now + random.between(-100, 600));
    let (wish, ttl) = (wish(random), ttl(random));
    let is_set = random.percent(60);
    world.server.edit_job(id, |job| match what {
        0 => job.team = label,
        1 => job.experiment = label,
        2 => job.wish = is_set.then_some(wish),
        3 | 4 => job.hold = is_set.then_some(until),
        5 => job.own_ttl = is_set.then_some(ttl),
        6 => job.finalizer = is_set && job.finalizer,
        // Somebody tries it again.
        _ if !job.terminating => job.end = None,
        _ => {}
    });
}

fn edit_policy(world: &mut World, random: &mut Random, id: PolicyId) {
    let (new, what) = (spec(random), random.below(13));
    world.server.edit_policy(id, |policy| {
        let of_cluster = policy.namespace.is_none();
        let spec = &mut policy.spec;
        match what {
            0..=2 => spec.rules = new.rules,
            3 | 4 => spec.enforces = !spec.enforces,
            5 => spec.team = new.team,
            6 if of_cluster => spec.env = new.env,
            7 if of_cluster => spec.limits = new.limits,
            8 => spec.priority = new.priority,
            9 => (spec.rate, spec.max_count) = (new.rate, new.max_count),
            10 => (spec.annotation, spec.respects_own_ttl) = (new.annotation, new.respects_own_ttl),
            11 => (spec.owned, spec.hold) = (new.owned, new.hold),
            _ => spec.unknown = !spec.unknown,
        }
    });
    let text = world.server.view.policies.get(&id).map(|policy| policy.text());
    world.note(|| format!("policy {}", text.unwrap_or_default()));
}

fn edit_namespace(world: &mut World, random: &mut Random) {
    let index = random.below(NAMESPACES.len());
    let changed = match world.server.view.namespaces.get(&index) {
        None => Some(Namespace { env: 0, terminating: false }),
        Some(there) if there.terminating => None,
        Some(there) if random.percent(30) => Some(Namespace { terminating: true, ..there.clone() }),
        Some(there) => Some(Namespace { env: 1 - there.env, ..there.clone() }),
    };
    world.note(|| format!("namespace {index}: {changed:?}"));
    world.server.put_namespace(index, changed);
}

/// Somebody acknowledges what the status says, or something of before.
fn acknowledge(world: &mut World, random: &mut Random, id: PolicyId) {
    if random.percent(70) {
        return world.acknowledge(id);
    }
    let index = random.below(world.trips.len());
    let Some((uid, trip)) = world.trips.get(index).cloned() else { return };
    let is_current = world.server.view.policies.get(&id).is_some_and(|policy| {
        let trip_there = policy.record.as_ref().and_then(|record| record.trip.as_ref());
        policy.uid == uid && trip_there.is_some_and(|there| there.id.as_str() == trip)
    });
    if !is_current {
        world.server.edit_policy(id, |policy| policy.acknowledged = Some(trip));
    }
}
