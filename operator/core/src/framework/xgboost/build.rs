//! `XGBoost`: what its workers need to find the tracker, which runs with the first of them.
//!
//! | variable | value |
//! |---|---|
//! | `DMLC_TRACKER_URI` | first Pod of the trainer's replicated job, `<job>-node-0-0.<job>` in the usual runtime |
//! | `DMLC_TRACKER_PORT` | 29500 |
//! | `DMLC_TASK_ID` | index of the Pod in its Job |
//! | `DMLC_NUM_WORKER` | nodes of the trainer's replicated job, times the GPUs of each where it has some |
//!
//! Container `node` of the trainer's replicated job gets the variables, after the user's own, and port 29500; see
//! [`rendezvous`](crate::build::rendezvous) for when.

use trainjob_api::constants::TRAINER_PORT;

use crate::build::{
    draft::{Draft, per_node},
    error::BuildError,
    rendezvous::{host, index, participant, variable},
    replicated_job::{ensure_port, nodes, upsert_env},
    resources::gpus,
};

/// Writes the table above into the draft.
pub(crate) fn enforce(draft: &mut Draft<'_>) -> Result<(), BuildError> {
    draft.apply_num_nodes();
    let variables = [
        variable("DMLC_TRACKER_URI", host(draft)),
        variable("DMLC_TRACKER_PORT", TRAINER_PORT.to_string()),
        index("DMLC_TASK_ID"),
        variable("DMLC_NUM_WORKER", workers(draft)?.to_string()),
    ];
    if let Some((node, trainer)) = participant(draft) {
        upsert_env(node, trainer.env.iter().flatten().chain(&variables));
        ensure_port(node, TRAINER_PORT);
    }
    Ok(())
}

/// Workers of the whole job: one for each GPU, or for each node that has none.
fn workers(draft: &Draft<'_>) -> Result<i64, BuildError> {
    let nodes = i64::from(draft.trainer().map_or(1, nodes));
    Ok(nodes.saturating_mul(per_node(draft, gpus)?.max(1)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::build::{
        build,
        testing::{built, container, job, single, variable},
    };

    /// The container of the trainer's replicated job of a TrainJob, on a runtime whose container has these fields.
    fn node(trainer: &Value, fields: &Value) -> Value {
        let job_set = built(&job(&json!({"trainer": trainer})), &single("xgboost", fields));
        job_set.pointer(&container(0)).unwrap().clone()
    }

    #[test]
    fn there_is_a_worker_for_each_gpu_or_each_node_without() {
        let gpus = |count: i64| json!({"limits": {"nvidia.com/gpu": count}});
        let memory = json!({"limits": {"memory": "8Gi"}});
        let many = json!({"limits": {"nvidia.com/gpu": "9E"}});
        for (nodes, of_job, of_runtime, expected) in [
            (1, json!({}), json!({}), "1"),
            (4, json!({}), json!({}), "4"),
            (4, gpus(2), json!({}), "8"),
            (4, json!({}), gpus(2), "8"),
            (4, gpus(1), gpus(2), "4"),
            (4, gpus(0), gpus(2), "4"),
            (4, memory, gpus(2), "8"),
            (0, gpus(2), json!({}), "0"),
            (4, many, json!({}), "9223372036854775807"),
        ] {
            let trainer = json!({"numNodes": nodes, "resourcesPerNode": of_job});
            let node = node(&trainer, &json!({"resources": of_runtime}));
            let workers = variable(&node, "DMLC_NUM_WORKER").unwrap();
            assert_eq!(workers, expected, "{nodes} nodes, {of_job} over {of_runtime}");
        }
    }

    #[test]
    fn the_user_s_variables_go_before() {
        let trainer = json!({"env": [{"name": "A", "value": "user"}]});
        let env =
            node(&trainer, &json!({"env": [{"name": "R", "value": "runtime"}]}))["env"].take();
        let env = env.as_array().unwrap();
        let names: Vec<_> = env.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["R", "A", "DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"]
        );
    }

    #[test]
    fn without_spec_trainer_nothing_is_added() {
        assert_eq!(
            node(&json!(null), &json!({})),
            json!({"name": "node", "image": "runtime/image"})
        );
    }

    #[test]
    fn a_quantity_that_is_none_is_an_error() {
        let job = job(&json!({"trainer": {"resourcesPerNode": {"limits": {"a/gpu": "many"}}}}));
        let error = build(&job, &single("xgboost", &json!({}))).unwrap_err().to_string();
        assert!(error.contains("\"many\" is not a quantity of a/gpu"), "{error}");
    }
}
