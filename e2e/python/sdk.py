"""What the Kubeflow Python SDK makes of a cluster with this operator.

    KUBECONFIG=... python sdk.py NAMESPACE

Each step prints what was seen; the first that is not as a user expects ends it with an error.
The Pods of a runtime that came with the chart run for ever on fake nodes, so jobs say by a patch when theirs end.
"""

import logging
import sys
import time
from contextlib import contextmanager
from datetime import datetime, timezone

from kubeflow.trainer import (
    CustomTrainer,
    KubernetesBackendConfig,
    RuntimeKind,
    TrainerClient,
    TrainerType,
)
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainingRuntimeSpecPatch,
)
from kubernetes import client as kubernetes

RUNTIME = "torch-distributed"
BRITTLE = "brittle"
NODES = 2
# Long enough to be seen running by somebody who looks once a second.
RUNS_FOR = "6s"
PATIENCE = 120
MANAGER = "trainer.kubeflow.org/kubeflow-sdk"
TRAINJOBS = ("trainer.kubeflow.org", "v1alpha1")


class Warned(logging.Handler):
    """Keeps what the SDK warns of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.said = []

    def emit(self, record):
        self.said.append(record.getMessage())


def eventually(look, is_it):
    """What `look` sees once `is_it` holds of it: events are written after what they tell of."""
    end = time.monotonic() + PATIENCE
    while not is_it(seen := look()):
        assert time.monotonic() < end, seen
        time.sleep(0.2)
    return seen


def train():
    """Code of a user, which the SDK puts into the job."""
    print("training")


def pods_that(**annotations):
    """What makes fake Pods end: annotations of KWOK and of the box."""
    pods = PodTemplatePatch(metadata={"annotations": annotations})
    node = ReplicatedJobPatch(name="node", template=JobTemplatePatch(spec=JobSpecPatch(template=pods)))
    job_set = JobSetTemplatePatch(spec=JobSetSpecPatch(replicated_jobs=[node]))
    return RuntimePatch(training_runtime_spec=TrainingRuntimeSpecPatch(template=job_set))


def pods_that_run_for(seconds):
    return pods_that(**{"pod-complete.stage.kwok.x-k8s.io/delay": seconds})


class User:
    """Somebody with the SDK, and with kubernetes' own client for what the SDK does not have."""

    def __init__(self, namespace):
        self.namespace = namespace
        self.sdk = TrainerClient(KubernetesBackendConfig(namespace=namespace))
        self.objects = kubernetes.CustomObjectsApi()
        self.core = kubernetes.CoreV1Api()

    def names(self, **of):
        return {job.name for job in self.sdk.list_jobs(**of)}

    def wait(self, name, status, timeout=PATIENCE):
        return self.sdk.wait_for_job_status(name, {status}, timeout=timeout, polling_interval=1)

    def gone(self, name):
        eventually(self.names, lambda names: name not in names)

    def patch(self, name, spec):
        body = {"spec": spec}
        return self.objects.patch_namespaced_custom_object(
            *TRAINJOBS, self.namespace, "trainjobs", name, body
        )

    def create(self, kind, name, spec, **metadata):
        body = {
            "apiVersion": "/".join(TRAINJOBS),
            "kind": kind,
            "metadata": {"name": name, **metadata},
            "spec": spec,
        }
        return self.objects.create_namespaced_custom_object(
            *TRAINJOBS, self.namespace, f"{kind.lower()}s", body
        )

    def read(self, name):
        return self.objects.get_namespaced_custom_object(
            *TRAINJOBS, self.namespace, "trainjobs", name
        )


def runtimes_are_listed(user):
    runtimes = {runtime.name: runtime for runtime in user.sdk.list_runtimes()}
    # One is of the namespace.
    assert len(runtimes) == 8 + 1, sorted(runtimes)
    torch = runtimes[RUNTIME]
    assert torch == user.sdk.get_runtime(RUNTIME)
    assert torch.kind == RuntimeKind.CLUSTER_TRAINING_RUNTIME, torch
    assert torch.trainer.trainer_type == TrainerType.CUSTOM_TRAINER, torch
    assert (torch.trainer.framework, torch.trainer.num_nodes) == ("torch", 1), torch
    tuners = [it for it in runtimes.values() if it.trainer.framework == "torchtune"]
    assert len(tuners) == 3, tuners
    assert all(it.trainer.trainer_type == TrainerType.BUILTIN_TRAINER for it in tuners), tuners
    return f"{len(runtimes)} runtimes: {', '.join(sorted(runtimes))}"


def a_job_runs_and_completes(user):
    begun = datetime.now(timezone.utc).replace(microsecond=0)
    trainer = CustomTrainer(func=train, num_nodes=NODES, resources_per_node={"cpu": 1, "gpu": 2})
    options = [Name("sdk"), Labels({"team": "vision"}), pods_that_run_for(RUNS_FOR)]
    name = user.sdk.train(user.sdk.get_runtime(RUNTIME), trainer=trainer, options=options)
    assert name == "sdk", name
    [patch] = user.read(name)["spec"]["runtimePatches"]
    assert patch["manager"] == MANAGER and patch["time"], patch

    running = user.wait(name, "Running")
    steps = [(step.name, step.status, step.device, str(step.device_count)) for step in running.steps]
    expected = [(f"node-{index}", "Running", "gpu", "2") for index in range(NODES)]
    assert sorted(steps) == expected, steps
    assert (running.num_nodes, running.runtime.name) == (NODES, RUNTIME), running
    assert begun <= running.creation_timestamp <= datetime.now(timezone.utc), running
    assert user.names() == {name}
    assert user.names(runtime=running.runtime) == {name}
    assert user.names(runtime=user.sdk.get_runtime("jax-distributed")) == set()

    complete = user.wait(name, "Complete")
    assert sorted(step.status for step in complete.steps) == ["Succeeded"] * NODES, complete
    assert user.sdk.get_job(name) == complete
    return f"a job of {NODES} nodes was seen Running, then Complete, with all its steps"


def what_happened_is_told(user):
    def told():
        return {(it.involved_object_kind, it.reason) for it in user.sdk.get_job_events("sdk")}

    seen = eventually(told, bool)
    assert seen == {("Pod", "Created")}, seen
    return "it shows the events of its Pods"


def a_job_is_deleted(user):
    user.sdk.delete_job("sdk")
    user.gone("sdk")
    return "deleted, it is gone"


def a_runtime_of_the_namespace_is_listed(user):
    """It does not try again a Pod that fails."""
    [listed] = [it for it in user.sdk.list_runtimes() if it.name == BRITTLE]
    assert listed.kind == RuntimeKind.TRAINING_RUNTIME, listed
    return "a runtime of the namespace is among them"


def a_failure_is_told(user):
    fails = pods_that(**{"e2e.trainjob.dev/outcome": "fail"})
    name = user.sdk.train(BRITTLE, trainer=CustomTrainer(func=train), options=[fails])
    assert user.read(name)["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"
    try:
        user.wait(name, "Complete")
    except RuntimeError as error:
        assert str(error) == f"TrainJob {name} is Failed", error
    else:
        raise AssertionError(f"{name} has completed")
    assert user.sdk.get_job(name).status == "Failed"
    user.sdk.delete_job(name)
    return "who waits for a job that fails is told so"


def a_deadline_fails_a_job(user):
    trainer = CustomTrainer(func=train, num_nodes=1)
    options = [Name("deadline"), ActiveDeadlineSeconds(4)]
    name = user.sdk.train(RUNTIME, trainer=trainer, options=options)
    user.wait(name, "Failed")
    [failed] = [it for it in user.read(name)["status"]["conditions"] if it["type"] == "Failed"]
    assert failed["reason"] == "DeadlineExceeded", failed
    # The SDK shows events that have the timestamps of the old API; those of the operator are of the new one.
    def reasons():
        of_it = f"involvedObject.name={name}"
        events = user.core.list_namespaced_event(user.namespace, field_selector=of_it)
        return {event.reason for event in events.items}

    eventually(reasons, lambda told: "DeadlineExceeded" in told)
    user.sdk.delete_job(name)
    return "a deadline of its own option fails a job"


def a_ttl_that_is_patched_in_deletes_a_job(user):
    options = [Name("patched"), pods_that_run_for("1s")]
    name = user.sdk.train(RUNTIME, trainer=CustomTrainer(func=train), options=options)
    user.patch(name, {"ttlSecondsAfterFinished": 600})
    # The SDK does not know the field; it reads the job all the same.
    complete = user.wait(name, "Complete")
    assert user.names() >= {name}
    user.patch(name, {"ttlSecondsAfterFinished": 1})
    user.gone(name)
    return f"a TTL set by a patch has deleted a job of which the SDK said {complete.status}"


def a_ttl_of_a_manifest_deletes_a_job(user):
    options = [Name("model"), pods_that_run_for("1s")]
    user.sdk.train(RUNTIME, trainer=CustomTrainer(func=train), options=options)
    spec = user.read("model")["spec"]
    for patch in spec["runtimePatches"]:
        patch.pop("time")
    user.create("TrainJob", "manifest", {**spec, "ttlSecondsAfterFinished": 3})
    assert user.wait("manifest", "Complete").name == "manifest"
    user.gone("manifest")
    user.wait("model", "Complete")
    user.sdk.delete_job("model")
    return "a TTL of a manifest has deleted a job; one without it has stayed"


STEPS = (
    runtimes_are_listed,
    a_job_runs_and_completes,
    what_happened_is_told,
    a_job_is_deleted,
    a_runtime_of_the_namespace_is_listed,
    a_failure_is_told,
    a_deadline_fails_a_job,
    a_ttl_that_is_patched_in_deletes_a_job,
    a_ttl_of_a_manifest_deletes_a_job,
)


@contextmanager
def without_a_warning():
    warned = Warned()
    logging.getLogger("kubeflow").addHandler(warned)
    yield
    assert not warned.said, warned.said


def main():
    [namespace] = sys.argv[1:]
    with without_a_warning():
        user = User(namespace)
        for step in STEPS:
            print(step(user), flush=True)


if __name__ == "__main__":
    main()
