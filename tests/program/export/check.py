# SPDX-License-Identifier: MIT
"""Runs exported ONNX files and computes with exported NPZ files, and compares both with what opc
computed: the self-test of each file, and the actions of an episode.

    check.py FOLDER    with policy.onnx, policy.npz, model.onnx, model.npz, actions.csv
"""
import json
import sys

import numpy as np
import onnxruntime

ULP = np.finfo(np.float32).eps


def layers(z, x, elite=None):
    """The network of an NPZ file, as docs/export.md has it."""
    x = np.clip((x - z["input_mean"]) * z["input_inverse"], -z["input_clip"], z["input_clip"])
    for i, activation in enumerate(z["activation"]):
        w, b = z[f"weight_{i}"], z[f"bias_{i}"]
        x = x @ (w if elite is None else w[elite]).T + (b if elite is None else b[elite])
        if activation == b"relu":
            x = np.maximum(x, 0)
        elif activation == b"tanh":
            x = np.tanh(x)
        elif activation == b"swish":
            x = x / (1 + np.exp(-x))
    return x


def policy(z, observation):
    low, high = z["action_low"], z["action_high"]
    return np.clip((low + high) / 2 + (high - low) / 2 * layers(z, observation), low, high)


def model(z, x):
    low, high = z["action_low"], z["action_high"]
    obs = x.shape[1] - len(low)
    state = x[:, :obs]
    action = np.clip((x[:, obs:] - (low + high) / 2) / ((high - low) / 2), -1, 1)
    both = np.concatenate([state, action.astype(np.float32)], 1)
    y = np.array([layers(z, both, e) for e in range(len(z["weight_0"]))])
    mean, raw = np.split(y, 2, 2)  # of each elite, then raw log-variances
    upper, lower = z["log_var_max"][:, None], z["log_var_min"][:, None]
    log_var = upper - np.logaddexp(0, upper - raw)
    log_var = lower + np.logaddexp(0, log_var - lower)
    return np.mean(mean, 0) + np.pad(state, ((0, 0), (0, 1))), 0.5 * log_var + z["log_std_shift"][:, None]


def agree(what, got, want, tolerance):
    got, want = np.asarray(got, np.float32), np.asarray(want, np.float32)
    assert got.shape == want.shape, (what, got.shape, want.shape)
    gap = np.abs(got - want)
    assert (gap <= tolerance).all(), f"{what}: {gap.max()} beyond {tolerance}"
    assert np.abs(want).max() > 0, what
    print(f"{what}: {len(got)} rows, worst difference {(gap / tolerance).max() * 16:.2f} ULP")


folder = sys.argv[1]
for name in ("policy", "model"):
    session = onnxruntime.InferenceSession(f"{folder}/{name}.onnx")
    meta = session.get_modelmeta().custom_metadata_map
    test = json.loads(meta["self_test"])
    x, y = (np.array(test[k], np.float32) for k in ("input", "output"))
    tolerance = np.array(test["tolerance"], np.float32)
    z = np.load(f"{folder}/{name}.npz")
    # both files hold the same test
    assert (x == z["self_test_input"]).all() and (y == z["self_test_output"]).all()
    assert json.loads(meta["action_low"]) == list(z["action_low"])
    if name == "policy":
        agree("policy.onnx", session.run(None, {"observation": x})[0], y, tolerance)
        agree("policy.npz", policy(z, x), y, tolerance)
        # an episode as opc plays it
        rows = np.loadtxt(f"{folder}/actions.csv", np.float32, delimiter=",", ndmin=2)
        state, action = rows[:, : x.shape[1]], rows[:, x.shape[1] :]
        agree("policy.onnx, episodes", session.run(None, {"observation": state})[0], action, tolerance)
        agree("policy.npz, episodes", policy(z, state), action, tolerance)
    else:
        obs = y.shape[1] - 1
        state, action = x[:, :obs], x[:, obs:]
        out = session.run(None, {"observation": state, "action": action})
        agree("model.onnx", np.concatenate(out[:2], 1), y, tolerance)
        agree("model.onnx, elites", out[2].mean(0), y, tolerance)
        agree("model.npz", model(z, x)[0], y, tolerance)
        log_std, wide = z["self_test_log_std"], z["self_test_log_std_tolerance"]
        assert (np.array(test["log_std"], np.float32) == log_std).all()
        agree("model.onnx, log_std", out[3][0], log_std, wide)
        agree("model.npz, log_std", model(z, x)[1][0], log_std, wide)
        agree("model.npz and .onnx, log_std of another elite", model(z, x)[1][1], out[3][1], wide)
        assert out[2].shape[0] == len(z["weight_0"]) > 1
