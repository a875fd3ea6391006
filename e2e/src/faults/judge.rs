//! Whether a disturbed life went as an undisturbed one.
//!
//! Objects, conditions and numbers of creations and deletions must be those of the undisturbed life,
//! nothing else may be left, the rules of [`invariants`] must hold all through, nothing may be asked for
//! that the chart gives no permission for, and the operator must not end by itself. Events are best effort
//! and are compared for themselves: none may tell of what did not happen, but an error may be told.

use std::collections::BTreeSet;

use anyhow::{Result, bail, ensure};
use invariants::{History, Outcome, RbacRule, retention};

use super::case::Case;
use super::life::Life;
use super::scenario::Scenario;

/// What is told, among others, of a job that waits for a name.
const NAME_TAKEN: &str = "TrainJobResourcesCreationFailed";
/// Reasons of events that tell of errors.
const COMPLAINTS: [&str; 7] = [
    NAME_TAKEN,
    "ReleaseFailed",
    "TTLDeletionFailed",
    "DeletionFailed",
    "RecordUnwritable",
    "ReleaseRefused",
    "PodsLost",
];

/// What undisturbed lives of a scenario have in common.
#[derive(Debug)]
pub struct Reference {
    outcome: Outcome,
    left: Vec<String>,
    told: BTreeSet<String>,
    receipt: Option<String>,
    rules: Rules,
}

/// The rules that every life of a program keeps.
#[derive(Debug)]
pub enum Rules {
    /// Those of an operator with these RBAC rules.
    Operator(Vec<RbacRule>),
    /// Those of the retention engine.
    Retention(retention::Terms),
    /// Those of the accounting program, which depend on the case, so a life is judged where it was lived.
    Accounting,
}

impl Rules {
    /// What breaks them in this history.
    fn broken(&self, history: &History) -> Vec<String> {
        match self {
            Self::Operator(rbac_rules) => {
                let mut broken = invariants::check(history);
                broken.extend(invariants::undeclared_requests(history, rbac_rules));
                broken.iter().map(ToString::to_string).collect()
            }
            Self::Retention(terms) => {
                retention::check(history, terms).iter().map(ToString::to_string).collect()
            }
            Self::Accounting => Vec::new(),
        }
    }
}

impl Reference {
    /// The reference that these lives of a program with these rules are, if nothing is wrong with any of them.
    pub fn of(lives: &[Life], rules: Rules) -> Result<Self> {
        let told = lives.iter().flat_map(|life| life.told.clone()).collect();
        let Some(first) = lives.first() else { bail!("there is no undisturbed life") };
        let (left, receipt) = (first.left.clone(), first.receipt.clone());
        let reference = Self { outcome: Outcome::of(&first.history), left, told, receipt, rules };
        for life in lives {
            let wrong = reference.judge(life, None);
            ensure!(wrong.is_empty(), "undisturbed, and yet: {}", wrong.join("; "));
        }
        Ok(reference)
    }

    /// Everything that is wrong with a life in which this happened.
    #[must_use]
    pub fn judge(&self, life: &Life, case: Option<&Case>) -> Vec<String> {
        let mut wrong: Vec<String> = life.trouble.iter().cloned().collect();
        wrong.extend(self.rules.broken(&life.history));
        wrong.extend(life.broken.iter().cloned());
        wrong.extend(self.outcome.differences(&Outcome::of(&life.history)));
        if life.left != self.left {
            wrong.push(format!("left: {:?} instead of {:?}", life.left, self.left));
        }
        if let (Some(receipt), Some(expected)) = (&life.receipt, &self.receipt)
            && receipt != expected
        {
            wrong.push(format!("its record says {receipt}, not {expected}"));
        }
        let refused = case.is_some_and(Case::refuses);
        // The garbage collector takes its time: of the job before, there may be children whose names are needed.
        let recreated = case.is_some_and(|case| case.scenario == Scenario::Recreated);
        let admissible = |reason: &str| {
            self.told.contains(reason)
                || (refused && COMPLAINTS.contains(&reason))
                || (recreated && reason == NAME_TAKEN)
        };
        let untrue = life.told.iter().filter(|reason| !admissible(reason));
        wrong.extend(untrue.map(|reason| format!("event {reason} tells of what did not happen")));
        wrong
    }
}

#[cfg(test)]
mod tests {
    use invariants::{Change, Condition, Job, JobSet, Object, State};
    use trainjob_api::time::Timestamp;

    use super::*;

    fn object(name: &str, uid: &str, owner: Option<&str>, state: State) -> Object {
        Object {
            namespace: "ns".into(),
            name: name.into(),
            uid: uid.into(),
            created: Timestamp(1_000),
            deleting: None,
            generation: 1,
            finalizers: Vec::new(),
            owner: owner.map(Into::into),
            state,
        }
    }

    fn job(reason: Option<&str>) -> Object {
        let failed = |reason: &str| Condition {
            kind: "Failed".into(),
            holds: true,
            reason: reason.into(),
            since: Timestamp(1_007),
            observed_generation: None,
        };
        let conditions = reason.map(failed).into_iter().collect();
        let job = Job { deadline: Some(7), conditions, ..Job::default() };
        object("job", "job-uid", None, State::TrainJob(job))
    }

    fn job_set(uid: &str) -> Object {
        object("job", uid, Some("job-uid"), State::JobSet(JobSet::default()))
    }

    fn life(steps: &[(Object, bool)]) -> Life {
        let change = |(index, (object, gone)): (usize, &(Object, bool))| Change {
            revision: 10 + index as u64,
            at: 1_007_000,
            object: object.clone(),
            gone: *gone,
        };
        let changes = steps.iter().enumerate().map(change).collect();
        let history = History { changes, end: 1_008_000, ..History::default() };
        let left = vec!["trainjob job".to_owned()];
        let told = BTreeSet::from(["DeadlineExceeded".to_owned()]);
        Life { history, left, told, struck: 1, ..Life::default() }
    }

    /// A job is created, gets its JobSet, is failed by its deadline, and its JobSet goes.
    fn good_steps() -> Vec<(Object, bool)> {
        vec![
            (job(None), false),
            (job_set("first"), false),
            (job(Some("DeadlineExceeded")), false),
            (job_set("first"), true),
        ]
    }

    fn judged(life: &Life, fault: &str) -> Vec<String> {
        let reference = Reference::of(&[life_of_reference()], rules()).unwrap();
        let case = format!("deadline/a 1/{fault}").parse().unwrap();
        reference.judge(life, Some(&case))
    }

    fn rules() -> Rules {
        Rules::Operator(Vec::new())
    }

    fn life_of_reference() -> Life {
        life(&good_steps())
    }

    #[test]
    fn run_equal_to_its_baseline_is_accepted() {
        assert_eq!(judged(&life(&good_steps()), "before"), Vec::<String>::new());
    }

    #[test]
    fn run_that_differs_from_its_baseline_is_rejected() {
        let made_twice =
            [good_steps(), vec![(job_set("second"), false), (job_set("second"), true)]];
        let mut other_reason = good_steps();
        other_reason[2] = (job(Some("JobSetFailed")), false);
        let never_made = [(job(None), false), (job(Some("DeadlineExceeded")), false)];
        let still_there = &good_steps()[..3];
        for (what, steps) in [
            ("a JobSet made twice", made_twice.concat().as_slice()),
            ("another reason", other_reason.as_slice()),
            ("no JobSet", never_made.as_slice()),
            ("a JobSet that stays", still_there),
        ] {
            assert!(!judged(&life(steps), "before").is_empty(), "{what}");
        }
        let pod = Life { left: vec!["pod job-0".into()], ..life(&good_steps()) };
        let stuck = Life { trouble: Some("job is not gone".into()), ..life(&good_steps()) };
        for life in [pod, stuck] {
            assert_eq!(judged(&life, "before").len(), 1);
        }
    }

    #[test]
    fn extra_error_events_are_accepted_and_false_events_rejected() {
        let told = |reason: &str| {
            let told = BTreeSet::from([reason.to_owned()]);
            Life { told, ..life(&good_steps()) }
        };
        for (reason, fault, good) in [
            ("DeadlineExceeded", "before", true),
            ("ReleaseFailed", "403", true),
            ("ReleaseFailed", "before", false),
            ("TTLExpired", "403", false),
        ] {
            let wrong = judged(&told(reason), fault);
            assert_eq!(wrong.is_empty(), good, "{reason}, {fault}: {wrong:?}");
        }
    }

    #[test]
    fn baseline_runs_that_end_differently_are_rejected() {
        let other = [good_steps(), vec![(job(Some("DeadlineExceeded")), true)]].concat();
        assert!(Reference::of(&[life(&good_steps()), life(&other)], rules()).is_err());
        assert!(Reference::of(&[], rules()).is_err());
    }
}
