"""A client that only knows Kubeflow Trainer's API, and what this operator answers it.

    KUBECONFIG=... python trainer_client NAMESPACE

Each step prints what was seen; the first in which something else came than Kubeflow Trainer answers ends it with an
error. The Pods of a runtime that came with the chart run for ever on fake nodes, so jobs say by a patch when theirs
end.
"""

import sys

import frameworks
import lifecycle
import patches
from client import Client
from kubernetes.client import ApiException


def main():
    [namespace] = sys.argv[1:]
    client = Client(namespace)
    for step in (*frameworks.STEPS, *patches.STEPS, *lifecycle.STEPS):
        try:
            print(step(client), flush=True)
        except AssertionError as error:
            sys.exit(f"{step.__name__}: {error}")
        except ApiException as error:
            sys.exit(f"{step.__name__}: expected to be let in, came {error.status}: {error.body}")


if __name__ == "__main__":
    main()
