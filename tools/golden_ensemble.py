#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/ensemble*.txt: gradient steps of the ensemble in double precision.

usage: tools/golden_ensemble.py   (needs python3-numpy; the tests do not, they read the files)

The loss of a step, for member k on its own rows, with l the bounded log-variance,

    nll_k = mean over rows and outputs of (mean - y)^2 exp(-l) + l
    L     = sum_k nll_k + sum_layers decay/2 ||W||^2 + penalty (sum lmax - sum lmin)

All parameters and the bounds move together by Adam. The third step's batch is short. Inputs are
scaled by mean and population deviation of the rows named `train`. tests/test_ensemble.c sets the
same weights, bounds and rows and compares.
"""
import pathlib

import numpy as np
from golden_net import Adam, File, count, f32, forward, gradient, layers, softplus, swish
from golden_net import steep_enough

LEARNED, FIXED, MEMBER = range(3)


def nll(theta, widths, bounds, x, y):
    """bounds: [upper, lower], concatenated."""
    dim = y.shape[1]
    upper, lower = bounds[:dim], bounds[dim:]
    out = forward(theta, widths, x, swish)
    mean, raw = out[:, :dim], out[:, dim:]
    l1 = upper - softplus(upper - raw)
    l = lower + softplus(l1 - lower)
    return np.mean((mean - y) ** 2 * np.exp(-l) + l)


def decayed(theta, widths, decay, biases):
    return sum(
        0.5 * wd * (np.sum(w * w) + (np.sum(b * b) if biases else 0))
        for wd, (w, b) in zip(decay, layers(theta, widths))
    )


def make(name, numpy_seed, sizes, **c):
    rng = np.random.default_rng(numpy_seed)
    f = File(f"Written by tools/golden_ensemble.py, which explains it; numpy seed {numpy_seed}.")
    for key, value in c.items():
        f.put(key, value)
    n, obs, act, members = c["rows"], c["obs"], c["act"], c["members"]
    dim, widths = obs + 1, [obs + act, *c["hidden"], 2 * (obs + 1)]
    decay = c["decay"] * (len(widths) - 1) if len(c["decay"]) == 1 else c["decay"]

    sa = f32(np.column_stack([rng.normal(2, 3, (n, obs)), rng.uniform(-1, 1, (n, act))]))
    y = f32(rng.normal(0, 1, (n, dim)))
    train = rng.permutation(n)[: n - n // 4]
    mean, std = sa[train].mean(axis=0), sa[train].std(axis=0)
    x = (sa - mean) / std
    theta = f32(rng.normal(0, 0.5, (members, count(widths))))
    sets = members if c["bounds"] == MEMBER else 1
    start = np.repeat([c["log_var_max"], c["log_var_min"]], dim)
    bounds = f32(start + rng.normal(0, 0.2, (sets, 2 * dim)))
    f.put("sa", sa)
    f.put("y", y)
    f.put("train", train)
    f.put("scale.mean", mean)
    f.put("scale.inverse", 1 / std)
    f.put("weights", theta)
    f.put("limits", bounds)
    f.put("sizes", sizes)

    adam = [Adam(theta.shape[1], c["rate"], c["torch"]) for _ in range(members)]
    bound_adam = Adam(bounds.size, c["rate"], c["torch"])
    for k, size in enumerate(sizes):
        rows = rng.integers(0, n, (members, size))

        def fit(m, p, b):
            own = b.reshape(bounds.shape)[m if sets > 1 else 0]
            return nll(p, widths, own, x[rows[m]], y[rows[m]])

        def loss_of_member(m, p):
            return fit(m, p, bounds) + decayed(p, widths, decay, c["decay_biases"])

        def loss_of_bounds(b):
            signs = np.tile(np.repeat([1, -1], dim), sets)
            return sum(fit(m, theta[m], b) for m in range(members)) + c["bound_penalty"] * b @ signs

        losses = [fit(m, theta[m], bounds) for m in range(members)]
        g = np.array([gradient(lambda p: loss_of_member(m, p), theta[m]) for m in range(members)])
        g_bounds = gradient(loss_of_bounds, bounds.ravel())
        if k == 0:
            steep_enough("members", g)
            steep_enough("bounds", g_bounds)
        theta = np.array([adam[m].step(theta[m], g[m]) for m in range(members)])
        if c["bounds"] != FIXED:
            bounds = bound_adam.step(bounds.ravel(), g_bounds).reshape(bounds.shape)
        f.put(f"rows{k}", rows)
        f.put(f"loss{k}", sum(losses))
        f.put(f"weights{k}", theta)
        f.put(f"limits{k}", bounds)
    # Adam does not notice a factor on its gradient, but its moments do.
    f.put("weights.m", [o.m for o in adam])
    f.put("weights.v", [o.v for o in adam])
    f.put("limits.m", bound_adam.m.reshape(bounds.shape))
    f.put("limits.v", bound_adam.v.reshape(bounds.shape))
    f.save(pathlib.Path(__file__).parents[1] / "tests/golden" / name)
    print(f"{name}: {len(sizes)} steps")


# Rates and decay are large, so that a few steps move weights and bounds by far more than the
# tolerance, and so that a decay that is missing is noticed.
SHARED = dict(rows=48, obs=3, act=2, members=3, batch=20, rate=0.01)
make(
    "ensemble.txt",
    numpy_seed=3,
    sizes=[20, 20, 7, 20],
    **SHARED,
    hidden=[8, 8],
    decay=[0.01, 0.02, 0.04],
    decay_biases=False,
    torch=False,
    bounds=LEARNED,
    bound_penalty=0.01,
    log_var_max=0.5,
    log_var_min=-2,
)
make(
    "ensemble_mbrl.txt",
    numpy_seed=2,
    sizes=[20, 20, 7],
    **SHARED,
    hidden=[6],
    decay=[0.03],
    decay_biases=True,
    torch=True,
    bounds=FIXED,
    bound_penalty=0.01,
    log_var_max=0.5,
    log_var_min=-10,
)
make(
    "ensemble_member.txt",
    numpy_seed=1,
    sizes=[20, 20, 3],
    **SHARED,
    hidden=[5, 4],
    decay=[0, 0.01, 0.02],
    decay_biases=False,
    torch=False,
    bounds=MEMBER,
    bound_penalty=0.05,
    log_var_max=0.5,
    log_var_min=-3,
)
