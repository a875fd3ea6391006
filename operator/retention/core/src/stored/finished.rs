//! What finished means, as a policy describes it (`docs/retention.md`, R6).

use trainjob_api::lifecycle::v1alpha1::finished as api;

use super::{
    error::{At, StoredError},
    rules::reasons,
    selector::operator,
};
use crate::{
    finished::configured::{
        DescribedOutcome, Description, EndCondition, FieldPath, Guard, OwnTtlField, Phase, Subject,
        Test,
    },
    operator::Condition,
    policy::PolicyError,
    selector::{SelectorError, valid_key},
};

/// The description in `spec.finished`.
pub(super) fn description(finished: &api::Finished) -> Result<Description, StoredError> {
    let api::Finished { requires, conditions, phase, reason_path, time_path, own_ttl, guards } =
        finished;
    let optional_path = |field: &str, at: &Option<String>| {
        at.as_ref().map(|at| path(&format!("spec.finished.{field}"), at)).transpose()
    };
    Ok(Description {
        requires: each("spec.finished.requires", requires, test)?,
        conditions: each("spec.finished.conditions", conditions, condition)?,
        phase: phase.as_ref().map(|phase| self::phase("spec.finished.phase", phase)).transpose()?,
        reason: optional_path("reasonPath", reason_path)?,
        time: optional_path("timePath", time_path)?,
        own_ttl: each("spec.finished.ownTTL", own_ttl, self::own_ttl)?,
        guards: each("spec.finished.guards", guards, guard)?,
    })
}

/// Reads each item of the list in the field of this path.
fn each<T, U>(
    field: &str,
    items: &[T],
    read: impl Fn(&str, &T) -> Result<U, StoredError>,
) -> Result<Vec<U>, StoredError> {
    let items = items.iter().enumerate();
    items.map(|(index, item)| read(&format!("{field}[{index}]"), item)).collect()
}

fn test(field: &str, test: &api::Requirement) -> Result<Test, StoredError> {
    let api::Requirement { subject, operator, values } = test;
    let subject = match subject {
        api::Subject::Path(at) => Subject::Field(path(&format!("{field}.path"), at)?),
        api::Subject::Label(key) => {
            Subject::Label(valid_key(key).at(&format!("{field}.label"))?.into())
        }
        api::Subject::Annotation(keys) => annotation(&format!("{field}.annotation"), keys)?,
    };
    let values = values.iter().map(String::as_str);
    let condition = Condition::new(self::operator(*operator), values).at(field)?;
    Ok(Test { subject, condition })
}

/// An annotation, or with a `*` at the end all whose keys begin so. Keys of annotations are made like those of labels.
fn annotation(field: &str, keys: &str) -> Result<Subject, StoredError> {
    let Some(start) = keys.strip_suffix('*') else {
        return Ok(Subject::Annotation(valid_key(keys).at(field)?.into()));
    };
    let may_go_on = |end: &str| valid_key(&format!("{start}{end}")).is_ok();
    if may_go_on("") || may_go_on("a") {
        return Ok(Subject::Annotations(start.into()));
    }
    Err(SelectorError::Key(keys.to_owned())).at(field)
}

fn condition(field: &str, condition: &api::FinishedCondition) -> Result<EndCondition, StoredError> {
    says_something(&format!("{field}.type"), &condition.kind)?;
    Ok(EndCondition {
        type_: condition.kind.clone(),
        status: match condition.status {
            api::ConditionStatus::True => true,
            api::ConditionStatus::False => false,
        },
        reasons: reasons(field, &condition.reasons)?,
        outcome: outcome(&format!("{field}.outcome"), condition.outcome)?,
    })
}

fn phase(field: &str, phase: &api::Phase) -> Result<Phase, StoredError> {
    let api::PhaseOutcomes { succeeded, failed, other } = &phase.outcomes;
    let values = [
        ("Succeeded", succeeded, DescribedOutcome::Succeeded),
        ("Failed", failed, DescribedOutcome::Failed),
        ("Other", other, DescribedOutcome::Other),
    ];
    for (name, values, _) in values {
        each(&format!("{field}.outcomes.{name}"), values, |field, it| says_something(field, it))?;
    }
    let values = values
        .into_iter()
        .flat_map(|(_, values, outcome)| values.iter().map(move |value| (value.clone(), outcome)));
    let otherwise = phase.otherwise.map(|it| outcome(&format!("{field}.otherwise"), it));
    let path = path(&format!("{field}.path"), &phase.path)?;
    Phase::new(path, values, otherwise.transpose()?).at(field)
}

fn own_ttl(field: &str, own_ttl: &api::OwnTtlField) -> Result<OwnTtlField, StoredError> {
    let api::OwnTtlField { path: at, outcomes } = own_ttl;
    let outcomes = outcomes.iter().map(|it| outcome(&format!("{field}.outcomes"), *it));
    Ok(OwnTtlField {
        path: path(&format!("{field}.path"), at)?,
        outcomes: outcomes.collect::<Result<_, _>>()?,
    })
}

fn guard(field: &str, guard: &api::Guard) -> Result<Guard, StoredError> {
    says_something(&format!("{field}.name"), &guard.name)?;
    let tests = each(&format!("{field}.while"), &guard.holding, test)?;
    Guard::new(tests).at(field)
}

fn says_something(field: &str, text: &str) -> Result<(), StoredError> {
    if text.is_empty() { Err(StoredError::Nothing(field.to_owned())) } else { Ok(()) }
}

fn path(field: &str, path: &str) -> Result<FieldPath, StoredError> {
    FieldPath::parse(path).at(field)
}

fn outcome(field: &str, outcome: api::Outcome) -> Result<DescribedOutcome, StoredError> {
    match outcome {
        api::Outcome::Succeeded => Ok(DescribedOutcome::Succeeded),
        api::Outcome::Failed => Ok(DescribedOutcome::Failed),
        api::Outcome::Other => Ok(DescribedOutcome::Other),
        api::Outcome::Deactivated => Err(PolicyError::Deactivated).at(field),
    }
}
