//! What has to hold in the end, and after what happens before it.

use std::collections::BTreeSet;

use trainjob_accounting_core::job::{Finish, FinishedHow, Job};
use trainjob_api::lifecycle::v1alpha1::{
    record::TrainJobRecordStatus,
    record_words::{Outcome, RecordCondition, RecordReason},
};

use super::{Leader, Rule, Rules};
use crate::accounting::{
    history::History,
    plot::Plot,
    undisturbed::{comparable, undisturbed},
};

/// Whether a leader that lets a Pod go may not know that this other one has told of it as unwatched: in another place, or before
/// it in the same one. What its own place has let go before, a process knows from the record.
fn is_unaware((place, epoch): &Leader, (of_teller, epoch_of_teller): &Leader) -> bool {
    place != of_teller || epoch > epoch_of_teller
}

impl Rules {
    /// A8: after the longest time for which the record may hold Pods, none is held.
    pub(in crate::accounting) fn held(&mut self, pods: &[History], now: i64) {
        let held = pods.iter().filter(|it| it.is_labelled).filter_map(History::newest);
        let held = held.filter(|pod| {
            let forced =
                pod.deletion.is_some_and(|it| it.grace == 0 && it.at.0 + FORCED_SECONDS < now);
            let ended = pod.is_terminal() || pod.node.is_none() || forced;
            pod.finalizer && pod.deletion.is_some() && ended
        });
        let held: Vec<_> = held.map(|pod| &*pod.uid).collect();
        self.must(held.is_empty(), Rule::A8, || format!("{held:?} are held for too long"));
    }

    /// AH2: what was let go meanwhile is told of.
    pub(in crate::accounting) fn told(&mut self, before: (u64, u64), after: (u64, u64)) {
        let [let_go, told] = [after.0 - before.0, after.1.saturating_sub(before.1)];
        self.must(told == let_go, Rule::A6, || format!("{let_go} let go, {told} told of"));
    }

    /// AH3: while the API server is silent, none is let go.
    pub(in crate::accounting) fn none_let_go(&mut self, before: (u64, u64), after: (u64, u64)) {
        self.must(before == after, Rule::A2, || {
            format!("in silence, let go and told of: {before:?}, then {after:?}")
        });
    }

    /// AG12: a record that was deleted is made anew, and says so.
    pub(in crate::accounting) fn made_anew(&mut self, record: Option<&TrainJobRecordStatus>) {
        let word = RecordReason::Recreated.as_str();
        let told = record.is_some_and(|record| record.inexact.iter().any(|it| it == word));
        self.must(told, Rule::A6, || format!("a record that was deleted is now: {record:?}"));
    }

    pub(in crate::accounting) fn never_rests(&mut self) {
        self.must(false, Rule::A9, || "it never comes to rest".into());
    }

    /// No Pod is held for ever.
    pub(in crate::accounting) fn none_left(&mut self, pods: &[History]) {
        let left = pods.iter().filter(|pod| pod.newest().is_some()).count();
        self.must(left == 0, Rule::A8, || format!("{left} Pods are held for ever"));
    }

    /// Of two leaders, or of a process and the one after it, one may let go what the other counts, has counted or lets go. If
    /// no answer comes, it cannot know whose request was done, and tells of a loss. Or the other proves the record before that
    /// one tells of it, and finds a Pod less than the record has: to it this one went unseen. How many Pods can have been told
    /// of once more in these ways.
    fn told_of_twice(&self) -> usize {
        let more = |uid: &String| usize::from(self.counted_here.contains(uid));
        let places =
            |by: &BTreeSet<Leader>| by.iter().map(|&(place, _)| place).collect::<BTreeSet<_>>();
        let given_up = self.given_up_by.iter().map(|(uid, by)| places(by).len() - 1 + more(uid));
        let unseen = self.unwatched_by.iter().map(|(teller, told)| {
            let by_another =
                |by: &BTreeSet<Leader>| by.iter().any(|leader| is_unaware(leader, teller));
            let given_up = self.given_up_by.values().filter(|by| by_another(by)).count();
            given_up.min(usize::try_from(*told).unwrap_or(usize::MAX))
        });
        given_up.chain(unseen).sum()
    }

    pub(in crate::accounting) fn at_rest(
        &mut self,
        record: Option<&TrainJobRecordStatus>,
        pods: &[History],
        jobs: &[Job],
        plot: Plot,
    ) {
        self.none_left(pods);
        let (all, excused) = (pods.len(), self.uncounted.len());
        let is_first = self.deleted_records == 0;
        let Some(record) = record else {
            let excuse = excused == all || !is_first;
            return self.must(excuse, Rule::A6, || format!("no record of {all} Pods"));
        };
        let is_final = record
            .conditions
            .iter()
            .any(|it| it.type_ == RecordCondition::Final.as_str() && it.status == "True");
        let ends = is_final && record.settling.is_empty() && record.totals.pods.active == 0;
        self.must(ends, Rule::A6, || "the record does not end".into());
        let outcomes = outcomes(jobs);
        let fits = outcomes.iter().any(|outcome| record.outcome == outcome.as_str());
        self.must(fits, Rule::A6, || format!("{}, expected {outcomes:?}", record.outcome));
        let lost = usize::try_from(record.lost.values().sum::<u64>()).unwrap_or(usize::MAX);
        let counted = self.counted_here.len();
        let fits = counted + lost <= all + self.told_of_twice();
        self.must(fits, Rule::A6, || format!("{counted} counted and {lost} lost of {all}"));
        let fits = !is_first || counted + excused == all;
        self.must(fits, Rule::A6, || format!("{counted} counted, {excused} gone of {all}"));
        let tells = excused == 0 || counted > 0 || !record.inexact.is_empty();
        self.must(tells, Rule::A6, || format!("{excused} went, none is counted, and it is exact"));
        // What one of two leaders has asked to let go it may tell of as lost, though the other has counted it.
        let no_doubt = plot.second.is_none() || self.given_up_by.is_empty();
        let none_let_go = self.let_go.is_empty() && no_doubt;
        if plot.is_comparable() && none_let_go && self.forced.is_empty() {
            let (found, expected) = (comparable(record), comparable(&undisturbed(pods)));
            let fits = found == expected;
            self.must(fits, Rule::A11, || format!("{found:?}, expected {expected:?}"));
        }
    }
}

/// For how long a Pod without grace may still be reported (AE1).
const FORCED_SECONDS: i64 = 10;

/// How the record may say that the TrainJob ended. One that finished and went before anybody saw that was deleted.
fn outcomes(jobs: &[Job]) -> Vec<Outcome> {
    let finish = jobs.iter().find_map(|job| match job {
        Job::Finished(Finish { how, .. }) => Some(how),
        Job::Running { .. } | Job::Gone { .. } => None,
    });
    let finished = finish.map(|how| match how {
        FinishedHow::Complete => Outcome::Complete,
        FinishedHow::Failed => Outcome::Failed,
        FinishedHow::DeadlineExceeded => Outcome::DeadlineExceeded,
    });
    let gone = matches!(jobs.last(), Some(Job::Gone { .. })).then_some(Outcome::Deleted);
    [finished, gone].into_iter().flatten().collect()
}
