//! MPI: several nodes need the jobs that make them, and the launcher's variables are the operator's.

use trainjob_api::{
    TrainJob, constants::NODE, jobset::ReplicatedJob, v1alpha1::runtime::MpiPolicy,
};

use super::LAUNCHER;
use crate::admission::{field::FieldError, reserved, runtimes::STEPS};
use crate::build::draft::Draft;

const RESERVED: [&str; 4] = [
    "OMPI_MCA_orte_default_hostfile",
    "OMPI_MCA_plm_rsh_args",
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "OMPI_MCA_orte_set_default_slots",
];

/// What is wrong with a job on an MPI runtime.
pub(crate) fn check(job: &TrainJob, draft: &Draft<'_>, policy: &MpiPolicy) -> Vec<FieldError> {
    let nodes = job.spec.trainer.as_ref().and_then(|trainer| trainer.num_nodes);
    let launcher_is_node = policy.run_launcher_as_node.unwrap_or(false);
    let has = |name| {
        draft
            .spec
            .replicated_jobs
            .iter()
            .flatten()
            .any(|replicated_job| replicated_job.name == name)
    };
    let detail = "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher and node";
    let nodes = nodes
        .filter(|nodes| *nodes > 1 && launcher_is_node && !(has(LAUNCHER) && has(NODE)))
        .map(|nodes| FieldError::invalid("spec.trainer.numNodes", &nodes, detail));
    nodes.into_iter().chain(reserved::check(job, &RESERVED)).collect()
}

/// What is wrong with the replicated jobs of an MPI runtime.
pub(crate) fn check_runtime(policy: &MpiPolicy, jobs: &[ReplicatedJob]) -> Vec<FieldError> {
    let launcher_is_node = policy.run_launcher_as_node.unwrap_or(false);
    let needed = [
        (LAUNCHER, "which starts the processes", true),
        (
            NODE,
            "whose Pods train, unless spec.mlPolicy.mpi.runLauncherAsNode is true",
            !launcher_is_node,
        ),
    ];
    let lacking = needed
        .into_iter()
        .filter(|(name, _, is_needed)| *is_needed && !jobs.iter().any(|job| job.name == *name));
    let required = |(name, what, _)| {
        let detail = format!("spec.mlPolicy.mpi needs a replicated job named {name:?}, {what}");
        FieldError::required(STEPS, detail)
    };
    lacking.map(required).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::testing;

    fn found(trainer: &Value, launcher_is_node: bool, replicated_jobs: &[&str]) -> Vec<String> {
        let job = testing::job(&json!({"trainer": trainer}));
        let replicated_jobs: Vec<_> = replicated_jobs
            .iter()
            .map(|name| testing::replicated_job(name, None, &json!({"containers": []})))
            .collect();
        let mpi = json!({"mpi": {"runLauncherAsNode": launcher_is_node}});
        let runtime = testing::with(&mpi, &json!(replicated_jobs));
        let policy = runtime.spec.ml_policy.as_ref().unwrap().mpi.as_ref().unwrap();
        testing::found(&job, &runtime, |draft| check(&job, draft, policy))
    }

    #[test]
    fn several_nodes_need_a_launcher_and_a_node() {
        const SHAPE: &str = "spec.trainer.numNodes: Invalid value: 2: must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher and node";
        let two = json!({"numNodes": 2});
        for (trainer, launcher_is_node, replicated_jobs, expected) in [
            (&two, true, &["launcher", "node"][..], vec![]),
            (&two, true, &["launcher"], vec![SHAPE]),
            (&two, true, &["node"], vec![SHAPE]),
            (&two, true, &[], vec![SHAPE]),
            (&two, false, &["launcher"], vec![]),
            (&json!({"numNodes": 1}), true, &["launcher"], vec![]),
            (&json!({}), true, &["launcher"], vec![]),
            (&json!(null), true, &["launcher"], vec![]),
        ] {
            assert_eq!(
                found(trainer, launcher_is_node, replicated_jobs),
                expected,
                "{trainer} {replicated_jobs:?}"
            );
        }
    }

    #[test]
    fn the_variables_of_the_launcher_are_reserved() {
        let env = |names: &[&str]| {
            let env: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            found(&json!({"env": env}), false, &["launcher"])
        };
        assert_eq!(env(&["A"]), [""; 0]);
        for name in RESERVED {
            let expected = format!(
                r#"spec.trainer.env: Invalid value: [{{"name":"{name}"}}]: must not have reserved envs, invalid envs configured: [{name}]"#
            );
            assert_eq!(env(&[name]), [expected]);
        }
        let two = env(&["OMPI_MCA_plm_rsh_args", "A", "OMPI_MCA_orte_default_hostfile"]);
        let end = "configured: [OMPI_MCA_orte_default_hostfile OMPI_MCA_plm_rsh_args]";
        assert!(two[0].ends_with(end), "{two:?}");
    }
}
