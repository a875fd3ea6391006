//! torchtune: a recipe for fine-tuning a model, written out where a TrainJob only says `tune run`.
//!
//! | word of the command | when |
//! |---|---|
//! | `tune run` | always |
//! | `--rdzv_endpoint=<first Pod>:29500` | several nodes or several processes |
//! | recipe, `--config`, config | always; see below |
//! | `output_dir=…`, `tokenizer.path=…`, `tokenizer.merges_file=…`, `checkpointer.checkpoint_dir=…` | as the runtime's command has them, in its order |
//!
//! The rest of the runtime's command is dropped; the TrainJob's arguments follow as arguments. Recipe and
//! config are those for the shape of the job; the config's name begins with the model's:
//!
//! | nodes | processes of a node | recipe | end of the config |
//! |---|---|---|---|
//! | 1 | 1 | `full_finetune_single_device` | `_full_single_device` |
//! | 1 | 1, with LoRA | `lora_finetune_single_device` | `_lora_single_device` |
//! | 1 | 1, with QLoRA | `lora_finetune_single_device` | `_qlora_single_device` |
//! | 1 | several | `full_finetune_distributed` | `_full` |
//! | 1 | several, with LoRA | `lora_finetune_distributed` | `_lora` |
//! | 1 | several, with QLoRA | `lora_finetune_distributed` | `_qlora` |
//! | several | any | `full_finetune_distributed` | `_full_multinode` |
//! | 0 | any | `full_finetune_distributed` | `_full` |
//!
//! All of it is what Kubeflow Trainer does, down to the model being read from the runtime's name. [`admission`](crate::admission)
//! refuses what torchtune has no config for (other models, LoRA on several nodes); that is not for this
//! file, which writes those commands too.

use trainjob_api::{constants::NODE, v1alpha1::train_job::Trainer};

use super::super::processes::Processes;
use crate::build::{
    draft::{Draft, per_node},
    error::BuildError,
    rendezvous::endpoint,
    replicated_job::{container, nodes},
    resources::gpus,
};

/// The command that stands for a recipe: this and nothing else.
const TUNE_RUN: [&str; 2] = ["tune", "run"];

/// What of the runtime's command is kept: where its volumes are.
pub(crate) const KEPT: [&str; 4] =
    ["output_dir", "tokenizer.path", "tokenizer.merges_file", "checkpointer.checkpoint_dir"];

/// Whether the TrainJob asks for a recipe.
pub(crate) fn is_asked_for(trainer: &Trainer) -> bool {
    trainer.command.as_ref().is_some_and(|command| *command == TUNE_RUN)
}

/// The command that was meant.
pub(crate) fn command(
    draft: &Draft<'_>,
    trainer: &Trainer,
    processes: Processes,
) -> Result<Vec<String>, BuildError> {
    let runtime = &draft.job.spec.runtime_ref.name;
    let model = model(runtime).ok_or_else(|| BuildError::Model { runtime: runtime.clone() })?;
    let nodes = draft.trainer().map_or(1, nodes);
    let gpus = per_node(draft, gpus)?;
    let args = trainer.args.as_deref().unwrap_or_default();
    let (recipe, end) = recipe(nodes, is_single(processes, gpus), Tuning::of(args));

    let mut command: Vec<String> = TUNE_RUN.map(Into::into).into();
    if nodes > 1 || is_several(processes, gpus) {
        command.push(format!("--rdzv_endpoint={}", endpoint(draft)));
    }
    command.extend([recipe.into(), "--config".into(), format!("{model}{end}")]);
    command.extend(kept(draft));
    Ok(command)
}

/// What is trained of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tuning {
    /// All of it.
    Full,
    /// Small matrices beside it.
    Lora,
    /// The same, beside a quantized model.
    Qlora,
}

impl Tuning {
    /// What the arguments say.
    pub(crate) fn of(args: &[String]) -> Self {
        let enables = |key: &str| {
            args.iter().filter_map(|arg| arg.split_once('=')).any(|(name, value)| {
                name.contains(key) && value.trim().eq_ignore_ascii_case("true")
            })
        };
        if enables("model.quantize_base") && !enables("model.use_dora") {
            Self::Qlora
        } else if args.iter().any(|arg| arg.contains("model.lora_attn_modules")) {
            Self::Lora
        } else {
            Self::Full
        }
    }
}

/// Recipe and end of the config's name, as in the table.
pub(crate) const fn recipe(
    nodes: i32,
    single: bool,
    tuning: Tuning,
) -> (&'static str, &'static str) {
    match (nodes, single, tuning) {
        (1, true, Tuning::Full) => ("full_finetune_single_device", "_full_single_device"),
        (1, true, Tuning::Lora) => ("lora_finetune_single_device", "_lora_single_device"),
        (1, true, Tuning::Qlora) => ("lora_finetune_single_device", "_qlora_single_device"),
        (1, false, Tuning::Lora) => ("lora_finetune_distributed", "_lora"),
        (1, false, Tuning::Qlora) => ("lora_finetune_distributed", "_qlora"),
        (2.., _, _) => ("full_finetune_distributed", "_full_multinode"),
        _ => ("full_finetune_distributed", "_full"),
    }
}

/// Whether a node has one device. One GPU is one device, however many processes are asked for.
pub(crate) const fn is_single(processes: Processes, gpus: i64) -> bool {
    matches!(processes, Processes::Count(1)) || gpus == 1
}

/// Whether the processes of a node have to find each other.
const fn is_several(processes: Processes, gpus: i64) -> bool {
    match processes {
        Processes::Auto => gpus > 1,
        Processes::Count(count) => count > 1,
    }
}

/// The model that the runtime's name ends with, as torchtune's configs name it: `llama3_2/1B` for
/// `torchtune-llama3.2-1b`.
pub(crate) fn model(runtime: &str) -> Option<String> {
    let mut words = runtime.split('-');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(_), Some(family), Some(size), None) if !family.is_empty() && !size.is_empty() => {
            Some(format!("{}/{}", family.replace('.', "_"), size.to_uppercase()))
        }
        _ => None,
    }
}

/// The words of the runtime's command that are kept.
fn kept<'d>(draft: &'d Draft<'_>) -> impl Iterator<Item = String> + 'd {
    let node = draft.trainer().and_then(|replicated_job| container(replicated_job, NODE));
    let words = node.and_then(|node| node.command.as_ref()).into_iter().flatten();
    let key = |word: &str| word.split_once('=').map_or(word, |(key, _)| key).to_owned();
    words.filter(move |word| KEPT.contains(&key(word).as_str())).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::build::{
        build,
        testing::{built, container, job, single, variable},
    };

    const NAME: &str = "torchtune-llama3.2-1b";

    fn tuned(runtime: &str, trainer: &Value) -> trainjob_api::TrainJob {
        let mut trainer = trainer.clone();
        let given = trainer.as_object_mut().unwrap();
        given.entry("command").or_insert(json!(["tune", "run"]));
        job(&json!({"runtimeRef": {"name": runtime}, "trainer": trainer}))
    }

    /// The container that a job with this trainer gets from a runtime with two GPUs and this command.
    fn node(trainer: &Value, command: &[&str]) -> Value {
        let resources = json!({"limits": {"nvidia.com/gpu": 2}});
        let runtime = single("torch", &json!({"resources": resources, "command": command}));
        built(&tuned(NAME, trainer), &runtime).pointer(&container(0)).unwrap().clone()
    }

    fn command_of(trainer: &Value) -> String {
        let node = node(trainer, &[]);
        let words = node["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_command_is_that_for_the_shape_of_the_job() {
        const MEET: &str = "--rdzv_endpoint=tj-node-0-0.tj:29500 ";
        let lora = json!(["model.lora_attn_modules=[q_proj]"]);
        let qlora = json!(["model.lora_attn_modules=[q_proj]", "model.quantize_base=True"]);
        for (shape, meet, devices, full_end) in [
            (json!({}), MEET, "distributed", "_full"),
            (json!({"numNodes": 1, "numProcPerNode": 4}), MEET, "distributed", "_full"),
            (json!({"numProcPerNode": 1}), "", "single_device", "_full_single_device"),
            (gpus_of(1), "", "single_device", "_full_single_device"),
            (gpus_of(0), "", "single_device", "_full_single_device"),
            (cpus_of("4"), MEET, "distributed", "_full"),
            // One GPU and several processes: one device, and still they are told where to meet.
            (with(gpus_of(1), "numProcPerNode", 4), MEET, "single_device", "_full_single_device"),
        ] {
            for (args, kind, config) in [
                (json!([]), "full", "full"),
                (lora.clone(), "lora", "lora"),
                (qlora.clone(), "lora", "qlora"),
            ] {
                let end = full_end.replace("full", config);
                assert_eq!(
                    command_of(&with(shape.clone(), "args", args)),
                    format!("tune run {meet}{kind}_finetune_{devices} --config llama3_2/1B{end}"),
                    "{shape}, {config}"
                );
            }
        }
        // Several nodes have one recipe, none at all another, whatever else is asked for.
        for (nodes, meet, end) in [(2, MEET, "_full_multinode"), (0, MEET, "_full")] {
            for args in [json!([]), lora.clone(), qlora.clone()] {
                let shape = json!({"numNodes": nodes, "args": args});
                assert_eq!(
                    command_of(&shape),
                    format!("tune run {meet}full_finetune_distributed --config llama3_2/1B{end}"),
                    "{shape}"
                );
            }
        }
        let alone = json!({"numNodes": 0, "numProcPerNode": 1});
        assert_eq!(
            command_of(&alone),
            "tune run full_finetune_distributed --config llama3_2/1B_full"
        );
    }

    fn with(mut trainer: Value, field: &str, value: impl Into<Value>) -> Value {
        trainer[field] = value.into();
        trainer
    }

    fn gpus_of(count: i32) -> Value {
        json!({"resourcesPerNode": {"limits": {"nvidia.com/gpu": count}}})
    }

    /// No GPUs but these CPUs.
    fn cpus_of(count: &str) -> Value {
        json!({"resourcesPerNode": {"limits": {"nvidia.com/gpu": 0, "cpu": count}}})
    }

    #[test]
    fn the_arguments_say_how_much_of_the_model_is_trained() {
        for (args, expected) in [
            (&[][..], Tuning::Full),
            (&["model.lora_attn_modules=[q_proj,v_proj]"], Tuning::Lora),
            (&["--model.lora_attn_modules"], Tuning::Lora),
            (&["model.quantize_base=true"], Tuning::Qlora),
            (&["--model.quantize_base= TRUE "], Tuning::Qlora),
            (&["model.quantize_base=false"], Tuning::Full),
            (&["model.quantize_base"], Tuning::Full),
            (&["model.quantize_base=true=x"], Tuning::Full),
            (&["model.quantize_base=true", "model.use_dora=true"], Tuning::Full),
            (&["model.quantize_base=true", "model.use_dora=false"], Tuning::Qlora),
            (
                &["model.lora_attn_modules=[q]", "model.quantize_base=1", "model.use_dora=True"],
                Tuning::Lora,
            ),
        ] {
            let args: Vec<String> = args.iter().copied().map(Into::into).collect();
            assert_eq!(Tuning::of(&args), expected, "{args:?}");
        }
    }

    #[test]
    fn of_the_runtime_s_command_only_its_paths_are_kept_in_its_order() {
        let node = node(
            &json!({"args": ["dataset=mine"]}),
            &[
                "tune",
                "run",
                "--rdzv_endpoint=localhost:29500",
                "full_finetune_distributed",
                "--config",
                "llama3_2/1B_full",
                "dataset=torchtune.datasets.instruct_dataset",
                "output_dir=/workspace/output",
                "tokenizer.path=/workspace/a=b",
                "tokenizer.path.x=1",
                "checkpointer.checkpoint_dir=/workspace/model",
                "tokenizer.merges_file=/workspace/merges",
                "x.output_dir=/other",
                "output_dir",
            ],
        );
        let expected = json!([
            "tune",
            "run",
            "--rdzv_endpoint=tj-node-0-0.tj:29500",
            "full_finetune_distributed",
            "--config",
            "llama3_2/1B_full",
            "output_dir=/workspace/output",
            "tokenizer.path=/workspace/a=b",
            "checkpointer.checkpoint_dir=/workspace/model",
            "tokenizer.merges_file=/workspace/merges",
            "output_dir",
        ]);
        assert_eq!(node["command"], expected);
        assert_eq!(node["args"], json!(["dataset=mine"]));
    }

    #[test]
    fn a_recipe_is_told_where_to_meet_by_argument_only() {
        let node = node(&json!({}), &[]);
        assert_eq!(variable(&node, "PET_NPROC_PER_NODE").unwrap(), "auto");
        assert_eq!(variable(&node, "PET_MASTER_ADDR"), None);
        assert_eq!(variable(&node, "PET_MASTER_PORT"), None);
        assert_eq!(node["ports"], json!([{"containerPort": 29500}]));
    }

    #[test]
    fn the_model_is_what_the_runtime_s_name_ends_with() {
        for (name, expected) in [
            ("torchtune-llama3.2-1b", Some("llama3_2/1B")),
            ("torchtune-llama3.2-3b", Some("llama3_2/3B")),
            ("torchtune-llama3.3-70b", Some("llama3_3/70B")),
            ("torchtune-qwen2.5-1.5b", Some("qwen2_5/1.5B")),
            ("team-unknown-7b", Some("unknown/7B")),
            ("torch-distributed", None),
            ("torchtune-llama3.2-1b-mine", None),
            ("torchtune--1b", None),
            ("torchtune-llama3.2-", None),
            ("", None),
        ] {
            assert_eq!(model(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_runtime_whose_name_is_no_model_s_is_refused_only_for_a_recipe() {
        let runtime = single("torch", &json!({}));
        let name = "torch-distributed";
        let error = build(&tuned(name, &json!({})), &runtime).unwrap_err().to_string();
        assert!(error.starts_with("spec.runtimeRef.name: \"torch-distributed\""), "{error}");
        assert!(error.contains("such as torchtune-llama3.2-1b"), "{error}");
        for other in [json!(["tune", "run", "x"]), json!(["tune"]), json!([])] {
            let built = built(&tuned(name, &json!({"command": other})), &runtime);
            assert_eq!(built.pointer(&container(0)).unwrap()["command"], other);
        }
    }

    #[test]
    fn every_trainer_replicated_job_gets_the_command() {
        let replicated_job = |name| {
            crate::build::testing::replicated_job(name, Some("trainer"), &json!([{"name": "node"}]))
        };
        let runtime = crate::build::testing::runtime(&json!({
            "mlPolicy": {"torch": {}},
            "template": {"spec": {"replicatedJobs": [replicated_job("node"), replicated_job("other")]}},
        }));
        let job_set = built(&tuned(NAME, &json!({})), &runtime);
        for index in [0, 1] {
            let node = job_set.pointer(&container(index)).unwrap();
            assert_eq!(node["command"][2], "full_finetune_single_device", "replicated job {index}");
        }
    }
}
