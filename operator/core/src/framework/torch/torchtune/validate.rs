//! torchtune: which models and shapes there are recipes for.
//!
//! Asked only of a TrainJob whose command is that of a recipe. The shape is the one that the TrainJob
//! gives itself; what the CPUs of the runtime would add does not count here, as in Kubeflow Trainer.

use trainjob_api::{TrainJob, v1alpha1::train_job::Trainer};

use super::{
    super::processes::Processes,
    build::{KEPT, Tuning, is_asked_for, is_single, model, recipe},
};
use crate::admission::field::FieldError;
use crate::build::{
    draft::{Draft, per_node},
    resources::gpus,
};

const LLAMA_1B: &str = "llama3_2/1B";
const LLAMA_3B: &str = "llama3_2/3B";
const LLAMA_70B: &str = "llama3_3/70B";
const QWEN: &str = "qwen2_5/1.5B";
const MODELS: [&str; 4] = [LLAMA_1B, LLAMA_3B, LLAMA_70B, QWEN];

/// What is wrong with a job that asks for a recipe.
pub(crate) fn check(job: &TrainJob, draft: &Draft<'_>, trainer: &Trainer) -> Vec<FieldError> {
    if !is_asked_for(trainer) {
        return Vec::new();
    }
    let runtime = &job.spec.runtime_ref.name;
    let model = model(runtime).unwrap_or_default();
    let args = trainer.args.as_deref().unwrap_or_default();
    let tuning = Tuning::of(args);
    let nodes = trainer.num_nodes.unwrap_or(1);

    let of_runtime = |detail| FieldError::invalid("spec.runtimeRef.name", runtime, detail);
    let of_nodes =
        |detail| FieldError::invalid("spec.trainer.numNodes", &trainer.num_nodes, detail);
    let mut errors = Vec::new();
    if !MODELS.contains(&model.as_str()) {
        errors.push(of_runtime(format!(
            "must have a supported pretrained model, invalid model configured: {model}"
        )));
    }
    if nodes > 1 && model != LLAMA_70B {
        errors.push(of_nodes(format!("must be 1 for {model} model")));
    }
    let config = config(draft, trainer, nodes, tuning);
    if config.contains("_qlora") && model == QWEN {
        errors.push(of_runtime(format!("QLoRA is not supported for {model} model")));
    }
    if config == "_qlora" && [LLAMA_1B, LLAMA_3B].contains(&model.as_str()) {
        errors.extend(one_device(trainer, &model));
    }
    if nodes > 1 && tuning != Tuning::Full {
        let detail = "LoRA fine-tuning is not supported for multi-node training in TorchTune";
        errors.push(of_nodes(detail.into()));
    }
    errors.extend(args.iter().enumerate().filter_map(|(index, arg)| kept(index, arg)));
    errors
}

/// The end of the config's name.
fn config(draft: &Draft<'_>, trainer: &Trainer, nodes: i32, tuning: Tuning) -> &'static str {
    let explicit = trainer.num_proc_per_node;
    let processes = explicit.map_or(Processes::Auto, |count| Processes::Count(count.into()));
    // What is no quantity is no GPU; building says what is wrong with it.
    let gpus = per_node(draft, gpus).unwrap_or(0);
    recipe(nodes, is_single(processes, gpus), tuning).1
}

fn one_device(trainer: &Trainer, model: &str) -> [FieldError; 2] {
    let processes = format!("must be auto or 1 for {model} model when using QLoRA");
    let gpus = format!("must have gpu resource with value 1 for {model} model when using QLoRA");
    [
        FieldError::invalid("spec.trainer.numProcPerNode", &trainer.num_proc_per_node, processes),
        FieldError::invalid("spec.trainer.resourcesPerNode", &trainer.resources_per_node, gpus),
    ]
}

/// An argument that the runtime has set already.
fn kept(index: usize, arg: &str) -> Option<FieldError> {
    let key = arg.split_once('=').map_or(arg, |(key, _)| key);
    let detail = format!(
        "must not set immutable config {key:?} in trainer args; it is managed by the runtime"
    );
    KEPT.contains(&key)
        .then(|| FieldError::invalid(format!("spec.trainer.args[{index}]"), arg, detail))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::testing;

    /// What is found about a recipe on the runtime of this name, which has two GPUs.
    fn found(name: &str, trainer: &Value) -> Vec<String> {
        let mut trainer = trainer.clone();
        trainer.as_object_mut().unwrap().entry("command").or_insert(json!(["tune", "run"]));
        let job = testing::job(&json!({"runtimeRef": {"name": name}, "trainer": trainer}));
        let node = json!({"name": "node", "resources": {"limits": {"nvidia.com/gpu": "2"}}});
        let replicated_jobs = json!([testing::replicated_job(
            "node",
            Some("trainer"),
            &json!({"containers": [node]})
        )]);
        let runtime = testing::with(&json!({"torch": {}}), &replicated_jobs);
        let trainer = job.spec.trainer.as_ref().unwrap();
        testing::found(&job, &runtime, |draft| check(&job, draft, trainer))
    }

    #[test]
    fn there_are_recipes_for_some_models() {
        const TEXT: &str = "must have a supported pretrained model, invalid model configured: ";
        for (name, model) in [("team-unknown-7b", "unknown/7B"), ("torch-distributed", "")] {
            let expected =
                format!("spec.runtimeRef.name: Invalid value: \"{name}\": {TEXT}{model}");
            assert_eq!(found(name, &json!({})), [expected]);
        }
        for name in ["llama3.2-1b", "llama3.2-3b", "llama3.3-70b", "qwen2.5-1.5b"] {
            assert_eq!(found(&format!("torchtune-{name}"), &json!({})), [""; 0], "{name}");
        }
        assert_eq!(found("torch-distributed", &json!({"command": ["tune"]})), [""; 0]);
    }

    #[test]
    fn only_the_largest_model_has_a_recipe_for_several_nodes() {
        let two = json!({"numNodes": 2});
        let expected = "spec.trainer.numNodes: Invalid value: 2: must be 1 for llama3_2/1B model";
        assert_eq!(found("torchtune-llama3.2-1b", &two), [expected]);
        assert_eq!(found("torchtune-llama3.3-70b", &two), [""; 0]);
    }

    #[test]
    fn several_nodes_have_no_recipe_with_lora() {
        for arg in ["model.lora_attn_modules=[q_proj]", "model.quantize_base=true"] {
            assert_eq!(
                found("torchtune-llama3.3-70b", &json!({"numNodes": 2, "args": [arg]})),
                [
                    "spec.trainer.numNodes: Invalid value: 2: LoRA fine-tuning is not supported for multi-node training in TorchTune"
                ]
            );
        }
    }

    #[test]
    fn qlora_has_recipes_for_one_device() {
        let qlora = |fields: Value| {
            let mut trainer = json!({"args": ["model.quantize_base=True"]});
            trainer.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            trainer
        };
        for name in ["llama3.2-1b", "llama3.2-3b"] {
            let model =
                name.replace('.', "_").replace('-', "/").to_uppercase().replace("LLAMA", "llama");
            let gpus =
                format!("must have gpu resource with value 1 for {model} model when using QLoRA");
            let processes = format!("must be auto or 1 for {model} model when using QLoRA");
            let resources = json!({"limits": {"nvidia.com/gpu": "2"}});
            let found = |fields| found(&format!("torchtune-{name}"), &qlora(fields));
            assert_eq!(
                found(json!({"numProcPerNode": 2, "resourcesPerNode": resources})),
                [
                    format!("spec.trainer.numProcPerNode: Invalid value: 2: {processes}"),
                    format!("spec.trainer.resourcesPerNode: Invalid value: {resources}: {gpus}"),
                ]
            );
            assert_eq!(
                found(json!({})),
                [
                    format!("spec.trainer.numProcPerNode: Invalid value: \"null\": {processes}"),
                    format!("spec.trainer.resourcesPerNode: Invalid value: \"null\": {gpus}"),
                ]
            );
            let one = json!({"limits": {"nvidia.com/gpu": "1"}});
            assert_eq!(found(json!({"resourcesPerNode": one})), [""; 0]);
            assert_eq!(found(json!({"numProcPerNode": 1})), [""; 0]);
        }
        let expected = "spec.runtimeRef.name: Invalid value: \"torchtune-qwen2.5-1.5b\": QLoRA is not supported for qwen2_5/1.5B model";
        assert_eq!(found("torchtune-qwen2.5-1.5b", &qlora(json!({}))), [expected]);
        assert_eq!(found("torchtune-llama3.3-70b", &qlora(json!({}))), [""; 0]);
    }

    #[test]
    fn what_the_runtime_keeps_is_not_for_the_job_to_set() {
        for key in KEPT {
            let arg = format!("{key}=/x");
            assert_eq!(
                found("torchtune-llama3.2-1b", &json!({"args": ["dataset=a", arg]})),
                [format!(
                    "spec.trainer.args[1]: Invalid value: \"{key}=/x\": must not set immutable config \"{key}\" in trainer args; it is managed by the runtime"
                )]
            );
        }
    }
}
