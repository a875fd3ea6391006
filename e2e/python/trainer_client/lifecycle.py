"""Jobs that others manage, deadlines, and runtimes that change under jobs."""

from datetime import timedelta

from client import (
    COMPLETE,
    DEADLINE_EXCEEDED,
    RESUMED,
    SUSPENDED,
    counts,
    expect,
    now,
    setting,
    until,
)

RUNTIME = "torch-distributed"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
# Long enough to be seen running on a busy machine.
DEADLINE = 15
SHORT_DEADLINE = 4
OLD, NEW = "example.com/train:old", "example.com/train:new"


def names_of(client, name):
    """What there is of a job beside it."""
    core, namespace = client.core, client.namespace
    objects = core.list_namespaced_config_map(namespace).items
    found = [it.metadata.name for it in objects if it.metadata.name.startswith(name)]
    return found + client.jobs(name)


def a_job_of_another_manager_is_never_touched(client):
    name, later = "elsewhere", "here"
    made = client.train(name, RUNTIME, managedBy=MULTIKUEUE, activeDeadlineSeconds=1)
    # Who comes after it has its turn after it.
    client.train(later, RUNTIME)
    client.runs(later)
    client.finish(later)
    client.becomes(later, COMPLETE)
    past = made.metadata.creation_timestamp + timedelta(seconds=2)
    until("its deadline is past", True, lambda: now() > past)
    job = client.read(name)
    expect("status of a job that another manages", None, job.status)
    versions = (made.metadata.resource_version, job.metadata.resource_version)
    expect("resource version of a job that another manages", *versions)
    expect("objects of a job that another manages", [], names_of(client, name))
    events = client.core.list_namespaced_event(
        client.namespace, field_selector=f"involvedObject.name={name}"
    )
    expect("events of a job that another manages", [], [it.reason for it in events.items])
    client.delete(name)
    return "a job that MultiKueue manages is as it was created, its deadline long past"


def a_manager_is_one_of_two_for_ever(client):
    words = (
        "ManagedBy must be trainer.kubeflow.org/trainjob-controller or kueue.x-k8s.io/multikueue if set"
    )
    job = {"managedBy": "example.com/other"}
    client.refused("an unknown manager", 422, words, lambda: client.train("other", RUNTIME, **job))
    change = setting(managed_by=MULTIKUEUE)
    client.refused("another manager", 422, "field is immutable", lambda: client.change("here", change))
    return "an unknown manager is refused, and a change of the manager"


def a_deadline_fails_a_job(client):
    name = "deadline"
    made = client.train(name, RUNTIME, activeDeadlineSeconds=DEADLINE)
    client.runs(name)
    running = counts("node", active=1, ready=1)
    client.becomes(name, DEADLINE_EXCEEDED)
    [failed] = client.read(name).status.conditions
    due = made.metadata.creation_timestamp + timedelta(seconds=DEADLINE)
    came = failed.last_transition_time
    assert due <= came <= now(), f"time of the failure: expected one after {due}, came {came}"
    until("Jobs of the failed job", [], lambda: client.jobs(name))
    client.has_pods(name, 0)
    expect("counts of the failed job, which are frozen", [running], client.jobs_status(name))
    expect("conditions of the failed job", [DEADLINE_EXCEEDED], client.conditions(name))
    change = setting(active_deadline_seconds=3600)
    client.refused("a longer deadline", 422, "field is immutable", lambda: client.change(name, change))
    return "a deadline fails a job with Kubeflow Trainer's words, and nothing of it is left"


def a_resumed_job_has_all_of_its_time_again(client):
    name = "paused"
    made = client.train(name, RUNTIME, suspend=True, activeDeadlineSeconds=SHORT_DEADLINE)
    past = made.metadata.creation_timestamp + timedelta(seconds=SHORT_DEADLINE + 2)
    until("the deadline would be past", True, lambda: now() > past)
    expect("conditions of a suspended job", [SUSPENDED], client.conditions(name))
    client.change(name, setting(suspend=False))
    client.becomes(name, RESUMED, DEADLINE_EXCEEDED)
    resumed, failed = (it.last_transition_time for it in client.read(name).status.conditions)
    came = (failed - resumed).total_seconds()
    least = SHORT_DEADLINE
    assert came >= least, f"seconds from the resumption on: expected {least} at least, came {came}"
    client.has_pods(name, 0)
    return f"a job that was suspended past its deadline has failed {came:.0f} s after it was resumed"


def runtime_with(image):
    node = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": {"containers": [{"name": "node", "image": image}]}}},
        },
    }
    return {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [node]}}}


def a_runtime_changes_under_a_suspended_job(client):
    runtime = {"name": "changing", "kind": "TrainingRuntime"}
    client.create("TrainingRuntime", runtime["name"], runtime_with(OLD))
    client.train("before", runtime, suspend=True)
    client.becomes("before", SUSPENDED)
    # Its JobSet is there, made from the runtime as it was.
    client.counts("before", counts("node", suspended=1))

    def change(model):
        model.spec = type(model.spec).from_dict(runtime_with(NEW))

    client.change(runtime["name"], change, "TrainingRuntime")
    client.train("after", runtime)
    client.change("before", setting(suspend=False))
    for name, image, conditions in (("after", NEW, [COMPLETE]), ("before", OLD, [RESUMED, COMPLETE])):
        client.runs(name)
        images = [it.image for pod in client.pods(name) for it in pod.spec.containers]
        expect(f"images of the job created {name} the change", [image], images)
        client.finish(name)
        client.becomes(name, *conditions)
    return "a job that was suspended while its runtime changed runs on the old one, a new job on the new one"


STEPS = (
    a_job_of_another_manager_is_never_touched,
    a_manager_is_one_of_two_for_ever,
    a_deadline_fails_a_job,
    a_resumed_job_has_all_of_its_time_again,
    a_runtime_changes_under_a_suspended_job,
)
