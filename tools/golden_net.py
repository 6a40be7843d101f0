# SPDX-License-Identifier: MIT
"""What golden_sac.py and golden_ensemble.py share: networks, gradients, Adam, and the file format.

Everything is double precision and nothing is taken from the C sources. Gradients are complex steps,
dL/dp = Im L(p + i h) / h with h = 1e-30: exact to rounding, and only the loss itself has to be
written down, so no derivation can be wrong in both places.

A network is one vector: layer after layer, weights [out][in] row by row, then biases [out].

The files are text. `#` starts a comment; an entry is a line `name rows columns` and then a line of
numbers for each row. Inputs are float32 values in nine digits, so the C side reads exactly them.
"""
import numpy as np

H = 1e-30


def f32(x):
    """The nearest float32, as a double."""
    return np.asarray(x, dtype=np.float32).astype(np.float64)


def relu(z):
    return np.where(z.real > 0, z, 0)


def swish(z):
    return z / (1 + np.exp(-z))


def softplus(x):
    """log(1 + e^x) without overflow."""
    return np.where(x.real > 0, x, 0) + np.log1p(np.exp(np.where(x.real > 0, -x, x)))


def count(widths):
    return sum(o * (i + 1) for i, o in zip(widths, widths[1:]))


def layers(theta, widths):
    """(W [out][in], b [out]) of each layer."""
    at = 0
    for i, o in zip(widths, widths[1:]):
        yield theta[at : at + o * i].reshape(o, i), theta[at + o * i : at + o * (i + 1)]
        at += o * (i + 1)


def layer_norm(z):
    """Each row with mean 0 and deviation 1; eps 1e-5, no trained scale."""
    z = z - z.mean(axis=1, keepdims=True)
    return z / np.sqrt((z * z).mean(axis=1, keepdims=True) + 1e-5)


def forward(theta, widths, x, act, seen=None, norm=False):
    """x [rows][in] to [rows][out]; what hidden activations get is appended to `seen`. norm: with
    layer normalisation before each activation."""
    pairs = list(layers(theta, widths))
    for k, (w, b) in enumerate(pairs):
        x = x @ w.T + b
        if k + 1 < len(pairs):
            x = layer_norm(x) if norm else x
            if seen is not None:
                seen.append(x.real)
            x = act(x)
    return x


def gradient(loss, theta):
    g = np.empty(len(theta))
    for k in range(len(theta)):
        moved = theta.astype(complex)
        moved[k] += 1j * H
        g[k] = loss(moved).imag / H
    return g


class Adam:
    """Kingma and Ba's algorithm; torch=False has eps beside sqrt(v) as TensorFlow 1 has it."""

    def __init__(self, n, rate, torch=False):
        self.rate, self.torch, self.t = rate, torch, 0
        self.m, self.v = np.zeros(n), np.zeros(n)

    def step(self, theta, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g * g
        fair1, fair2 = 1 - 0.9**self.t, 1 - 0.999**self.t
        if self.torch:
            return theta - self.rate * (self.m / fair1) / (np.sqrt(self.v / fair2) + 1e-8)
        return theta - self.rate * np.sqrt(fair2) / fair1 * self.m / (np.sqrt(self.v) + 1e-8)


class File:
    def __init__(self, title):
        self.text = "".join(f"# {line}\n" for line in title.strip().splitlines())

    def put(self, name, values):
        rows = np.atleast_2d(np.asarray(values, dtype=float))
        self.text += f"{name} {rows.shape[0]} {rows.shape[1]}\n"
        for row in rows:
            self.text += " ".join("%d" % x if x == int(x) else "%.9g" % x for x in row) + "\n"

    def save(self, path):
        path.write_text(self.text)


def steep_enough(what, g):
    """Adam's first steps have the length of the rate whatever the gradient's: where a gradient is
    all rounding error, float and double would go different ways. Zero itself is the same in both.
    """
    small = np.min(np.abs(g[g != 0])) / np.max(np.abs(g))
    assert small > 1e-4, f"{what}: a gradient of {small:g} of the largest; choose another seed"
