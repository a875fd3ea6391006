//! The end of a schedule: nothing goes wrong any more, time passes, and then everything has to be as the rules say.

use trainjob_api::time::Timestamp;
use trainjob_core::Now;

use super::{
    judge::Rule,
    process::{Process, policy_uid},
    rules::PolicyId,
    server::SOURCES,
    world::World,
};
use crate::random::Random;

/// How long an object that is due may be there at the end, in seconds.
const LATE: i64 = 120;
/// How old `enforcedThrough` may be at the end, in seconds.
const OLD: i64 = 130;

/// The steps of time at the end: how many, and how long each is, in milliseconds.
const STEPS: [(u32, i64); 2] = [(24, 10_000), (40, 90_000)];
/// How often everybody may act at one time until nothing is left to do.
const TURNS: u32 = 30;

/// Lets everything come to rest, and judges that.
pub fn end(world: &mut World, random: &mut Random) {
    calm_down(world, random);
    for (steps, length) in STEPS {
        for step in 0..steps {
            world.wait(length);
            act(world);
            // Trips are counted anew while time passes, so they are acknowledged now and then.
            if step % 4 == 3 {
                acknowledge_all(world);
            }
            if world.judge.violation.is_some() {
                return;
            }
        }
    }
    act(world);
    judge(world);
}

fn calm_down(world: &mut World, random: &mut Random) {
    world.strays.clear();
    world.server.may_delete = true;
    let now = world.server.seconds();
    for finished in world.server.owners.values_mut() {
        *finished = finished.or_else(|| random.percent(60).then_some(now));
    }
    for process in &mut world.processes {
        process.frozen_until = [0; SOURCES];
        process.clock = Some((500, 500));
    }
    let understood: Vec<PolicyId> = world.server.view.policies.keys().copied().collect();
    for id in understood {
        world.server.edit_policy(id, |policy| policy.spec.unknown = false);
        world.judge.edited(&world.server, Some(id));
    }
    world.keep_one_leader();
}

/// Everybody does all that there is to do.
fn act(world: &mut World) {
    for _ in 0..TURNS {
        let (mut waits, mut is_evaluated) = (false, true);
        world.settle();
        for index in 0..world.processes.len() {
            world.tick(index, 1_000);
            // The rounds of an evaluation.
            for _ in 0..3 {
                if let Some(process) = world.processes.get_mut(index) {
                    is_evaluated &= !process.evaluate(&world.server, 1_000);
                }
            }
            let ready = world.processes.get(index).map(|it| it.ready.clone()).unwrap_or_default();
            for key in ready {
                world.pass(index, &key);
            }
            waits |= world.give_leave(index);
        }
        let server = &world.server;
        let is_told = |process: &Process| (0..SOURCES).all(|it| !process.lags(it, server));
        let is_idle = |process: &Process| {
            is_evaluated
                && process.ready.is_empty()
                && process.under_way.is_empty()
                && is_told(process)
        };
        if waits {
            world.wait(1_000);
        } else if world.processes.iter().all(is_idle) {
            return;
        }
    }
}

fn acknowledge_all(world: &mut World) {
    let policies: Vec<PolicyId> = world.server.view.policies.keys().copied().collect();
    for id in policies {
        world.acknowledge(id);
    }
}

fn judge(world: &mut World) {
    let server = &world.server;
    let now = server.seconds();
    for job in server.view.jobs.values() {
        let verdict = server.view.verdict(job, &server.owners, now);
        let is_late = verdict.and_then(|it| it.due).is_some_and(|due| due <= now - LATE);
        let trip =
            verdict.and_then(|it| server.view.policies.get(&it.policy)?.record.clone()?.trip);
        world
            .judge
            .check(!is_late, Rule::Late, || format!("at {now}: {verdict:?} of {job:?}; {trip:?}"));
    }
    for policy in server.view.policies.values() {
        let record = policy.record.as_ref();
        if !policy.spec.enforces {
            world.judge.check(record.is_none(), Rule::Status, || format!("{policy:?} in Audit"));
            continue;
        }
        let digest = server.digests.get(&policy.uid);
        let is_right = record.is_some_and(|record| {
            Some(&record.digest) == digest && record.trip.is_none() && record.through.0 >= now - OLD
        });
        world.judge.check(is_right, Rule::Status, || format!("at {now}: {policy:?}"));
    }
    count(world, now);
}

/// What the leader counts is what there is.
fn count(world: &mut World, now: i64) {
    let Some(leader) = world.processes.iter_mut().find(|process| process.leads) else { return };
    let survey = leader.counts(Now::at(Timestamp(now)));
    let view = &world.server.view;
    for (id, policy) in view.policies.iter().filter(|(_, policy)| policy.spec.enforces) {
        let verdicts = view.jobs.values().filter_map(|job| {
            let verdict = view.verdict(job, &world.server.owners, now)?;
            (verdict.policy == *id).then_some(verdict)
        });
        let governed = u64::try_from(verdicts.count()).unwrap_or(u64::MAX);
        let counted =
            survey.tally(&policy_uid(policy.uid)).map_or(0, |tally| tally.counts.finished);
        world.judge.check(counted == governed, Rule::Status, || {
            format!("{counted} of {governed} are counted under {id:?}")
        });
    }
}
