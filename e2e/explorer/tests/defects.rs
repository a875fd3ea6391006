//! Every seeded defect is found, by a rule that it breaks.

use explorer::{Defect, Options, Rule, run};

/// Schedules within which a defect has to show.
const SCHEDULES: u64 = 20_000;

/// Whether a defect breaks this rule in one of the schedules.
fn is_found(defect: Defect, rule: Rule) -> bool {
    let options = Options { defect: Some(defect), trace: false };
    (0..SCHEDULES).any(|seed| run(seed, options).violation.is_some_and(|found| found.rule == rule))
}

#[test]
fn every_defect_is_found_by_the_rule_that_it_breaks() {
    let table = [
        (Defect::DeletionBeforeStatus, Rule::DurableBeforeDestroy),
        (Defect::TtlWithoutVersion, Rule::EditsWin),
        (Defect::TtlEarly, Rule::NoEarlyDelete),
        (Defect::CreationAfterTheEnd, Rule::NoResurrection),
        (Defect::ResumeAfterDeadline, Rule::NoResurrection),
        (Defect::DeletionByName, Rule::Identity),
        (Defect::ForeignAdopted, Rule::Identity),
        (Defect::ReleaseForgotten, Rule::DeadlineHappens),
        (Defect::StatusUnchanged, Rule::BoundedPressure),
        (Defect::CompletionIgnored, Rule::NoEarlyDeadline),
        (Defect::DeletionErrorSwallowed, Rule::DeadlineHappens),
        (Defect::OldTimer, Rule::NoEarlyDelete),
        (Defect::FiresWhileSuspended, Rule::NoEarlyDeadline),
        (Defect::NoBackoff, Rule::BoundedPressure),
        (Defect::EndRewritten, Rule::FinalEnd),
        (Defect::UnreleasedDeleted, Rule::NoEarlyDelete),
        (Defect::DeadlineIgnored, Rule::DeadlineHappens),
        (Defect::TtlIgnored, Rule::TtlHappens),
        (Defect::HoldIgnored, Rule::NoEarlyDelete),
        (Defect::HoldWithoutEnd, Rule::TtlHappens),
        (Defect::SuspensionIgnored, Rule::Convergence),
        (Defect::LikelyTimeActedOn, Rule::NoEarlyDeadline),
        (Defect::LikelyTimeActedOn, Rule::NoEarlyDelete),
        (Defect::EditNotFollowed, Rule::Convergence),
        (Defect::ResumedUncompared, Rule::EditsWin),
    ];
    let mut tried = table.map(|(defect, _)| defect).to_vec();
    tried.dedup();
    assert_eq!(tried, Defect::ALL);
    let missed: Vec<_> = table.into_iter().filter(|(of, by)| !is_found(*of, *by)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
