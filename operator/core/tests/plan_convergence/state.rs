//! Where a test begins, and what happens in it: any combination of what can be stored, and of what
//! users, other controllers and bad luck do.

mod stored;

use proptest::{collection::vec, option, prelude::*, sample::select};
use trainjob_api::time::Timestamp;
use trainjob_core::{
    lifecycle::deadline::Clock,
    observed::{Propagation, Settings},
};

pub(crate) use self::stored::{count, end, set_hold, set_patch};
use crate::cluster::Fault;

/// When every test begins.
const START: i64 = 100_000;
/// The first and last seconds that Kubernetes can store.
const TIMES: (i64, i64) = (-62_167_219_200, 253_402_207_200);

/// What is stored at the start.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    settings: Settings,
    job: Job,
    runtime: RuntimeState,
    snapshot: SnapshotState,
    job_set: Option<JobSetState>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is one thing that may be stored or not")]
#[derive(Debug, Clone)]
struct Job {
    suspend: Option<bool>,
    deadline: Option<i64>,
    ttl: Option<i32>,
    hold: Option<String>,
    created: i64,
    elsewhere: bool,
    remote_copy: bool,
    terminating: bool,
    unknown_kind: bool,
    patch: u8,
    conditions: Vec<(usize, bool, i64)>,
    active: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RuntimeState {
    Absent,
    Broken,
    Image(u8),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum SnapshotState {
    Absent,
    Of(Owner, u8),
    Damaged,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Owner {
    ThisJob,
    Predecessor,
    Nobody,
}

#[derive(Debug, Clone)]
struct JobSetState {
    owner: Owner,
    created: i64,
    suspended: bool,
    terminating: Option<i64>,
    kept: bool,
    ends: Vec<(bool, i64)>,
    active: Option<i32>,
    patch: u8,
    pods: bool,
}

/// One thing that happens.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Suspend(bool),
    SetDeadline(Option<i64>),
    SetTtl(Option<i32>),
    SetHold(Option<String>),
    Patch(u8),
    DeleteJob {
        background: bool,
        kept: bool,
    },
    DropFinalizers,
    Recreate,
    Runtime(RuntimeState),
    /// It makes room for others in the operator's memory.
    RuntimeEvicted,
    Snapshot(SnapshotState),
    JobSetCounts(Option<i32>),
    JobSetEnds {
        completed: bool,
        at: i64,
    },
    JobSetSuspended(bool),
    JobSetDeleted {
        kept: bool,
    },
    JobSetDropped,
    JobSetMade(Owner),
    PodsEnd,
    CollectGarbage,
    Crash,
    Wait(i64),
}

/// An event, and how much of it the operator notices at once.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) event: Event,
    /// Which watches deliver what is new.
    pub(crate) delivered: Delivered,
    /// What goes wrong with the first change that the operator asks for.
    pub(crate) fault: Option<Fault>,
    /// Whether the operator works on the job.
    pub(crate) work: bool,
}

/// Watches are not ordered with each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Delivered {
    Nothing,
    Job,
    JobSet,
    Everything,
}

/// The types and reasons of conditions that may be stored. `Suspended` may be False as well.
const CONDITIONS: [(&str, &str); 7] = [
    ("Suspended", "Suspended"),
    ("Complete", "AllJobsCompleted"),
    ("Failed", "FailedJobs"),
    ("Failed", "DeadlineExceeded"),
    ("Failed", "TrainingRuntimeNotSupported"),
    ("Waiting", "RuntimeNotFound"),
    ("TheirOwn", "Theirs"),
];

/// Mostly an instant near the start, sometimes any that can be stored.
fn time() -> impl Strategy<Value = i64> {
    prop_oneof![9 => START - 300..START + 100, 1 => TIMES.0..=TIMES.1]
}

fn deadline() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        3 => Just(None),
        6 => (1..400_i64).prop_map(Some),
        1 => any::<i64>().prop_map(Some),
        1 => select(vec![i64::MIN, -1, 0, i64::MAX - START, i64::MAX]).prop_map(Some),
    ]
}

fn ttl() -> impl Strategy<Value = Option<i32>> {
    prop_oneof![
        3 => Just(None),
        6 => (0..400_i32).prop_map(Some),
        1 => any::<i32>().prop_map(Some),
        1 => select(vec![i32::MIN, -1, 0, i32::MAX]).prop_map(Some),
    ]
}

/// What the annotation says, which may be anything.
fn hold() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        6 => Just(None),
        5 => (START - 300..START + 600).prop_map(|at| Some(Timestamp(at).to_string())),
        1 => select(vec!["", "soon", "9999-12-30T00:00:00Z"]).prop_map(|text| Some(text.into())),
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.1)
}

fn counts() -> impl Strategy<Value = Option<i32>> {
    option::of(0..3_i32)
}

fn owners() -> impl Strategy<Value = Owner> {
    prop_oneof![8 => Just(Owner::ThisJob), 1 => Just(Owner::Predecessor), 1 => Just(Owner::Nobody)]
}

fn runtimes() -> impl Strategy<Value = RuntimeState> {
    use RuntimeState::{Absent, Broken, Image};
    prop_oneof![1 => Just(Absent), 1 => Just(Broken), 4 => (0..3_u8).prop_map(Image)]
}

fn snapshots() -> impl Strategy<Value = SnapshotState> {
    prop_oneof![
        4 => Just(SnapshotState::Absent),
        4 => (owners(), 0..3_u8).prop_map(|(owner, image)| SnapshotState::Of(owner, image)),
        1 => Just(SnapshotState::Damaged),
    ]
}

fn stored_conditions() -> impl Strategy<Value = Vec<(usize, bool, i64)>> {
    let one = (0..CONDITIONS.len(), prop::bool::weighted(0.8), time());
    prop_oneof![2 => Just(vec![]), 3 => vec(one, 0..4)]
}

prop_compose! {
    fn jobs()(
        suspend in option::of(any::<bool>()),
        (deadline, ttl, hold) in (deadline(), ttl(), hold()),
        created in time(),
        (elsewhere, remote_copy, terminating, unknown_kind) in (rarely(), rarely(), rarely(), rarely()),
        patch in 0..3_u8,
        conditions in stored_conditions(),
        active in counts(),
    ) -> Job {
        Job {
            suspend, deadline, ttl, hold, created, elsewhere, remote_copy, terminating, unknown_kind,
            patch, conditions, active,
        }
    }
}

prop_compose! {
    fn job_sets()(
        owner in owners(),
        created in time(),
        (suspended, kept, pods) in (any::<bool>(), rarely(), any::<bool>()),
        terminating in prop_oneof![5 => Just(None), 1 => time().prop_map(Some)],
        ends in prop_oneof![3 => Just(vec![]), 1 => vec((any::<bool>(), time()), 1..3)],
        active in counts(),
        patch in 0..3_u8,
    ) -> JobSetState {
        JobSetState { owner, created, suspended, terminating, kept, ends, active, patch, pods }
    }
}

prop_compose! {
    /// Everything that may be stored.
    pub(crate) fn starts()(
        last_resume in any::<bool>(),
        background in rarely(),
        ttl_for_managed_elsewhere in any::<bool>(),
        deadline_warning in select(vec![0, 600, 100_000]),
        maximum_hold in select(vec![0, 100, 2_592_000]),
        job in jobs(),
        runtime in runtimes(),
        snapshot in snapshots(),
        job_set in option::of(job_sets()),
    ) -> Start {
        let settings = Settings {
            deadline_clock: if last_resume { Clock::LastResume } else { Clock::Creation },
            deletion_propagation:
                if background { Propagation::Background } else { Propagation::Foreground },
            ttl_for_managed_elsewhere,
            deadline_warning,
            maximum_hold,
        };
        Start { settings, job, runtime, snapshot, job_set }
    }
}

/// Everything that may happen.
pub(crate) fn anything() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => of_suspension(),
        4 => of_release(),
        1 => deadline().prop_map(Event::SetDeadline),
        1 => ttl().prop_map(Event::SetTtl),
        1 => hold().prop_map(Event::SetHold),
        1 => (any::<bool>(), any::<bool>())
            .prop_map(|(background, kept)| Event::DeleteJob { background, kept }),
        1 => Just(Event::DropFinalizers),
        1 => Just(Event::Recreate),
        1 => runtimes().prop_map(Event::Runtime),
        1 => snapshots().prop_map(Event::Snapshot),
        1 => counts().prop_map(Event::JobSetCounts),
        1 => (any::<bool>(), time()).prop_map(|(completed, at)| Event::JobSetEnds { completed, at }),
        1 => any::<bool>().prop_map(Event::JobSetSuspended),
        1 => any::<bool>().prop_map(|kept| Event::JobSetDeleted { kept }),
    ]
}

/// What happens to a job that is suspended, changed and resumed.
pub(crate) fn of_suspension() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => any::<bool>().prop_map(Event::Suspend),
        3 => (0..3_u8).prop_map(Event::Patch),
        1 => Just(Event::Crash),
        1 => Just(Event::RuntimeEvicted),
    ]
}

/// What happens to a job that is to be released.
pub(crate) fn of_release() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => owners().prop_map(Event::JobSetMade),
        1 => Just(Event::JobSetDropped),
        1 => Just(Event::PodsEnd),
        2 => Just(Event::CollectGarbage),
        3 => (1..200_i64).prop_map(Event::Wait),
        1 => Just(Event::Crash),
    ]
}

/// Jobs without an end in sight, whose JobSet can be made.
pub(crate) fn endless() -> impl Strategy<Value = Start> {
    starts().prop_map(|mut start| {
        start.job = Job { deadline: None, conditions: vec![], unknown_kind: false, ..start.job };
        start.runtime = RuntimeState::Image(1);
        start
    })
}

/// Jobs that their deadline has failed.
pub(crate) fn failed() -> impl Strategy<Value = Start> {
    let by_deadline = CONDITIONS.iter().position(|(_, reason)| *reason == "DeadlineExceeded");
    starts().prop_map(move |mut start| {
        start.job.conditions = vec![(by_deadline.unwrap(), true, START)];
        start
    })
}

/// Some events, one after the other.
pub(crate) fn steps(event: impl Strategy<Value = Event>) -> impl Strategy<Value = Vec<Step>> {
    let delivered = prop_oneof![
        2 => Just(Delivered::Nothing),
        1 => Just(Delivered::Job),
        1 => Just(Delivered::JobSet),
        6 => Just(Delivered::Everything),
    ];
    let faults = select(vec![Fault::Lost, Fault::ReplyLost]);
    let fault = prop_oneof![3 => Just(None), 1 => faults.prop_map(Some)];
    let step = (event, delivered, fault, prop::bool::weighted(0.9))
        .prop_map(|(event, delivered, fault, work)| Step { event, delivered, fault, work });
    vec(step, 0..10)
}
