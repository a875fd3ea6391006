//! What holds for every TrainJob and every runtime, sensible or not.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail loudly")]

use std::collections::BTreeMap;

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob};
use trainjob_core::build::{Objects, Runtime, build, name_problem, snapshot, update_suspended};

proptest! {
    #[test]
    fn building_has_an_answer_and_always_the_same(job in job(), runtime in runtime()) {
        prop_assert_eq!(build(&job, &runtime), build(&job, &runtime));
    }

    #[test]
    fn what_is_built_is_the_job_s_and_can_be_named(job in job(), runtime in runtime()) {
        if let Ok(Objects { job_set, .. }) = build(&job, &runtime) {
            prop_assert_eq!(&job_set.metadata.name, &job.metadata.name);
            prop_assert_eq!(&job_set.metadata.namespace, &job.metadata.namespace);
            prop_assert_eq!(job_set.metadata.owner_references.iter().flatten().count(), 1);
            prop_assert_eq!(job_set.spec.suspend, Some(job.spec.suspend.unwrap_or(false)));
            prop_assert_eq!(name_problem(&job_set), None);
            for replicated_job in job_set.spec.replicated_jobs.iter().flatten() {
                let spec = replicated_job.template.spec.as_ref().unwrap();
                prop_assert!(spec.parallelism.is_some() && spec.parallelism == spec.completions);
            }
        }
    }

    #[test]
    fn a_patch_that_says_nothing_changes_nothing(job in job(), runtime in runtime()) {
        let mut patched = job.clone();
        let nothing = json!({"manager": "m", "trainingRuntimeSpec": {"template": {"spec": {}}}});
        patched.spec.runtime_patches.get_or_insert_default().push(serde_json::from_value(nothing).unwrap());
        prop_assert_eq!(build(&patched, &runtime), build(&job, &runtime));
    }

    #[test]
    fn an_update_ends_after_one_step(a in job(), b in job(), runtime in runtime()) {
        if let (Ok(current), Ok(desired)) = (build(&a, &runtime), build(&b, &runtime))
            && let Some(updated) = update_suspended(&current.job_set, &desired.job_set)
        {
            prop_assert_ne!(&updated.updated, &updated.current);
            prop_assert_eq!(update_suspended(&updated.updated, &desired.job_set), None);
        }
    }

    #[test]
    fn a_snapshot_gives_back_the_runtime(job in job(), runtime in runtime(), text in text()) {
        let mut runtime = runtime;
        let mut job = job;
        job.spec.runtime_ref.name = runtime.metadata.name.clone().unwrap();
        runtime.metadata.labels = Some([(text.clone(), text)].into());
        let read = snapshot::read(&job, &snapshot::render(&job, &runtime).unwrap());
        prop_assert_eq!(read, Ok(runtime));
    }

    #[test]
    fn a_quantity_of_any_spelling_is_counted_or_refused(quantity in "[-+]?[0-9.]{0,30}[a-zA-Z]{0,2}[0-9]{0,3}") {
        let job = json!({"metadata": {"name": "tj"}, "spec": {
            "runtimeRef": {"name": "r"}, "trainer": {"resourcesPerNode": {"limits": {"cpu": quantity}}},
        }});
        let runtime = json!({"metadata": {"name": "r"}, "spec": {"mlPolicy": {"torch": {}}}});
        let runtime = serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap();
        let _ = build(&serde_json::from_value(job).unwrap(), &runtime.into());
    }
}

/// What YAML readers like to take for something else than a string.
const TRAPS: &[&str] = &[
    "",
    " ",
    "yes",
    "No",
    "on",
    "y",
    "~",
    "null",
    "true",
    "1e3",
    "0x1f",
    "010",
    "1_000",
    "1:30",
    "0b1",
    ".inf",
    "NaN",
    "2026-01-02",
    "=",
    "<<",
    "---",
    "- a",
    "a: b",
    "a #b",
    "#",
    "'",
    "\"",
    "\\",
    "a\nb",
    "a\n",
    "\n\na\n\n",
    "  a\n b",
    "a\r\nb",
    "\t",
    "a\u{85}b",
    "\u{feff}a",
    "\u{2028}",
    "\u{0}",
    "%",
    "@",
    "`",
    "!tag",
    "&a",
    "*a",
    "{a}",
    "[a]",
    "|",
    ">",
    "?",
    ":",
    "-",
    "é😀",
    "a ",
    " a\n",
];

/// Any string, traps first.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(TRAPS).prop_map(Into::into),
        any::<String>(),
        "[ -~\n\t]{0,120}",
        // Long enough to be folded.
        vec("[a-z#:'\"-]{1,9}", 10..30).prop_map(|words| words.join(" ")),
    ]
}

fn count() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        (-2..4).prop_map(Value::from),
        any::<i32>().prop_map(Value::from)
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(&["node", "launcher", "a", "dataset-initializer", "model-initializer"][..]).prop_map(Into::into),
        1 => "[a-z-]{0,70}",
    ]
}

fn env() -> impl Strategy<Value = Value> {
    let name = select(&["A", "B", "PET_NNODES", "STORAGE_URI"][..]);
    let variable = (name, option::of(text())).prop_map(|(name, value)| match value {
        Some(value) => json!({"name": name, "value": value}),
        None => json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    });
    vec(variable, 0..4).prop_map(Into::into)
}

fn resources() -> impl Strategy<Value = Value> {
    let quantity =
        select(&["1", "2500m", "0", "-1", "1Gi", "1e99", "9223372036854775808", "garbage", ""][..]);
    let key = select(&["cpu", "memory", "nvidia.com/gpu", "example.com/GPU"][..]);
    let amounts = || {
        vec((key.clone(), quantity.clone()), 0..3).prop_map(|amounts| {
            amounts
                .into_iter()
                .map(|(key, quantity)| (key.to_owned(), json!(quantity)))
                .collect::<Map<_, _>>()
        })
    };
    (amounts(), amounts())
        .prop_map(|(limits, requests)| json!({"limits": limits, "requests": requests}))
}

/// Node selector, tolerations and gates, as runtimes have them and patches change them.
fn placement() -> impl Strategy<Value = Value> {
    let keys = || {
        vec(("[a-c]", text()), 0..3).prop_map(|keys| keys.into_iter().collect::<BTreeMap<_, _>>())
    };
    (keys(), vec("[a-c]", 0..3)).prop_map(|(keys, names)| {
        json!({
            "nodeSelector": keys,
            "tolerations": names.iter().map(|key| json!({"key": key})).collect::<Vec<_>>(),
            "schedulingGates": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        })
    })
}

fn replicated_job() -> impl Strategy<Value = Value> {
    let ancestor =
        option::of(select(&["trainer", "dataset-initializer", "model-initializer", "else"][..]));
    let container = (name(), env(), resources(), vec(text(), 0..3), vec(0..65_536, 0..3)).prop_map(
        |(name, env, resources, args, ports)| {
            let ports = ports.iter().map(|port| json!({"containerPort": port})).collect::<Vec<_>>();
            json!({"name": name, "env": env, "resources": resources, "args": args, "ports": ports})
        },
    );
    let pod = option::of((vec(container, 0..3), placement())).prop_map(|pod| {
        pod.map(|(containers, mut pod)| {
            pod["containers"] = containers.into();
            pod
        })
    });
    (name(), ancestor, count(), count(), pod).prop_map(
        |(name, ancestor, replicas, parallelism, pod)| {
            let labels = ancestor
                .map(|ancestor| json!({"trainer.kubeflow.org/trainjob-ancestor-step": ancestor}));
            json!({"name": name, "replicas": replicas, "template": {
                "metadata": {"labels": labels},
                "spec": {"parallelism": parallelism, "template": {"spec": pod}},
            }})
        },
    )
}

fn runtime() -> impl Strategy<Value = Runtime> {
    let injection = option::of((name(), vec(name(), 0..2)).prop_map(
        |(job, containers)| json!({"targets": [{"jobName": job, "containerNames": containers}]}),
    ));
    let torch = option::of(injection.prop_map(|injection| json!({"envInjection": injection})));
    let mpi = (count(), any::<Option<bool>>()).prop_map(
        |(processes, launcher)| json!({"numProcPerNode": processes, "runLauncherAsNode": launcher}),
    );
    let flux = count().prop_map(|processes| json!({"numProcPerNode": processes}));
    let framework = prop_oneof![
        torch.prop_map(|torch| json!({"torch": torch})),
        mpi.prop_map(|mpi| json!({"mpi": mpi})),
        flux.prop_map(|flux| json!({"flux": flux})),
        Just(json!({"jax": {}})),
        Just(json!({"xgboost": {}})),
    ];
    let policy = option::of((count(), framework).prop_map(|(nodes, mut policy)| {
        policy["numNodes"] = nodes;
        policy
    }));
    (policy, option::of(vec(replicated_job(), 0..4))).prop_map(|(policy, replicated_jobs)| {
        let runtime = json!({"metadata": {"name": "r"}, "spec": {
            "mlPolicy": policy,
            "template": {"spec": {"replicatedJobs": replicated_jobs}},
        }});
        serde_json::from_value::<ClusterTrainingRuntime>(runtime).unwrap().into()
    })
}

fn patch() -> impl Strategy<Value = Value> {
    let container = (name(), env()).prop_map(|(name, env)| json!({"name": name, "env": env}));
    let replicated_job =
        (name(), vec(container, 0..2), placement()).prop_map(|(name, containers, mut pod)| {
            pod["containers"] = containers.into();
            json!({"name": name, "template": {"spec": {"template": {"spec": pod}}}})
        });
    vec(replicated_job, 0..3).prop_map(|replicated_jobs| {
        json!({
            "manager": "m",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": replicated_jobs}}},
        })
    })
}

/// Any command, and that which stands for a torchtune recipe.
fn command() -> impl Strategy<Value = Value> {
    prop_oneof![option::of(vec(text(), 0..3)).prop_map(Value::from), Just(json!(["tune", "run"])),]
}

fn arguments() -> impl Strategy<Value = Value> {
    const KNOWN: &[&str] =
        &["model.lora_attn_modules=[]", "model.quantize_base=true", "model.use_dora=true"];
    let argument = prop_oneof![select(KNOWN).prop_map(Into::into), text()];
    option::of(vec(argument, 0..3)).prop_map(Value::from)
}

fn job() -> impl Strategy<Value = TrainJob> {
    let trainer = option::of(
        (count(), count(), env(), option::of(resources()), command(), arguments()).prop_map(
            |(nodes, processes, env, resources, command, args)| {
                json!({
                    "numNodes": nodes,
                    "numProcPerNode": processes,
                    "env": env,
                    "resourcesPerNode": resources,
                    "command": command,
                    "args": args,
                })
            },
        ),
    );
    let initializer = option::of((option::of(text()), env(), option::of(text())).prop_map(|(uri, env, secret)| {
        json!({"dataset": {"storageUri": uri, "env": env, "secretRef": secret.map(|name| json!({"name": name}))}})
    }));
    let runtime = select(&["r", "torchtune-llama3.2-1b"][..]);
    ("[a-z]{1,63}", runtime, trainer, initializer, vec(patch(), 0..3), any::<Option<bool>>())
        .prop_map(|(name, runtime, trainer, initializer, patches, suspend)| {
            serde_json::from_value(json!({
                "metadata": {"name": name, "namespace": "ns", "uid": "U"},
                "spec": {
                    "runtimeRef": {"name": runtime},
                    "trainer": trainer,
                    "initializer": initializer,
                    "runtimePatches": patches,
                    "suspend": suspend,
                },
            }))
            .unwrap()
        })
}
