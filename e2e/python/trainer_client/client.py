"""A client of Kubeflow Trainer's API: the generated models, and kubernetes' own client to send them."""

import time
from datetime import datetime, timezone

from kubeflow_trainer_api import models
from kubernetes import client as kubernetes
from kubernetes import config

GROUP, VERSION = "trainer.kubeflow.org", "v1alpha1"
PATIENCE = 120
PLURALS = {"TrainJob": "trainjobs", "TrainingRuntime": "trainingruntimes"}
MODELS = {
    "TrainJob": models.TrainerV1alpha1TrainJob,
    "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
}
# A fake Pod that runs completes so much later.
COMPLETES = {"pod-complete.stage.kwok.x-k8s.io/delay": "100ms"}


def expect(what, expected, came):
    """Fails with a message that names what was expected and what came."""
    assert came == expected, f"{what}: expected {expected!r}, came {came!r}"


def until(what, expected, look):
    """Looks until `look` returns what is expected; says what came last if it never does."""
    end = time.monotonic() + PATIENCE
    while (came := look()) != expected:
        assert time.monotonic() < end, f"{what}: expected {expected!r}, came {came!r} for {PATIENCE} s"
        time.sleep(0.1)


def now():
    """The time, as the API tells it."""
    return datetime.now(timezone.utc).replace(microsecond=0)


def counts(name, **of):
    """An entry of `jobsStatus`, which has all its numbers."""
    zero = {"active": 0, "failed": 0, "ready": 0, "succeeded": 0, "suspended": 0}
    return {"name": name, **zero, **of}


def condition(kind, status, reason, message):
    return {"type": kind, "status": status, "reason": reason, "message": message}


COMPLETE = condition("Complete", "True", "AllJobsCompleted", "jobset completed successfully")
SUSPENDED = condition("Suspended", "True", "Suspended", "TrainJob is suspended")
RESUMED = condition("Suspended", "False", "Resumed", "TrainJob is resumed")
DEADLINE_EXCEEDED = condition(
    "Failed", "True", "DeadlineExceeded", "TrainJob exceeded its active deadline"
)


def patch(manager, labels, **more):
    """Labels that one manager wants on the Pods."""
    pods = {"spec": {"template": {"metadata": {"labels": labels}}}}
    spec = {"template": {"spec": {"replicatedJobs": [{"name": "node", "template": pods}]}}}
    return {"manager": manager, "trainingRuntimeSpec": spec, **more}


def setting(**fields):
    """A change that gives these fields of a job's spec these values."""

    def change(job):
        for name, value in fields.items():
            setattr(job.spec, name, value)

    return change


def of(name):
    """The label of everything that runs for a TrainJob."""
    return f"jobset.sigs.k8s.io/jobset-name={name}"


class Client:
    """Somebody who may edit in a namespace."""

    def __init__(self, namespace):
        config.load_kube_config()
        self.namespace = namespace
        self.objects = kubernetes.CustomObjectsApi()
        self.core = kubernetes.CoreV1Api()
        self.batch = kubernetes.BatchV1Api()

    def _where(self, kind):
        return GROUP, VERSION, self.namespace, PLURALS[kind]

    def create(self, kind, name, spec):
        """Creates an object that the models take, and returns what the API server made of it."""
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": spec}
        body = MODELS[kind].from_dict(body).to_dict()
        made = self.objects.create_namespaced_custom_object(*self._where(kind), body)
        return MODELS[kind].from_dict(made)

    def train(self, name, runtime, **spec):
        reference = runtime if isinstance(runtime, dict) else {"name": runtime}
        return self.create("TrainJob", name, {"runtimeRef": reference, **spec})

    def read(self, name, kind="TrainJob"):
        found = self.objects.get_namespaced_custom_object(*self._where(kind), name)
        return MODELS[kind].from_dict(found)

    def change(self, name, change, kind="TrainJob"):
        """Reads an object, changes it and writes it back whole, until nobody else has written meanwhile."""
        while True:
            model = self.read(name, kind)
            change(model)
            body = model.to_dict()
            # Only their controllers write it.
            body.pop("status", None)
            try:
                written = self.objects.replace_namespaced_custom_object(*self._where(kind), name, body)
                return MODELS[kind].from_dict(written)
            except kubernetes.ApiException as error:
                if error.status != 409:
                    raise

    def delete(self, name, kind="TrainJob"):
        self.objects.delete_namespaced_custom_object(*self._where(kind), name)

    def refused(self, what, code, message, request):
        """Sees that a request is refused with this code and these words."""
        try:
            request()
        except kubernetes.ApiException as error:
            came = (error.status, message if message in error.body else error.body)
        else:
            came = "accepted"
        expect(what, (code, message), came)

    def jobs(self, name):
        """The names of the Jobs of a TrainJob."""
        found = self.batch.list_namespaced_job(self.namespace, label_selector=of(name)).items
        return [it.metadata.name for it in found]

    def pods(self, name):
        return self.core.list_namespaced_pod(self.namespace, label_selector=of(name)).items

    def finish(self, name, job="node"):
        """Has the fake Pods of one replicated job complete, which run for ever by themselves."""
        for pod in self.pods(name):
            if pod.metadata.labels["jobset.sigs.k8s.io/replicatedjob-name"] == job:
                change = {"metadata": {"annotations": COMPLETES}}
                self.core.patch_namespaced_pod(pod.metadata.name, self.namespace, change)

    def runs(self, name, *jobs):
        """Waits until all Pods of these replicated jobs run, with exact counts."""
        self.counts(name, *(counts(job, active=1, ready=1) for job in jobs or ("node",)))

    def conditions(self, name):
        """The conditions of a TrainJob in their order, without their times and with the first sentence of their messages."""
        status = self.read(name).status
        found = (status.conditions if status else None) or []
        return [
            condition(it.type, it.status, it.reason, it.message.split(". ")[0]) for it in found
        ]

    def jobs_status(self, name):
        """The counts of a TrainJob in their order."""
        status = self.read(name).status
        found = (status.jobs_status if status else None) or []
        return [it.to_dict() for it in found]

    def becomes(self, name, *conditions):
        """Waits until a TrainJob has exactly these conditions."""
        until(f"conditions of {name}", list(conditions), lambda: self.conditions(name))

    def counts(self, name, *jobs):
        """Waits until a TrainJob has exactly these counts."""
        until(f"jobsStatus of {name}", list(jobs), lambda: self.jobs_status(name))

    def has_pods(self, name, number):
        until(f"number of Pods of {name}", number, lambda: len(self.pods(name)))
