//! S5: no early deadline.

use trainjob_api::time::Timestamp;

use crate::{
    history::{Change, Millis},
    index::{Finish, Index, Life},
    violation::{Rule, Violation},
};

/// S5. The version before the one that says `DeadlineExceeded` is what was decided on: every status
/// write is fenced by it.
pub(super) fn no_early_deadline(index: &Index<'_>) -> Vec<Violation> {
    index
        .jobs()
        .filter_map(|life| {
            let finish = life.finish().filter(|finish| finish.condition.is_deadline())?;
            let before = life.before(finish.change.revision)?;
            let decided = index.decided(finish.change);
            let what = early(index, before, &finish, decided)
                .or_else(|| completion_ignored(index, life, decided))?;
            Some(Index::broken(Rule::S5, &finish.change.object, finish.change.at, what))
        })
        .collect()
}

fn early(
    index: &Index<'_>,
    before: &Change,
    finish: &Finish<'_>,
    decided: Millis,
) -> Option<String> {
    let Some(due) = index.deadline(&before.object) else {
        return Some("was failed by a deadline that it did not have, or that stood still".into());
    };
    let now = Timestamp(decided.div_euclid(1_000)).min(finish.condition.since);
    (now < due).then(|| format!("was failed {} s before its deadline", due.since(now)))
}

/// A JobSet that had reported its end before the decision, for long enough that it was known.
fn completion_ignored(index: &Index<'_>, job: &Life<'_>, decided: Millis) -> Option<String> {
    let known_by = decided - index.history.terms.staleness;
    let ignored = index.job_sets(&job.last().object.uid).any(|job_set| {
        let there = job_set.end().is_none_or(|end| end.at > decided);
        let mut versions = job_set.versions.iter();
        there && versions.any(|it| it.at < known_by && it.object.job_set_end().is_some())
    });
    ignored.then(|| "was failed by its deadline after its JobSet had ended".into())
}
