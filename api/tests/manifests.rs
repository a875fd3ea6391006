//! What users write, the operator reads, and nothing of it is lost or renamed on the way.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

use kube::core::DeserializeGuard;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use trainjob_api::{ClusterTrainingRuntime, TrainJob, TrainingRuntime};

/// Fine-tuning with everything a TrainJob can say.
const FINE_TUNING: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: fine-tune
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: gpus}
spec:
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: ClusterTrainingRuntime, name: torch-distributed}
  suspend: true
  managedBy: trainer.kubeflow.org/trainjob-controller
  activeDeadlineSeconds: 86400
  ttlSecondsAfterFinished: 604800
  initializer:
    dataset:
      storageUri: hf://org/corpus
      env:
      - {name: SPLIT, value: train}
      - name: TOKEN
        valueFrom: {secretKeyRef: {name: hugging-face, key: token, optional: true}}
    model:
      storageUri: s3://models/base
      secretRef: {name: s3}
  trainer:
    image: example.com/fine-tune:1
    command: [torchrun, main.py]
    args: []
    env: [{name: EPOCHS, value: '3'}]
    numNodes: 4
    numProcPerNode: 8
    resourcesPerNode:
      requests: {cpu: '16', memory: 64Gi}
      limits: {nvidia.com/gpu: '8'}
      claims: [{name: nic}]
  runtimePatches:
  - manager: kueue.x-k8s.io/manager
    time: '2026-01-04T10:00:00Z'
    trainingRuntimeSpec:
      template:
        metadata: {annotations: {example.com/cost-centre: '42'}}
        spec:
          replicatedJobs:
          - name: node
            template:
              metadata: {labels: {tier: gold}}
              spec:
                template:
                  metadata: {labels: {tier: gold}}
                  spec:
                    serviceAccountName: trainer
                    nodeSelector: {accelerator: h100}
                    affinity:
                      nodeAffinity:
                        requiredDuringSchedulingIgnoredDuringExecution:
                          nodeSelectorTerms:
                          - matchExpressions: [{key: zone, operator: In, values: [a]}]
                    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
                    schedulingGates: [{name: example.com/topology}]
                    imagePullSecrets: [{name: registry}]
                    securityContext: {runAsUser: 1000}
                    terminationGracePeriodSeconds: 120
                    volumes: [{name: scratch, emptyDir: {sizeLimit: 1Gi}}]
                    initContainers: [{name: warm-up, env: [{name: A, value: b}]}]
                    containers:
                    - name: node
                      volumeMounts: [{name: scratch, mountPath: /scratch}]
                      securityContext: {allowPrivilegeEscalation: false}
status:
  conditions:
  - type: Suspended
    status: 'True'
    reason: Suspended
    message: TrainJob is suspended
    lastTransitionTime: '2026-01-04T10:00:00Z'
  jobsStatus:
  - {name: node, ready: 0, succeeded: 0, failed: 0, active: 0, suspended: 1}
  trainerStatus:
    progressPercentage: 40
    estimatedRemainingSeconds: 900
    metrics: [{name: loss, value: '0.25'}]
    lastUpdatedTime: '2026-01-04T10:00:00Z'
";

/// The least a TrainJob can say.
const HELLO: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: hello}
spec:
  runtimeRef: {name: torch-distributed}
";

/// An MPI runtime with everything a JobSet can say.
const MPI: &str = "
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: mpi
  labels: {trainer.kubeflow.org/framework: deepspeed}
spec:
  mlPolicy:
    numNodes: 1
    mpi: {numProcPerNode: 1, mpiImplementation: OpenMPI, sshAuthMountPath: /etc/mpi-ssh, runLauncherAsNode: true}
  podGroupPolicy:
    coscheduling: {scheduleTimeoutSeconds: 120}
  template:
    metadata: {labels: {team: a}}
    spec:
      network: {enableDNSHostnames: true, publishNotReadyAddresses: true, subdomain: net}
      successPolicy: {operator: All, targetReplicatedJobs: [launcher]}
      failurePolicy:
        maxRestarts: 3
        restartStrategy: BlockingRecreate
        rules:
        - name: host
          action: RestartJobSetAndIgnoreMaxRestarts
          onJobFailureReasons: [PodFailurePolicy]
          onJobFailureMessagePatterns: [maintenance]
          targetReplicatedJobs: [node]
      startupPolicy: {startupPolicyOrder: AnyOrder}
      coordinator: {replicatedJob: launcher, jobIndex: 0, podIndex: 0}
      suspend: false
      managedBy: jobset.sigs.k8s.io/jobset-controller
      ttlSecondsAfterFinished: 60
      volumeClaimPolicies:
      - templates:
        - apiVersion: v1
          kind: PersistentVolumeClaim
          metadata: {name: data}
          spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
        retentionPolicy: {whenDeleted: Retain}
      replicatedJobs:
      - name: launcher
        groupName: default
        replicas: 1
        dependsOn: [{name: node, status: Ready}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: 'example.com/mpi:1', ports: [{containerPort: 22}]}]
";

/// One runtime for each of the other frameworks' settings.
const OTHERS: [&str; 5] = [
    "{torch: {envInjection: {targets: [{jobName: node, containerNames: [sidecar]}]}}}",
    "{torch: {}}",
    "{jax: {}}",
    "{xgboost: {}}",
    "{numNodes: 2, flux: {numProcPerNode: 4}}",
];

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

#[track_caller]
fn assert_round_trip<K: Serialize + DeserializeOwned>(manifest: &Value) {
    let object: K = serde_json::from_value(manifest.clone()).unwrap();
    assert_eq!(serde_json::to_value(object).unwrap(), *manifest);
}

#[test]
fn manifests_come_back_as_they_were() {
    assert_round_trip::<TrainJob>(&yaml(FINE_TUNING));
    assert_round_trip::<TrainJob>(&yaml(HELLO));
    assert_round_trip::<ClusterTrainingRuntime>(&yaml(MPI));
    for policy in OTHERS {
        assert_round_trip::<TrainingRuntime>(&json!({
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {"name": "other"},
            "spec": {
                "mlPolicy": yaml(policy),
                "podGroupPolicy": {
                    "volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}},
                },
                "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {}}]}},
            },
        }));
    }
}

/// An empty list in a manifest replaces the runtime's; an empty trainer has its framework's
/// environment, none has not.
#[test]
fn empty_and_absent_are_different() {
    let mut manifest = yaml(HELLO);
    for trainer in [json!({}), json!({"command": [], "args": []})] {
        manifest["spec"]["trainer"] = trainer;
        assert_round_trip::<TrainJob>(&manifest);
    }
}

/// A newer CRD, or JobSet's next release, must not make a job unreadable.
#[test]
fn unknown_fields_are_ignored_wherever_they_are() {
    let known: TrainJob = serde_json::from_value(yaml(FINE_TUNING)).unwrap();
    let mut manifest = yaml(FINE_TUNING);
    for place in
        ["", "/spec", "/spec/trainer", "/spec/runtimePatches/0", "/status", "/status/jobsStatus/0"]
    {
        manifest.pointer_mut(place).unwrap()["fromTheFuture"] = json!({"a": [1]});
    }
    assert_eq!(serde_json::from_value::<TrainJob>(manifest).unwrap(), known);
}

/// The schema admits both, and the API server stores what it was given.
#[test]
fn quantities_may_be_numbers() {
    let mut manifest = yaml(HELLO);
    manifest["spec"]["trainer"] = json!({"resourcesPerNode": {"limits": {"cpu": 2}}});
    let job: TrainJob = serde_json::from_value(manifest).unwrap();
    let limits = job.spec.trainer.unwrap().resources_per_node.unwrap().limits.unwrap();
    assert_eq!(limits["cpu"].0, "2");
}

#[test]
fn a_stored_job_may_lack_what_the_schema_requires_by_now() {
    for spec in [json!({}), json!({"runtimeRef": {}}), json!({"trainer": {"numNodes": -1}})] {
        let mut manifest = yaml(HELLO);
        manifest["spec"] = spec;
        let job: TrainJob = serde_json::from_value(manifest).unwrap();
        assert_eq!(job.spec.runtime_ref.name, "");
    }
}

#[test]
fn a_job_without_spec_is_not_a_train_job_but_keeps_its_metadata_behind_a_guard() {
    let mut manifest = yaml(HELLO);
    manifest.as_object_mut().unwrap().remove("spec");
    assert!(serde_json::from_value::<TrainJob>(manifest.clone()).is_err());
    let guarded: DeserializeGuard<TrainJob> = serde_json::from_value(manifest).unwrap();
    let invalid = guarded.0.expect_err("no spec, no TrainJob");
    assert_eq!(invalid.metadata.name.as_deref(), Some("hello"));
}
