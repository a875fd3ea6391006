//! The rounds.

use std::{cmp::Reverse, collections::BTreeSet, mem, time::Duration};

use trainjob_api::{
    lifecycle::v1alpha1::{
        record::{MESSAGE, SETTLING, TrainJobRecordStatus},
        record_words::{Loss, Outcome, RecordCondition, RecordReason},
    },
    time::Timestamp,
};

use super::{
    action::{Action, Plan},
    condition,
    context::{Context, JobRead},
    pace::{
        ACTIVE_AGE, BATCH, BETWEEN_STORES, CLEAR_AFTER, GATHER, GATHER_UNHELD, GOES_WITHIN,
        RELEASES, SETTLING_AT_EASE,
    },
    record::{Evidence, Record},
    standing::{Standing, is_waited_for, settling, standing},
};
use crate::{
    job::Job,
    ledger::Ledger,
    share::{Share, deleted, share, share_of_lost},
    span::span,
    tracked::{Presence, Tracked},
    verdict::{Row, row},
};

/// What to do about a record now.
///
/// Total and deterministic: the same input gives the same plan, and every input has one.
#[must_use]
pub fn plan<'a>(
    record: &Record,
    pods: impl IntoIterator<Item = &'a Tracked>,
    context: &Context<'_>,
) -> Plan {
    let pods: Vec<_> = pods.into_iter().collect();
    let Some(status) = &record.status else {
        let nothing = TrainJobRecordStatus::default();
        return Round::new(record, &nothing, &pods, context).plan_without_record();
    };
    Round::new(record, status, &pods, context).plan()
}

/// The Pods of a record by how they stand.
struct Round<'a> {
    record: &'a Record,
    status: &'a TrainJobRecordStatus,
    context: &'a Context<'a>,
    open: Vec<&'a Tracked>,
    uncounted: Vec<&'a Tracked>,
    counted: Vec<&'a Tracked>,
    /// Those that are being let go. Until their loss is told of, `active` has them, so that a successor tells of it (AG11).
    going: Vec<&'a Tracked>,
    under_way: usize,
    /// UIDs that stay in `settling`.
    kept: BTreeSet<&'a str>,
    /// The earliest instant at which an open Pod may have ended.
    may_end: Option<Timestamp>,
}

impl<'a> Round<'a> {
    fn new(
        record: &'a Record,
        status: &'a TrainJobRecordStatus,
        pods: &[&'a Tracked],
        context: &'a Context<'a>,
    ) -> Self {
        let settling = settling(status);
        let mut round = Self {
            record,
            status,
            context,
            open: Vec::new(),
            uncounted: Vec::new(),
            counted: Vec::new(),
            going: Vec::new(),
            under_way: 0,
            kept: BTreeSet::new(),
            may_end: None,
        };
        for tracked in pods {
            match standing(tracked, &settling, context.now.server) {
                Standing::Open(at) => {
                    round.open.push(tracked);
                    round.may_end = [round.may_end, at].into_iter().flatten().min();
                }
                Standing::Ended | Standing::Lost => round.uncounted.push(tracked),
                Standing::Counted => round.counted.push(tracked),
                Standing::Releasing => round.under_way += 1,
                Standing::Going => round.going.push(tracked),
                Standing::Done => {}
            }
            // A3: a UID is dropped only when its own release is known.
            let held = match tracked.presence {
                Presence::Here | Presence::Stripped | Presence::Releasing => {
                    !tracked.pod.accounted || tracked.pod.finalizer
                }
                Presence::Released | Presence::Gone => false,
            };
            if held && settling.contains(&*tracked.pod.uid) {
                round.kept.insert(&tracked.pod.uid);
            }
        }
        round
    }

    /// Of those that are not counted so many, those first that somebody waits for and that ended first. They are moved to the
    /// front; of the others, of which there may be tens of thousands, the order is of no interest.
    fn batch(&mut self, room: usize) -> Vec<&'a Tracked> {
        let now = self.context.now.server;
        let order = |tracked: &'a Tracked| {
            let end = span(&tracked.pod, now).end();
            (Reverse(is_waited_for(tracked)), end, &tracked.pod.uid)
        };
        let uncounted = mem::take(&mut self.uncounted).into_iter();
        let mut ordered: Vec<_> = uncounted.map(|tracked| (order(tracked), tracked)).collect();
        match room.checked_sub(1) {
            Some(last) if last < ordered.len() => {
                let (before, ..) =
                    ordered.select_nth_unstable_by(last, |one, other| one.0.cmp(&other.0));
                before.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            }
            Some(_) => ordered.sort_unstable_by(|one, other| one.0.cmp(&other.0)),
            None => {}
        }
        self.uncounted.extend(ordered.into_iter().map(|(_, tracked)| tracked));
        self.uncounted.iter().copied().take(room).collect()
    }

    /// Without a record nothing is stored. It is created, and what waits too long for that is let go.
    fn plan_without_record(mut self) -> Plan {
        let unrecorded = !self.open.is_empty() || !self.uncounted.is_empty();
        let mut plan = Plan::default();
        self.releases(&mut plan);
        self.let_go(&mut plan);
        if unrecorded || self.record.let_go > 0 || self.record.recreated {
            plan.actions.push(Action::Create);
        }
        plan.ask_after(self.may_end());
        plan
    }

    fn plan(mut self) -> Plan {
        let mut plan = Plan::default();
        self.releases(&mut plan);
        self.let_go(&mut plan);
        let Evidence::Proven { unwatched, listed_after_end } = self.record.evidence else {
            plan.actions.push(Action::Prove);
            return plan;
        };
        let room = SETTLING.saturating_sub(self.kept.len());
        let batch = self.batch(room);
        let quiet = self.untold().next().is_none() && self.kept.is_empty();
        let over = self.context.job.is_over();
        if over && quiet && !listed_after_end {
            plan.actions.push(Action::ListPods);
        }
        let is_final = over && quiet && listed_after_end;
        match self.due(&batch, unwatched, is_final) {
            Some(Duration::ZERO) if self.asks_job(&batch) => plan.actions.push(Action::ReadJob),
            Some(Duration::ZERO) => plan.actions.push(self.store(&batch, unwatched, is_final)),
            later => plan.ask_after(later),
        }
        plan.ask_after(self.may_end());
        plan
    }

    /// Step 2, for every version of the record: what is in a stored `settling` is counted.
    fn releases(&self, plan: &mut Plan) {
        let clock = self.context.now.clock;
        let mut free = RELEASES.saturating_sub(self.under_way);
        for tracked in &self.counted {
            match tracked.backoff.wait(clock).max(self.may_go(tracked)) {
                Duration::ZERO if free > 0 => {
                    free -= 1;
                    plan.actions.push(Action::Release(tracked.pod.uid.to_string()));
                }
                // An answer to one of those under way is news.
                Duration::ZERO => {}
                wait => plan.ask_after(Some(wait)),
            }
        }
    }

    /// How long a counted Pod may still go by itself, which saves its annotation (AG2). One with the finalizer cannot, a
    /// finished TrainJob's stays, and its record is not final before.
    fn may_go(&self, tracked: &Tracked) -> Duration {
        let is_at_ease = self.kept.len() <= SETTLING_AT_EASE && !self.context.job.is_over();
        if tracked.pod.finalizer || !is_at_ease {
            return Duration::ZERO;
        }
        let clock = self.context.now.clock;
        tracked
            .ended_seen
            .map_or(Duration::ZERO, |seen| seen.saturating_add(GOES_WITHIN).saturating_sub(clock))
    }

    /// After how long the record has to be stored; `None`: nothing has changed that has to be.
    fn due(&self, batch: &[&Tracked], unwatched: u64, is_final: bool) -> Option<Duration> {
        let status = self.status;
        let Record { stored_at, let_go, .. } = self.record;
        let now = self.context.now;
        let at_once = now.clock;
        let full = batch.len() >= BATCH.min(SETTLING.saturating_sub(self.kept.len()).max(1));
        let over = self.context.job.is_over();
        let of_batch = batch.iter().map(|tracked| {
            let seen = tracked.ended_seen.unwrap_or(now.clock);
            match is_waited_for(tracked) {
                _ if full => at_once,
                true if tracked.pod.finalizer => seen.saturating_add(GATHER),
                true => seen.saturating_add(GATHER_UNHELD),
                false if over => at_once,
                false => seen.saturating_add(self.context.settings.batch_period),
            }
        });
        let cleared = self.kept.len() < status.settling.len();
        let clear = cleared.then(|| stored_at.map_or(at_once, |at| at.saturating_add(CLEAR_AFTER)));
        // The last clear makes the record final.
        let clear = clear.map(|at| if over && self.open.is_empty() { at_once } else { at });
        let told = is_final == condition::is_true(status, RecordCondition::Final)
            && self.outcome() == Outcome::of(&status.outcome).unwrap_or(Outcome::Running)
            && !status.outcome.is_empty()
            && unwatched == 0
            && *let_go == 0
            && !self.is_recreated_untold();
        let changed = (!told).then_some(at_once);
        let due = of_batch.chain(clear).chain(changed).chain(self.active_due()).min()?;
        let paced = stored_at.map_or(Duration::ZERO, |at| at.saturating_add(BETWEEN_STORES));
        Some(due.max(paced).saturating_sub(now.clock))
    }

    fn is_recreated_untold(&self) -> bool {
        let recreated = RecordReason::Recreated.as_str();
        self.record.is_recreated() && !self.status.inexact.iter().any(|it| it == recreated)
    }

    /// When `active` is written, if it has changed.
    fn active_due(&self) -> Option<Duration> {
        let status = self.status;
        let Context { now, .. } = self.context;
        let active = u64::try_from(self.untold().count()).unwrap_or(u64::MAX);
        if status.totals.pods.active == active {
            return None;
        }
        let as_of = status.as_of.as_ref().map(Timestamp::from);
        let wait =
            as_of.map_or(0, |as_of| ACTIVE_AGE - now.server.since(as_of)).clamp(0, ACTIVE_AGE);
        Some(now.clock.saturating_add(seconds(wait)))
    }

    /// Whether the TrainJob's word decides about a Pod of the batch, and may be old.
    fn asks_job(&self, batch: &[&Tracked]) -> bool {
        let stopped = |tracked: &&Tracked| {
            let Tracked { pod, presence, order, .. } = *tracked;
            let row = match presence {
                Presence::Gone if !pod.finalizer => {
                    row(&deleted(pod, self.context.now.server), *order)
                }
                Presence::Gone
                | Presence::Here
                | Presence::Stripped
                | Presence::Releasing
                | Presence::Released => row(pod, *order),
            };
            row == Row::Stopped
        };
        self.context.job_read == JobRead::Watched && batch.iter().any(stopped)
    }

    /// Steps 1 and 3.
    fn store(&self, batch: &[&Tracked], unwatched: u64, is_final: bool) -> Action {
        let Context { settings, now, .. } = *self.context;
        let mut ledger = Ledger::new(self.status.clone(), settings);
        ledger.meet(self.untold().map(|tracked| &tracked.pod));
        for share in batch.iter().map(|tracked| self.share(tracked)) {
            ledger.count(&share);
        }
        let later = self.uncounted.iter().skip(batch.len());
        let open = self.open.iter().chain(&self.going);
        ledger.set_open(open.chain(later).map(|tracked| &tracked.pod));
        if self.is_recreated_untold() {
            ledger.note(RecordReason::Recreated);
        }
        if unwatched > 0 || self.record.let_go > 0 {
            ledger.note(RecordReason::Lost);
        }
        let mut status = ledger.finish(self.outcome());
        for (loss, count) in
            [(Loss::Unwatched, unwatched), (Loss::RecordUnwritable, self.record.let_go)]
        {
            if count > 0 {
                let lost = status.lost.entry(loss.as_str().into()).or_default();
                *lost = lost.saturating_add(count);
            }
        }
        let held = batch.iter().map(|tracked| &*tracked.pod.uid);
        let settling = self.kept.iter().copied().chain(held);
        status.settling = settling.map(Into::into).collect();
        self.tell_finish(&mut status);
        // Not before any Pod that `active` tells of, or AG11 would take that for lost: `now` may be behind.
        let told_of = self.untold().map(|tracked| tracked.pod.created_at).max();
        status.as_of = Some(told_of.map_or(now.server, |at| at.max(now.server)).into());
        condition::set(&mut status, is_final, now.server);
        Action::Store(Box::new(status))
    }

    fn share(&self, tracked: &Tracked) -> Share {
        let Context { job, now, .. } = *self.context;
        match tracked.presence {
            Presence::Gone | Presence::Stripped => {
                share_of_lost(&tracked.pod, tracked.order, job, now.server)
            }
            Presence::Here | Presence::Releasing | Presence::Released => {
                share(&tracked.pod, tracked.order, job, now.server)
            }
        }
    }

    fn tell_finish(&self, status: &mut TrainJobRecordStatus) {
        if let Job::Finished(finish) = self.context.job {
            status.finished_at = Some(finish.at.into());
            finish.reason.clone_into(&mut status.reason);
            status.message = finish.message.chars().take(MESSAGE).collect();
        }
    }

    fn outcome(&self) -> Outcome {
        self.context.job.outcome(Outcome::of(&self.status.outcome))
    }

    /// AH2: when a Pod is let go. One that has ended and that nobody deleted is held: nobody waits for it.
    fn opens(&self, tracked: &Tracked) -> Option<Duration> {
        let held = match tracked.presence {
            // One that has lost our labels may have the finalizer all the same.
            Presence::Here | Presence::Stripped => tracked.pod.finalizer,
            Presence::Releasing | Presence::Gone | Presence::Released => false,
        };
        if !held || tracked.pod.deletion.is_none() {
            return None;
        }
        let Context { settings, now, .. } = *self.context;
        let seen = tracked.ended_seen.unwrap_or(now.clock);
        self.record.valve.opens(seen, settings.hold_limit)
    }

    /// Lets go what has waited too long. It is not counted: it is in no batch any more.
    fn let_go(&mut self, plan: &mut Plan) {
        let clock = self.context.now.clock;
        let uncounted = mem::take(&mut self.uncounted);
        for tracked in uncounted {
            match self.opens(tracked) {
                Some(at) if at <= clock && tracked.backoff.wait(clock).is_zero() => {
                    plan.actions.push(Action::LetGo(tracked.pod.uid.to_string()));
                    self.going.push(tracked);
                }
                opens => {
                    let wait = tracked.backoff.wait(clock);
                    plan.ask_after(opens.map(|at| at.saturating_sub(clock).max(wait)));
                    self.uncounted.push(tracked);
                }
            }
        }
    }

    /// Pods that are neither counted nor told of as lost.
    fn untold(&self) -> impl Iterator<Item = &'a Tracked> + '_ {
        self.open.iter().chain(&self.uncounted).chain(&self.going).copied()
    }

    fn may_end(&self) -> Option<Duration> {
        let wait = self.may_end?.since(self.context.now.server);
        Some(seconds(wait.max(0)))
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}
