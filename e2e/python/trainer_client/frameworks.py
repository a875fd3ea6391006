"""A job on a runtime of each framework runs and completes, with exact counts on the way."""

from client import COMPLETE, counts, expect

NODES = 2
FLUX = "flux-of-the-client"


def runs(client, name, runtime, trainer, **jobs):
    """A job runs; `jobs` are its replicated jobs in their order, with the number of their Pods."""
    client.train(name, runtime, trainer={"numNodes": NODES, **trainer})
    client.runs(name, *jobs)
    expect(f"conditions of {name} while it runs", [], client.conditions(name))
    expect(f"number of Pods of {name}", sum(jobs.values()), len(client.pods(name)))


def completes(client, name, runtime, trainer=None):
    runs(client, name, runtime, trainer or {}, node=NODES)
    client.finish(name)
    client.becomes(name, COMPLETE)
    client.counts(name, counts("node", succeeded=1))
    return f"{name}: {NODES} nodes have run, then it is Complete"


def torch(client):
    return completes(client, "torch", "torch-distributed", {"numProcPerNode": 2})


def jax(client):
    return completes(client, "jax", "jax-distributed")


def xgboost(client):
    return completes(client, "xgboost", "xgboost-distributed")


def deepspeed(client):
    """Its launcher is one of its nodes; the others serve it until it is over."""
    name = "deepspeed"
    trainer = {"command": ["mpirun", "train"]}
    runs(client, name, "deepspeed-distributed", trainer, node=NODES - 1, launcher=1)
    client.finish(name, "launcher")
    client.becomes(name, COMPLETE)
    # JobSet ends the nodes, which have not succeeded.
    client.counts(name, counts("node"), counts("launcher", succeeded=1))
    return f"{name}: a launcher and {NODES - 1} node have run, then it is Complete"


def flux(client):
    """No runtime of Flux ships, so the client brings its own."""
    node = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {
                "template": {"spec": {"containers": [{"name": "node", "image": "example.com/flux:1"}]}}
            },
        },
    }
    spec = {"mlPolicy": {"numNodes": 1, "flux": {}}, "template": {"spec": {"replicatedJobs": [node]}}}
    client.create("TrainingRuntime", FLUX, spec)
    runtime = {"name": FLUX, "kind": "TrainingRuntime"}
    return completes(client, "flux", runtime, {"command": ["simulate"]})


STEPS = (torch, deepspeed, jax, xgboost, flux)
