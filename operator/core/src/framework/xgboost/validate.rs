//! `XGBoost`: the variables of its tracker are the operator's.

use trainjob_api::TrainJob;

use crate::admission::{field::FieldError, reserved};

const RESERVED: [&str; 4] =
    ["DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"];

/// What is wrong with a job on an `XGBoost` runtime.
pub(crate) fn check(job: &TrainJob) -> Vec<FieldError> {
    let variables = reserved::variables(job).iter().enumerate();
    let taken = variables.filter(|(_, variable)| RESERVED.contains(&variable.name.as_str()));
    let refused = |index, name: &str| {
        let detail = format!("{name} is reserved for the XGBoost runtime");
        FieldError::forbidden(format!("spec.trainer.env[{index}]"), detail)
    };
    taken.map(|(index, variable)| refused(index, &variable.name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::testing::{job, texts};

    #[test]
    fn the_variables_of_the_tracker_are_reserved() {
        for name in RESERVED {
            let job = job(&json!({"trainer": {"env": [{"name": "A"}, {"name": name}]}}));
            let expected = format!(
                "spec.trainer.env[1]: Forbidden: {name} is reserved for the XGBoost runtime"
            );
            assert_eq!(texts(&check(&job)), [expected]);
        }
        assert_eq!(check(&job(&json!({"trainer": {"env": [{"name": "DMLC_ROLE"}]}}))), []);
        assert_eq!(check(&job(&json!({}))), []);
    }
}
