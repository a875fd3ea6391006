//! What holds for every TrainJob, whatever is stored and whatever happens to it.
//!
//! An operator in memory works on one job in a [`cluster`] in memory: it knows what its watches have
//! delivered, carries out what `plan` says, and remembers and forgets what the real shell does. Users,
//! other controllers, lost requests and crashes interfere. What may never happen is checked where it
//! would happen: in [`cluster`] where a request takes effect, in [`operator`] where it is planned. What
//! must happen is checked here, whenever the operator knows everything and has nothing to do.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly"
)]

mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod operator;
mod state;

use proptest::prelude::*;
use trainjob_api::{JobSet, TrainJob, time::Timestamp};
use trainjob_core::{
    Action, Plan,
    action::Waiting,
    build::{build, fixed_difference, update_suspended},
    observed::Propagation,
};

use crate::{
    cluster::{
        Cluster, at, brief, conditions, created_at, deadline_due, is_ours, terminal, ttl_due, uid,
    },
    common::{facts, train_job},
    operator::{Operator, Pass, Settled, but_for_held},
    state::{Delivered, Event, Owner, Start, Step},
};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(512),
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_is_stored_leads_to_rest_and_stays_there(start in state::starts()) {
        World::new(&start).settle();
    }

    #[test]
    fn whatever_happens_leads_to_rest_and_does_no_harm(
        start in state::starts(),
        steps in state::steps(state::anything()),
    ) {
        World::after(&start, &steps).settle();
    }

    #[test]
    fn a_job_runs_as_it_says_when_it_is_resumed(
        start in state::endless(),
        steps in state::steps(state::of_suspension()),
    ) {
        World::after(&start, &steps).settle();
    }

    #[test]
    fn a_job_that_its_deadline_failed_is_released_whatever_happens(
        start in state::failed(),
        steps in state::steps(state::of_release()),
    ) {
        World::after(&start, &steps).let_time_pass();
    }

    #[test]
    fn in_the_end_what_is_due_is_done(
        start in state::starts(),
        steps in state::steps(state::anything()),
    ) {
        World::after(&start, &steps).let_time_pass();
    }
}

/// A cluster and its operator.
struct World {
    cluster: Cluster,
    operator: Operator,
    jobs: usize,
}

impl World {
    fn new(start: &Start) -> Self {
        let cluster = start.cluster();
        let mut operator = Operator::new(cluster.settings);
        operator.deliver(&cluster);
        Self { cluster, operator, jobs: 0 }
    }

    /// The world in which these things have happened.
    fn after(start: &Start, steps: &[Step]) -> Self {
        let mut world = Self::new(start);
        for step in steps {
            world.happen(step);
        }
        world
    }

    fn happen(&mut self, step: &Step) {
        self.apply(&step.event);
        match step.delivered {
            Delivered::Nothing => {}
            Delivered::Job => self.operator.deliver_job(&self.cluster),
            Delivered::JobSet => self.operator.deliver_job_set(&self.cluster),
            Delivered::Everything => self.operator.deliver(&self.cluster),
        }
        if step.work {
            self.cluster.fault = step.fault;
            self.operator.work(&mut self.cluster);
            self.cluster.fault = None;
        }
        if step.work && step.fault.is_none() && step.delivered == Delivered::Everything {
            self.settle();
        }
    }

    fn apply(&mut self, event: &Event) {
        let cluster = &mut self.cluster;
        match *event {
            Event::Suspend(suspend) => cluster.edit_job(|job| job.spec.suspend = Some(suspend)),
            Event::SetDeadline(deadline) => {
                cluster.edit_job(|job| job.spec.active_deadline_seconds = deadline);
            }
            Event::SetTtl(ttl) => {
                cluster.edit_job(|job| job.spec.ttl_seconds_after_finished = ttl);
            }
            Event::SetHold(ref text) => {
                cluster.edit_job(|job| state::set_hold(job, text.as_deref()));
            }
            Event::Patch(number) => cluster.edit_job(|job| state::set_patch(job, number)),
            Event::DeleteJob { background, kept } => {
                if kept {
                    cluster.edit_job(|job| keep(&mut job.metadata));
                }
                let (foreground, away) = (Propagation::Foreground, Propagation::Background);
                cluster.delete_job(if background { away } else { foreground });
            }
            Event::DropFinalizers => {
                cluster.edit_job(|job| job.metadata.finalizers = None);
                cluster.edit_job_set(|job_set| job_set.metadata.finalizers = None);
            }
            Event::Recreate => self.recreate(),
            Event::Runtime(state) => cluster.runtime = state.stored(),
            Event::RuntimeEvicted => self.operator.evict_runtime(),
            Event::Snapshot(state) => {
                let job = cluster.job.clone();
                cluster.snapshot = job.and_then(|job| state.stored(&job));
            }
            Event::JobSetCounts(active) => {
                cluster.edit_job_set(|job_set| state::count(job_set, active));
            }
            Event::JobSetEnds { completed, at } => {
                cluster.edit_job_set(|job_set| state::end(job_set, completed, at));
            }
            Event::JobSetSuspended(suspended) => {
                cluster.edit_job_set(|job_set| job_set.spec.suspend = Some(suspended));
            }
            Event::JobSetDeleted { kept } => {
                if kept {
                    cluster.edit_job_set(|job_set| keep(&mut job_set.metadata));
                }
                cluster.delete_job_set_of_anybody();
            }
            Event::JobSetDropped => cluster.drop_job_set(),
            Event::JobSetMade(owner) => self.make_job_set(owner),
            Event::PodsEnd => cluster.end_pods(),
            Event::CollectGarbage => cluster.collect_garbage(),
            Event::Crash => self.operator.crash(cluster),
            Event::Wait(seconds) => cluster.now = cluster.now.plus(seconds),
        }
    }

    /// A job of the same name, if there is none.
    fn recreate(&mut self) {
        if self.cluster.job.is_none() {
            self.jobs += 1;
            let uid = format!("job-{}", self.jobs);
            let now = self.cluster.now.0;
            self.cluster.job = Some(train_job(&serde_json::json!({}), &uid, "", now));
            self.cluster.bump(|cluster| cluster.job.as_mut().map(|job| &mut job.metadata));
        }
    }

    /// A JobSet of the job's name, if there is none: a stranger's, or our own request's that took long.
    fn make_job_set(&mut self, owner: Owner) {
        if let (Some(job), None) = (&self.cluster.job, &self.cluster.job_set) {
            let job_set = owner.job_set(job);
            self.cluster.add_job_set(job_set);
        }
    }

    /// The operator comes to rest, is right to, and stays there: however often it looks, and after a
    /// restart. `None` when there is no job any more.
    fn settle(&mut self) -> Option<Settled> {
        self.operator.deliver(&self.cluster);
        let settled = self.rest()?;
        self.judge(&settled);
        judge_timer(&settled, self.cluster.now.0);
        let before = self.cluster.versions();
        for restart in [false, true] {
            if restart {
                let outdated = self.outdated();
                self.operator.crash(&self.cluster);
                if outdated {
                    let settled = self.rest()?;
                    self.judge(&settled);
                    return Some(settled);
                }
            }
            let again = self.rest().expect("the job is still there");
            assert_eq!(self.cluster.versions(), before, "changes at rest: {settled:?}");
            assert_eq!(again.plan.waiting, settled.plan.waiting, "restart {restart}");
        }
        Some(settled)
    }

    /// Whether the JobSet is not what the snapshot says: somebody has put another in its place, or none, which an
    /// operator that knows what it made does not look at, and its successor does.
    fn outdated(&self) -> bool {
        let (job, job_set) = (self.cluster.job.as_ref(), self.cluster.job_set.as_ref());
        let own = job_set.filter(|job_set| self.cluster.owns(&job_set.metadata));
        let live = self.cluster.runtime.clone().filter(|_| self.cluster.snapshot.is_none());
        let wanted = job.and_then(|job| {
            let runtime = self.cluster.frozen_for(job).or(live)?;
            build(job, &runtime).ok()
        });
        let (Some(own), Some(wanted)) = (own, wanted) else { return false };
        facts(own).never_ran && fixed_difference(own, &wanted.job_set).is_some()
    }

    /// Works until there is nothing to do; `None` when there is no job any more.
    fn rest(&mut self) -> Option<Settled> {
        match self.operator.work(&mut self.cluster) {
            Pass::Settled(settled) => Some(*settled),
            Pass::NoJob => None,
            Pass::Retried => panic!("no rest: {:?}", self.cluster),
        }
    }

    /// What is to be true of the cluster when the operator has nothing to do.
    fn judge(&self, Settled { plan, .. }: &Settled) {
        assert!(plan.actions.iter().all(|action| matches!(action, Action::RecordEvent(_))));
        let job = self.cluster.job.as_ref().unwrap();
        if !is_ours(job) {
            return;
        }
        let job_set = self.cluster.job_set.as_ref();
        let own = job_set.filter(|job_set| self.cluster.owns(&job_set.metadata));
        if terminal(job).is_some() {
            self.judge_finished(job, own, plan);
        } else {
            self.judge_unfinished(job, own, plan);
        }
    }

    fn judge_finished(&self, job: &TrainJob, own: Option<&JobSet>, plan: &Plan) {
        let (now, end) = (i128::from(self.cluster.now.0), terminal(job).unwrap());
        let by_deadline = end.reason == "DeadlineExceeded";
        if let Some(own) = own.filter(|own| own.metadata.deletion_timestamp.is_none()) {
            assert!(!by_deadline, "still running: {}", brief(own));
            let may_run = created_at(own) > at(end) && facts(own).ended.is_none();
            assert!(!may_run, "made after the end: {}", brief(own));
            assert_eq!(counts(job), facts(own).jobs_status);
        }
        let foreign = self.cluster.job_set.as_ref().filter(|_| own.is_none());
        let foreign = foreign.map(|job_set| uid(&job_set.metadata));
        let held =
            own.is_some() || self.cluster.check_pods(foreign.as_deref(), false).running.is_some();
        if by_deadline && held {
            let expected = matches!(plan.waiting, Some(Waiting::Release | Waiting::Finalizer));
            assert!(expected || plan.next.is_some(), "nobody looks: {plan:?}");
            assert!(own.is_some() || plan.waiting == Some(Waiting::Release), "{plan:?}");
        } else if let Some(due) = ttl_due(job, self.cluster.settings) {
            assert!(due > now, "overdue: {}", brief(job));
        }
    }

    fn judge_unfinished(&self, job: &TrainJob, own: Option<&JobSet>, plan: &Plan) {
        let due = deadline_due(job, self.cluster.settings.deadline_clock);
        assert!(
            due.is_none_or(|due| due > i128::from(self.cluster.now.0)),
            "overdue: {}",
            brief(job)
        );
        let suspended = conditions(job).iter().find(|condition| condition.type_ == "Suspended");
        let suspend = job.spec.suspend == Some(true);
        assert_eq!(suspend, suspended.is_some_and(|condition| condition.status == "True"));
        if let Some(own) = own {
            assert_eq!(facts(own).ended, None, "its JobSet has ended");
            assert_eq!(counts(job), facts(own).jobs_status);
        }
        if job.metadata.deletion_timestamp.is_some() {
            return;
        }
        assert_eq!(job.spec.runtime_ref.kind, None, "an unknown kind fails a job");
        let frozen = self.cluster.frozen_for(job);
        let expected = match (own, &self.cluster.job_set) {
            (Some(own), _) if own.metadata.deletion_timestamp.is_some() => Some(Waiting::JobSet),
            (Some(own), _) => self.judge_job_set(job, own),
            (None, Some(_)) => Some(Waiting::JobSet),
            (None, None) => {
                // With a runtime that can be built, the job would have its JobSet.
                assert!(frozen.is_none(), "can be built: {}", brief(job));
                let runtime = trainjob_core::build::runtime_key(job).map(Waiting::Runtime);
                let usable = self.cluster.snapshot.is_none();
                if usable { runtime.ok() } else { Some(Waiting::Snapshot) }
            }
        };
        assert_eq!(plan.waiting, expected);
        let says = conditions(job).iter().any(|condition| condition.type_ == "Waiting");
        // What goes is gone in a moment, unless it is kept for a minute.
        let since = own.and_then(|own| own.metadata.deletion_timestamp.as_ref());
        let now = self.cluster.now;
        let going = since.is_some_and(|since| now < Timestamp::from(since).plus(60));
        let created = Timestamp::from(job.metadata.creation_timestamp.as_ref().unwrap());
        let predecessors = own.is_none()
            && self.cluster.job_set.as_ref().is_some_and(|it| facts(it).train_job_uid.is_some());
        let going = going || (predecessors && now < created.plus(10));
        assert_eq!(says, expected.is_some() && !going, "{}", brief(job));
    }

    /// What an unfinished job's own JobSet is to be; says what the job waits for otherwise.
    fn judge_job_set(&self, job: &TrainJob, own: &JobSet) -> Option<Waiting> {
        let suspend = job.spec.suspend == Some(true);
        let frozen = self.cluster.frozen_for(job);
        assert_eq!(own.spec.suspend == Some(true), suspend, "{}", brief(own));
        if let (true, Some(frozen)) = (suspend, frozen) {
            let wanted = build(job, &frozen).unwrap().job_set;
            let differs = update_suspended(own, &wanted);
            assert!(differs.is_none(), "does not follow its job: {}", brief(own));
        }
        None
    }

    /// Lets time pass, Pods end and garbage be collected, until nothing happens any more.
    fn let_time_pass(&mut self) {
        for _ in 0..12 {
            let Some(settled) = self.settle() else { return };
            let before = self.cluster.version;
            for event in [Event::DropFinalizers, Event::PodsEnd, Event::CollectGarbage] {
                self.apply(&event);
            }
            if self.cluster.version == before {
                let held =
                    matches!(settled.plan.waiting, Some(Waiting::Release | Waiting::Finalizer));
                assert!(!held, "nothing runs, but it is not released: {settled:?}");
                let Some(next) = settled.plan.next else { return };
                self.cluster.now = next;
            }
        }
        panic!("things keep happening: {:?}", self.cluster);
    }
}

fn keep(metadata: &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) {
    metadata.finalizers.get_or_insert_default().push(cluster::KEPT.into());
}

fn counts(job: &TrainJob) -> Vec<trainjob_api::v1alpha1::train_job::JobStatus> {
    job.status.as_ref().and_then(|status| status.jobs_status.clone()).unwrap_or_default()
}

/// A timer is set exactly when time alone will change the answer, and for exactly that instant.
fn judge_timer(Settled { known, plan }: &Settled, now: i64) {
    let plan = &but_for_held(plan.clone());
    match plan.next {
        Some(next) => {
            assert!(next.0 > now, "a timer in the past: {plan:?}");
            if next.0 - 1 > now {
                assert_eq!(
                    known.work(next.0 - 1),
                    *plan,
                    "time alone changes the answer too early"
                );
            }
            assert_ne!(known.work(next.0), *plan, "nothing happens at {next:?}: {known:?}");
        }
        None => {
            for later in [now.saturating_add(1), now.saturating_add(1_000_000), i64::MAX] {
                assert_eq!(known.work(later), *plan, "no timer, but at {later}: {known:?}");
            }
        }
    }
}
