//! JAX: what `jax.distributed.initialize()` needs to find the other processes.
//!
//! | variable | value |
//! |---|---|
//! | `JAX_NUM_PROCESSES` | nodes of the trainer's replicated job |
//! | `JAX_PROCESS_ID` | index of the Pod in its Job |
//! | `JAX_COORDINATOR_ADDRESS` | first Pod of the trainer's replicated job and port, `<job>-node-0-0.<job>:29500` in the usual runtime |
//!
//! Container `node` of the trainer's replicated job gets the variables, before the user's own, and port 29500; see
//! [`rendezvous`](crate::build::rendezvous) for when. No name is reserved: a user who sets one of them means it,
//! and is obeyed.

use trainjob_api::constants::TRAINER_PORT;

use crate::build::{
    draft::Draft,
    rendezvous::{endpoint, index, participant, variable},
    replicated_job::{ensure_port, nodes, upsert_env},
};

/// Writes the table above into the draft.
pub(crate) fn enforce(draft: &mut Draft<'_>) {
    draft.apply_num_nodes();
    let variables = [
        variable("JAX_NUM_PROCESSES", draft.trainer().map_or(1, nodes).to_string()),
        index("JAX_PROCESS_ID"),
        variable("JAX_COORDINATOR_ADDRESS", endpoint(draft)),
    ];
    if let Some((node, _)) = participant(draft) {
        upsert_env(node, &variables);
        ensure_port(node, TRAINER_PORT);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::build::testing::{built, container, job, single};

    /// The container of the trainer's replicated job of a TrainJob, on a runtime whose container has these fields.
    fn node(trainer: &Value, fields: &Value) -> Value {
        let job_set = built(&job(&json!({"trainer": trainer})), &single("jax", fields));
        job_set.pointer(&container(0)).unwrap().clone()
    }

    #[test]
    fn the_user_s_variables_follow_and_win() {
        let trainer = json!({"env": [
            {"name": "A", "value": "user"},
            {"name": "JAX_NUM_PROCESSES", "value": "7"},
        ]});
        let env =
            node(&trainer, &json!({"env": [{"name": "R", "value": "runtime"}]}))["env"].take();
        let env = env.as_array().unwrap();
        let names: Vec<_> = env.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["R", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS", "A"]
        );
        assert_eq!(env[1]["value"], "7");
    }

    #[test]
    fn the_port_is_added_to_those_of_the_runtime() {
        for (ports, expected) in [
            (json!([]), json!([{"containerPort": 29500}])),
            (
                json!([{"containerPort": 8080}]),
                json!([{"containerPort": 8080}, {"containerPort": 29500}]),
            ),
            (json!([{"containerPort": 29500}]), json!([{"containerPort": 29500}])),
        ] {
            assert_eq!(node(&json!({}), &json!({"ports": ports}))["ports"], expected, "{ports}");
        }
    }

    #[test]
    fn without_spec_trainer_nothing_is_added() {
        assert_eq!(
            node(&json!(null), &json!({})),
            json!({"name": "node", "image": "runtime/image"})
        );
    }
}
