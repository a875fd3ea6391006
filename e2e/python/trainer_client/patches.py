"""Patches of several managers: each has a time of its own, and together they make the Pods."""

from datetime import timedelta

from client import COMPLETE, RESUMED, SUSPENDED, counts, expect, now, patch, setting, until

RUNTIME = "torch-distributed"
USER = "user.example.com/notebook"
QUEUE = "queue.example.com/manager"
LATER = "later.example.com/manager"
NAME = "patched"


def times(client, job):
    return {it.manager: it.time for it in job.spec.runtime_patches}


def a_second_later(than):
    """The clock of the API has seconds: what is written from now on has another time."""
    until("the time is later", True, lambda: now() > than)


def each_patch_gets_its_time(client):
    begun = now()
    of_user = patch(USER, {"team": "vision"})
    job = client.train(NAME, RUNTIME, suspend=True, runtimePatches=[of_user, patch(QUEUE, {})])
    came = times(client, job)
    expect("managers in their order", [USER, QUEUE], list(came))
    for manager, time in came.items():
        assert time is not None, f"time of {manager}: expected the time of the request, came none"
        assert begun <= time <= now(), f"time of {manager}: expected one after {begun}, came {time}"
    client.becomes(NAME, SUSPENDED)
    client.counts(NAME, counts("node", suspended=1))
    expect("Pods of a suspended job", 0, len(client.pods(NAME)))
    return "each of two managers' patches has the time of its creation"


def only_the_patch_that_is_changed_gets_a_new_time(client):
    before = times(client, client.read(NAME))
    a_second_later(max(before.values()))
    begun = now()

    def admit(job):
        of_user, of_queue = job.spec.runtime_patches
        # What a client says of a patch that it leaves alone does not count.
        of_user.time = begun - timedelta(days=1)
        [node] = of_queue.training_runtime_spec.template.spec.replicated_jobs
        node.template.spec.template.metadata.labels = {"queue": "gpus"}

    after = times(client, client.change(NAME, admit))
    expect("time of the patch that is left alone", before[USER], after[USER])
    came = after[QUEUE]
    assert begun <= came <= now(), f"time of the changed patch: expected one after {begun}, came {came}"
    return "a changed patch has a new time, the other one keeps its own"


def a_new_patch_keeps_the_time_that_it_brings(client):
    given = now() - timedelta(hours=1)

    def add(job):
        new = patch(LATER, {"later": "yes"}, time=given)
        job.spec.runtime_patches.append(type(job.spec.runtime_patches[0]).from_dict(new))

    before = times(client, client.read(NAME))
    after = times(client, client.change(NAME, add))
    expect("times", {**before, LATER: given}, after)
    return "a third manager's patch keeps the time that it came with"


def the_pods_are_as_all_managers_want_them(client):
    client.change(NAME, setting(suspend=False))
    client.has_pods(NAME, 1)
    [pod] = client.pods(NAME)
    wanted = {"team": "vision", "queue": "gpus", "later": "yes"}
    expect("labels of the Pod", wanted, {it: pod.metadata.labels.get(it) for it in wanted})
    client.runs(NAME)
    client.finish(NAME)
    client.becomes(NAME, RESUMED, COMPLETE)
    client.counts(NAME, counts("node", succeeded=1))
    return "the Pod has what all three want, and the job has completed"


def a_running_job_takes_no_patch(client):
    name = "unpatched"
    client.train(name, RUNTIME, runtimePatches=[patch(USER, {})])
    client.runs(name)

    def change(job):
        [of_user] = job.spec.runtime_patches
        [node] = of_user.training_runtime_spec.template.spec.replicated_jobs
        node.template.spec.template.metadata.labels = {"team": "speech"}

    words = "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
    client.refused("a patch of a running job", 403, words, lambda: client.change(name, change))
    client.delete(name)
    return "a running job takes no other patch"


def a_manager_has_a_domain(client):
    words = 'must be a domain-prefixed path (such as \\"acme.io/foo\\")'
    job = {"runtimePatches": [patch("manager", {})]}
    client.refused("a manager without a domain", 403, words, lambda: client.train("m", RUNTIME, **job))
    return "a manager without a domain is refused"


STEPS = (
    each_patch_gets_its_time,
    only_the_patch_that_is_changed_gets_a_new_time,
    a_new_patch_keeps_the_time_that_it_brings,
    the_pods_are_as_all_managers_want_them,
    a_running_job_takes_no_patch,
    a_manager_has_a_domain,
)
