//! What users and controllers do, at any moment.

use trainjob_api::constants::MULTIKUEUE_ORIGIN_LABEL;
use trainjob_core::observed::Propagation;

use super::world::World;
use crate::{
    objects::{KEPT, add_finalizer, patch, runtime, set_hold, train_job},
    random::Random,
};

#[derive(Debug, Clone, Copy)]
enum Edit {
    Suspend,
    Resume,
    Deadline,
    Ttl,
    Hold,
    Patch,
    Delete,
    Create,
    DeleteJobSet,
    DropJobSet,
    Runtime,
    ForeignJobSet,
    ForeignSnapshot,
    Keep,
    ReleaseKept,
}

const EDITS: [(usize, Edit); 15] = [
    (12, Edit::Suspend),
    (14, Edit::Resume),
    (10, Edit::Deadline),
    (8, Edit::Ttl),
    (8, Edit::Hold),
    (10, Edit::Patch),
    (6, Edit::Delete),
    (14, Edit::Create),
    (7, Edit::DeleteJobSet),
    (4, Edit::DropJobSet),
    (7, Edit::Runtime),
    (3, Edit::ForeignJobSet),
    (1, Edit::ForeignSnapshot),
    (3, Edit::Keep),
    (5, Edit::ReleaseKept),
];

fn deadline(random: &mut Random) -> Option<i64> {
    let any = [None, None, Some(1), Some(2), Some(5), Some(20), Some(100), Some(i64::MAX), Some(0)];
    random.pick(&any).flatten()
}

fn ttl(random: &mut Random) -> Option<i32> {
    let any =
        [None, Some(0), Some(0), Some(1), Some(3), Some(10), Some(60), Some(i32::MAX), Some(-1)];
    random.pick(&any).flatten()
}

/// What the annotation says, which may be anything.
fn hold(world: &World, random: &mut Random) -> Option<String> {
    let until = |seconds| Some(world.server.second().plus(seconds).to_string());
    let any = [
        None,
        None,
        until(-5),
        until(1),
        until(3),
        until(30),
        until(100_000_000),
        Some("soon".to_owned()),
    ];
    any.get(random.below(any.len())).cloned().flatten()
}

/// A user creates a job.
pub(super) fn create(world: &mut World, name: usize, random: &mut Random) {
    let Some(slot) = world.server.slots.get(name).filter(|slot| slot.job.is_none()) else { return };
    let mut job = train_job(&slot.key, world.server.second());
    job.spec.suspend = random.pick(&[None, Some(false), Some(true)]).flatten();
    job.spec.active_deadline_seconds = deadline(random);
    job.spec.ttl_seconds_after_finished = ttl(random);
    job.spec.managed_by = random.percent(6).then(|| "kueue.x-k8s.io/multikueue".into());
    job.spec.runtime_ref.kind = random.percent(4).then(|| "Unknown".into());
    if random.percent(10) {
        set_hold(&mut job, hold(world, random).as_deref());
    }
    if random.percent(5) {
        job.metadata.labels = Some([(MULTIKUEUE_ORIGIN_LABEL.into(), "origin".into())].into());
    }
    patch(&mut job, random.below(3));
    let said = format!(
        "suspend {:?}, deadline {:?}, TTL {:?}",
        job.spec.suspend, job.spec.active_deadline_seconds, job.spec.ttl_seconds_after_finished
    );
    world.server.create_job(name, job);
    world.note(|| format!("a user creates job {name}: {said}"));
}

/// A user does something.
pub(super) fn act(world: &mut World, random: &mut Random) {
    let name = random.below(world.server.slots.len());
    let Some(edit) = random.weighted(&EDITS) else { return };
    if let Edit::Create = edit {
        return create(world, name, random);
    }
    let server = &mut world.server;
    let what = match edit {
        Edit::Suspend | Edit::Resume => {
            let suspend = matches!(edit, Edit::Suspend);
            server.edit_job(name, |job| job.spec.suspend = Some(suspend));
            String::new()
        }
        Edit::Deadline => {
            let seconds = deadline(random);
            server.edit_job(name, |job| job.spec.active_deadline_seconds = seconds);
            format!(" {seconds:?}")
        }
        Edit::Ttl => {
            let seconds = ttl(random);
            server.edit_job(name, |job| job.spec.ttl_seconds_after_finished = seconds);
            format!(" {seconds:?}")
        }
        Edit::Hold => {
            let text = hold(world, random);
            world.server.edit_hold(name, text.as_deref());
            format!(" {text:?}")
        }
        Edit::Patch => {
            let number = random.below(3);
            server.edit_job(name, |job| patch(job, number));
            format!(" {number}")
        }
        Edit::Runtime => {
            let number = random.below(4);
            server.set_runtime(runtime(number));
            format!(" {number}")
        }
        Edit::ForeignJobSet => {
            server.make_foreign_job_set(name, random.percent(50));
            String::new()
        }
        _ => destroy(world, name, edit, random),
    };
    world.note(|| format!("a user: {edit:?} {name}{what}"));
}

fn destroy(world: &mut World, name: usize, edit: Edit, random: &mut Random) -> String {
    let server = &mut world.server;
    match edit {
        Edit::Delete => {
            let background = random.percent(50);
            let propagation =
                if background { Propagation::Background } else { Propagation::Foreground };
            server.delete_job(name, propagation);
            return format!(" {propagation:?}");
        }
        Edit::DeleteJobSet => server.delete_job_set_by_hand(name, random.percent(15)),
        Edit::DropJobSet => server.drop_job_set(name),
        Edit::ForeignSnapshot => server.make_foreign_snapshot(name),
        Edit::Keep => {
            server.edit_job(name, |job| {
                if job.metadata.deletion_timestamp.is_none() {
                    add_finalizer(&mut job.metadata, KEPT);
                }
            });
        }
        _ => server.release_kept(name),
    }
    String::new()
}

#[derive(Debug, Clone, Copy)]
enum Control {
    StartPods,
    EndPods,
    Complete,
    Fail,
    Count,
    Collect,
    CollectEarly,
}

const CONTROLS: [(usize, Control); 7] = [
    (20, Control::StartPods),
    (15, Control::EndPods),
    (12, Control::Complete),
    (6, Control::Fail),
    (12, Control::Count),
    (30, Control::Collect),
    (5, Control::CollectEarly),
];

/// A controller of the cluster does something.
pub(super) fn control(world: &mut World, random: &mut Random) {
    let name = random.below(world.server.slots.len());
    let Some(control) = random.weighted(&CONTROLS) else { return };
    let server = &mut world.server;
    let changed = match control {
        Control::StartPods => server.start_pods(name),
        Control::EndPods => server.end_pods(name),
        Control::Complete => server.end_job_set(name, true),
        Control::Fail => server.end_job_set(name, false),
        Control::Count => server.count(name, i32::try_from(random.below(3)).unwrap_or_default()),
        Control::Collect => server.collect(name, true),
        Control::CollectEarly => server.collect(name, false),
    };
    if changed {
        world.note(|| format!("the cluster: {control:?} {name}"));
    }
}
