"""What the Kubeflow Python SDK meets in a namespace with defaults and maxima of TTL and deadline.

    KUBECONFIG=... python limits.py NAMESPACE

The namespace gives a TTL of 2 seconds and a deadline of 600, and allows 60 and 3600.
"""

import sys

from kubeflow.trainer import CustomTrainer
from kubeflow.trainer.options import ActiveDeadlineSeconds, Name
from kubernetes.client.exceptions import ApiException

from sdk import RUNTIME, User, pods_that_run_for, train, without_a_warning

TTL = "ttlSecondsAfterFinished"
DEADLINE = "activeDeadlineSeconds"


def refusal(act):
    """What is said when something is refused, whoever wraps it."""
    try:
        act()
    except Exception as error:
        while error and not isinstance(error, ApiException):
            error = error.__cause__ or error.__context__
        assert error and error.status == 403, error
        return error.body
    raise AssertionError("it was admitted")


def train_a(user, name, *options):
    trainer = CustomTrainer(func=train)
    return user.sdk.train(RUNTIME, trainer=trainer, options=[Name(name), *options])


def a_job_gets_the_defaults_of_its_namespace(user):
    name = train_a(user, "plain", pods_that_run_for("1s"))
    spec = user.read(name)["spec"]
    assert (spec[TTL], spec[DEADLINE]) == (2, 600), spec
    user.gone(name)
    return "a job got the TTL and the deadline of its namespace, and the TTL has deleted it"


def a_job_keeps_a_deadline_of_its_own(user):
    name = train_a(user, "own", ActiveDeadlineSeconds(3600))
    spec = user.read(name)["spec"]
    assert (spec[TTL], spec[DEADLINE]) == (2, 3600), spec
    return "a deadline of its own stays, up to the maximum"


def a_job_beyond_a_maximum_is_refused(user):
    said = refusal(lambda: train_a(user, "long", ActiveDeadlineSeconds(3601)))
    annotation = "lifecycle.trainjob.dev/maximum-active-deadline-seconds"
    assert "expected at most 3600" in said and annotation in said, said
    assert user.names() == {"own"}, user.names()
    return "a longer deadline is refused, with the annotation that forbids it"


def a_ttl_is_not_raised_beyond_a_maximum(user):
    user.patch("own", {TTL: 60})
    said = refusal(lambda: user.patch("own", {TTL: 61}))
    assert "expected at most 60" in said, said
    assert user.read("own")["spec"][TTL] == 60
    user.sdk.delete_job("own")
    return "a TTL is raised up to the maximum and no further"


STEPS = (
    a_job_gets_the_defaults_of_its_namespace,
    a_job_keeps_a_deadline_of_its_own,
    a_job_beyond_a_maximum_is_refused,
    a_ttl_is_not_raised_beyond_a_maximum,
)


def main():
    [namespace] = sys.argv[1:]
    with without_a_warning():
        user = User(namespace)
        for step in STEPS:
            print(step(user), flush=True)


if __name__ == "__main__":
    main()
