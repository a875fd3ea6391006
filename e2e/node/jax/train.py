"""Trains a line on as many processes as the runtime says, and prints what each of them has found.

With `stubborn` it ignores SIGTERM and never ends; with `greedy` it takes memory until it is killed.
"""

import os
import signal
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

how = sys.argv[1]
if how == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if how == "greedy":
    hoard = []
    while True:
        hoard.append(np.ones(1 << 20))

# What the runtime has set in the environment is all it needs. The address it would find there by itself.
jax.distributed.initialize(
    coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
    process_id=int(os.environ["JAX_PROCESS_ID"]),
)
rank, size = jax.process_index(), jax.process_count()
print(f"rank {rank} of {size}", flush=True)

# Each process has points of its own on the same line, y = 2x + 1.
x = jax.random.uniform(jax.random.PRNGKey(rank), (64,))
y = 2 * x + 1


def loss(weights):
    return jnp.mean((weights[0] * x + weights[1] - y) ** 2)


step = jax.jit(jax.value_and_grad(loss))
weights = jnp.zeros(2)
number = 0
while number < 60 or how == "stubborn":
    value, gradient = step(weights)
    # The mean over all processes, which goes over the network.
    everyone = multihost_utils.process_allgather(jnp.append(gradient, value))
    mean = everyone.reshape(size, 3).mean(axis=0)
    weights = weights - 0.5 * mean[:2]
    if number % 10 == 0:
        print(f"step {number} loss {mean[2]:.6f}", flush=True)
    number += 1
    if how == "stubborn":
        time.sleep(0.05)

print(f"weights {weights[0]:.6f} {weights[1]:.6f}", flush=True)
