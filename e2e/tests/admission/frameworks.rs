//! What each framework keeps for itself, and what Volcano asks for.

use anyhow::Result;
use serde_json::{Value, json};

use super::check;
use super::parts::{node, pod, replicated_job, runtime, torch};
use super::row::Row;

/// A job with these variables of its trainer.
fn with_env(names: &[&str]) -> Value {
    let env: Vec<_> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
    json!({"trainer": {"env": env}})
}

/// The refusal of the last of these variables.
fn reserved(names: &[&str], found: &str) -> String {
    let env = &with_env(names)["trainer"]["env"];
    format!(
        "spec.trainer.env: Invalid value: {env}: must not have reserved envs, invalid envs configured: [{found}]"
    )
}

#[tokio::test]
async fn the_variables_of_a_framework_are_its_own() -> Result<()> {
    check("variables", variables()).await
}

fn variables() -> Vec<Row> {
    const TORCH: [&str; 5] =
        ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"];
    const MPI: [&str; 4] = [
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_plm_rsh_args",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
    ];
    const XGBOOST: [&str; 4] =
        ["DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"];
    let mpi = mpi(false, &["launcher", "node"]);
    let xgboost = runtime(&json!({"xgboost": {}}), &json!([node()]));
    let mut rows = vec![
        Row::new("PyTorch, another", torch(), with_env(&["PET_OTHER"])),
        Row::new("two of PyTorch's, in the order of their names", torch(), with_env(&["PET_NODE_RANK", "A", "PET_NNODES"]))
            .denied(&reserved(&["PET_NODE_RANK", "A", "PET_NNODES"], "PET_NNODES PET_NODE_RANK")),
        Row::new("MPI, PyTorch's", mpi.clone(), with_env(&["PET_NNODES"])),
        Row::new("XGBoost, another", xgboost.clone(), with_env(&["DMLC_ROLE"])),
        Row::new("XGBoost, each by itself", xgboost.clone(), with_env(&["DMLC_TASK_ID", "A", "DMLC_TRACKER_URI"]))
            .denied("[spec.trainer.env[0]: Forbidden: DMLC_TASK_ID is reserved for the XGBoost runtime, spec.trainer.env[2]: Forbidden: DMLC_TRACKER_URI is reserved for the XGBoost runtime]"),
        Row::new("JAX has none", runtime(&json!({"jax": {}}), &json!([node()])), with_env(&["PET_NNODES"])),
    ];
    for (runtime, names) in [(torch(), &TORCH[..]), (mpi, &MPI)] {
        rows.extend(names.iter().map(|name| {
            Row::new("one of its own", runtime.clone(), with_env(&["A", name]))
                .denied(&reserved(&["A", name], name))
        }));
    }
    rows.extend(XGBOOST.map(|name| {
        Row::new("one of its own", xgboost.clone(), with_env(&["A", name])).denied(&format!(
            "spec.trainer.env[1]: Forbidden: {name} is reserved for the XGBoost runtime"
        ))
    }));
    rows
}

#[tokio::test]
async fn an_injection_target_of_pytorch_exists() -> Result<()> {
    check("targets", targets()).await
}

fn targets() -> Vec<Row> {
    let row = |what, job: &str, container: &str| {
        let target = json!({"jobName": job, "containerNames": [container]});
        let policy = json!({"torch": {"envInjection": {"targets": [target]}}});
        let pod = json!({
            "restartPolicy": "Never",
            "initContainers": [{"name": "prepare", "image": "example.com/prepare:1"}],
            "containers": [
                {"name": "node", "image": "example.com/train:1"},
                {"name": "sidecar", "image": "example.com/side:1"},
            ],
        });
        let runtime = runtime(&policy, &json!([replicated_job("node", Some("trainer"), &pod)]));
        Row::new(what, runtime, json!({}))
    };
    let text = |job: &str, container: &str| {
        format!(
            "spec.runtimeRef: Invalid value: {{\"jobName\":\"{job}\",\"containerNames\":[\"{container}\"]}}: envInjection target podSet \"{job}\" container \"{container}\" not found in runtime template"
        )
    };
    vec![
        row("a container", "node", "sidecar"),
        row("an init container", "node", "prepare"),
        row("no such container", "node", "other").denied(&text("node", "other")),
        row("no such job", "other", "sidecar").denied(&text("other", "sidecar")),
    ]
}

#[tokio::test]
async fn torchtune_has_recipes_for_some_models_and_shapes() -> Result<()> {
    check("torchtune", recipes()).await
}

fn recipes() -> Vec<Row> {
    const SMALL: &str = "-llama3.2-1b";
    const LARGE: &str = "-llama3.3-70b";
    const QWEN: &str = "-qwen2.5-1.5b";
    let mut two_gpus = pod("node");
    two_gpus["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": 2}});
    let replicated_jobs = json!([replicated_job("node", Some("trainer"), &two_gpus)]);
    let row = |what, ending: &'static str, more: Value| {
        let mut trainer = json!({"command": ["tune", "run"]});
        if let (Some(trainer), Value::Object(more)) = (trainer.as_object_mut(), more) {
            trainer.extend(more);
        }
        let runtime = runtime(&json!({"torch": {}}), &replicated_jobs);
        Row::new(what, runtime, json!({"trainer": trainer})).on(ending)
    };
    let (lora, qlora) = ("model.lora_attn_modules=[q_proj]", "model.quantize_base=True");
    let one_gpu = json!({"limits": {"nvidia.com/gpu": "1"}});
    let nodes = |why: &str| format!("spec.trainer.numNodes: Invalid value: 2: {why}");
    let no_lora = "LoRA fine-tuning is not supported for multi-node training in TorchTune";
    let name = |why: &str| format!("spec.runtimeRef.name: Invalid value: \"{{runtime}}\": {why}");
    let kept = "spec.trainer.args[1]: Invalid value: \"output_dir=/x\": must not set immutable config \"output_dir\" in trainer args; it is managed by the runtime";
    vec![
        row("a model", SMALL, json!({})),
        row("another model", "-unknown-7b", json!({}))
            .denied(&name("must have a supported pretrained model, invalid model configured: unknown/7B")),
        row("several nodes", LARGE, json!({"numNodes": 2})),
        row("several nodes for a small model", SMALL, json!({"numNodes": 2}))
            .denied(&nodes("must be 1 for llama3_2/1B model")),
        row("LoRA on several nodes", LARGE, json!({"numNodes": 2, "args": [lora]})).denied(&nodes(no_lora)),
        row("QLoRA on several nodes", LARGE, json!({"numNodes": 2, "args": [qlora]}))
            .denied(&nodes(no_lora)),
        row("QLoRA where there is none", QWEN, json!({"args": [qlora]}))
            .denied(&name("QLoRA is not supported for qwen2_5/1.5B model")),
        row("QLoRA on one GPU", SMALL, json!({"args": [qlora], "resourcesPerNode": one_gpu})),
        row("QLoRA on two", SMALL, json!({"args": [qlora]})).denied(concat!(
            "[spec.trainer.numProcPerNode: Invalid value: \"null\": must be auto or 1 for llama3_2/1B model when using QLoRA, ",
            "spec.trainer.resourcesPerNode: Invalid value: \"null\": must have gpu resource with value 1 for llama3_2/1B model when using QLoRA]",
        )),
        row("what the runtime has set", SMALL, json!({"args": ["dataset=a", "output_dir=/x"]})).denied(kept),
        row("another command", "-unknown-7b", json!({"command": ["tune", "run", "x"]})),
    ]
}

/// A runtime of MPI with jobs of these names.
fn mpi(launcher_is_node: bool, names: &[&str]) -> Value {
    let replicated_jobs: Vec<_> =
        names.iter().map(|name| replicated_job(name, None, &pod("node"))).collect();
    runtime(&json!({"mpi": {"runLauncherAsNode": launcher_is_node}}), &json!(replicated_jobs))
}

#[tokio::test]
async fn mpi_on_several_nodes_has_a_launcher_and_nodes() -> Result<()> {
    let row = |what, replicated_jobs: &[&str], nodes: i32| {
        Row::new(what, mpi(true, replicated_jobs), json!({"trainer": {"numNodes": nodes}}))
    };
    check(
        "mpi",
        vec![
            row("both", &["launcher", "node"], 2),
            row("one node", &["launcher"], 1),
            row("no nodes", &["launcher"], 2).denied(
                "spec.trainer.numNodes: Invalid value: 2: must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher and node",
            ),
        ],
    )
    .await
}

#[tokio::test]
async fn the_installer_of_flux_is_its_own() -> Result<()> {
    let row = |what, name: &str| {
        let mut pod = pod("node");
        pod["initContainers"] = json!([{"name": name, "image": "example.com/init:1"}]);
        let replicated_jobs = json!([replicated_job("node", Some("trainer"), &pod)]);
        Row::new(
            what,
            runtime(&json!({"flux": {}}), &replicated_jobs),
            json!({"trainer": {"command": ["train"]}}),
        )
    };
    check(
        "flux",
        vec![
            row("another init container", "prepare"),
            row("its own", "flux-installer").denied(
                "spec.trainer.initContainers: Invalid value: \"flux-installer\": InitContainer 'flux-installer' is reserved",
            ),
        ],
    )
    .await
}

#[tokio::test]
async fn volcano_s_queue_has_a_name_and_its_priorities_exist() -> Result<()> {
    check("volcano", volcano()).await
}

fn volcano() -> Vec<Row> {
    let row = |what, policy: Value, queue: Option<&str>, priorities: &[&str]| {
        let replicated_jobs: Vec<_> = priorities
            .iter()
            .enumerate()
            .map(|(number, priority)| {
                let mut pod = pod("node");
                pod["priorityClassName"] = json!(priority);
                replicated_job(&format!("s{number}"), None, &pod)
            })
            .chain([node()])
            .collect();
        let annotations = queue.map(|name| json!({"scheduling.volcano.sh/queue-name": name}));
        let metadata = json!({"annotations": annotations.unwrap_or_else(|| json!({}))});
        let template = json!({"metadata": metadata, "spec": {"replicatedJobs": replicated_jobs}});
        Row::new(what, json!({"podGroupPolicy": policy, "template": template}), json!({}))
    };
    let volcano = || json!({"volcano": {}});
    let gone = "spec.templateSpec.priorityClassName: Invalid value: \"e2e-gone\": PriorityClass \"e2e-gone\" doesn't exist: PriorityClass.scheduling.k8s.io \"e2e-gone\" not found";
    vec![
        row("a queue", volcano(), Some("team"), &[]),
        row("a queue without a name", volcano(), Some(""), &[]).denied(
            "spec.annotations[scheduling.volcano.sh/queue-name]: Invalid value: \"\": Volcano queue name must not be empty",
        ),
        row("a priority of Kubernetes", volcano(), None, &["system-node-critical"]),
        row("none", volcano(), None, &["e2e-gone"]).denied(gone),
        row("none, behind one of Kubernetes", volcano(), None, &["system-node-critical", "e2e-gone"])
            .denied(gone),
        row("another scheduler", json!({"coscheduling": {}}), None, &["e2e-gone"]),
    ]
}
