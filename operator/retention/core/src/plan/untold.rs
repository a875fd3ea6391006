//! When there is something to tell the users of an object (`docs/retention.md`, R52).

use trainjob_api::time::Timestamp;

use super::{
    Plan,
    due::{Delay, HoldEnd},
    notice::{Notice, STUCK_AFTER},
    value::OverrideProblem,
};
use crate::policies::Governed;

/// So long before the end of a hold its users are told, in seconds.
const ENDING: i64 = 3_600;
/// A program that begins to look later than this after something has begun tells nothing of it: another one did. By default
/// the API server keeps events for as long, and it refuses the same event twice.
const TOLD_WITHIN: i64 = 3_600;

/// A notice, and since when it has been true.
type Since = (Notice, Timestamp);

impl Governed<'_, '_> {
    /// What is true at `now` and was not told before, as `told` lists it. `edited` says that the object's wishes were changed
    /// while somebody watched; otherwise what began long ago counts as told.
    #[must_use]
    pub fn untold(
        &self,
        plan: &Plan<'_>,
        told: &[Notice],
        edited: bool,
        now: Timestamp,
    ) -> Vec<Notice> {
        let is_news = |(notice, since): &Since| {
            !told.contains(notice) && (edited || now.since(*since) <= TOLD_WITHIN)
        };
        let begun = self.all(plan).into_iter().flatten().filter(|(_, since)| *since <= now);
        begun.filter(is_news).map(|(notice, _)| notice).collect()
    }

    /// What is true at `now`.
    #[must_use]
    pub fn notices(&self, plan: &Plan<'_>, now: Timestamp) -> Box<[Notice]> {
        let begun = self.all(plan).into_iter().flatten().filter(|(_, since)| *since <= now);
        begun.map(|(notice, _)| notice).collect()
    }

    /// The next instant at which there is something to tell.
    #[must_use]
    pub fn next_notice(&self, plan: &Plan<'_>, now: Timestamp) -> Option<Timestamp> {
        let since = self.all(plan).into_iter().flatten().map(|(_, since)| since);
        since.filter(|since| *since > now).min()
    }

    /// All that follows from the plan, and from when on it is true.
    fn all(&self, plan: &Plan<'_>) -> [Option<Since>; 5] {
        let begun =
            self.finish.time.get().map_or(self.object.created, |end| end.max(self.object.created));
        let hold = plan.due.zip(plan.due_unheld).and_then(|(due, unheld)| match due.delay? {
            Delay::Hold(end) => Some((end, due.at, unheld)),
            Delay::Owner => None,
        });
        // Of any other hold its users were told already that it ends otherwise than they wished.
        let as_wished = |(end, ..): &(HoldEnd, _, _)| *end == HoldEnd::AsWished;
        let warned = hold.and_then(|(end, until, _)| match end {
            HoldEnd::AsWished => None,
            HoldEnd::Capped => Some((Notice::HoldCapped { until }, begun)),
            // An unreadable TTL holds as well, and is told as what it is.
            HoldEnd::Unreadable if plan.override_problem == Some(OverrideProblem::Unreadable) => {
                None
            }
            HoldEnd::Unreadable => Some((Notice::HoldInvalid { until }, begun)),
        });
        let taken = hold.filter(as_wished).map(|(_, until, since)| (Notice::Held { until }, since));
        let ending = hold.filter(|(_, until, since)| until.since(*since) > ENDING);
        let ending =
            ending.map(|(_, until, _)| (Notice::HoldEnding { until }, until.plus(-ENDING)));
        let over = plan.override_problem.and_then(|problem| match problem {
            OverrideProblem::Unreadable => Some((Notice::OverrideInvalid, begun)),
            OverrideProblem::Clamped => {
                plan.due.map(|due| (Notice::OverrideClamped { due: due.at }, begun))
            }
        });
        let stuck = self.object.terminating.get();
        let stuck =
            stuck.map(|since| (Notice::StuckTerminating { since }, since.plus(STUCK_AFTER)));
        [warned, taken, ending, over, stuck]
    }
}
