#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/sac*.txt: consecutive updates of soft actor-critic in double precision.

usage: tools/golden_sac.py        (needs python3-numpy; the tests do not, they read the files)

All gradients of one update are taken at the parameters before it (critics, actor and temperature
move together), then the target critics follow the new critics. Noise is made as the library makes
it, from its description in opc/rng.h and num/normal.h: Philox4x32-10, stream (seed, use = 11,
epoch, first + k), Box-Muller; first for all a', then for all a~, each [panel][action][16 rows].
tests/test_sac.c sets the same weights and batches and compares.
"""
import pathlib

import numpy as np
from golden_net import Adam, File, count, f32, forward, gradient, relu, softplus, steep_enough

USE_UPDATE, PANEL = 11, 16


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def normals(seed, use, epoch, index, n):
    words = []
    for block in range((n + 3) // 4):
        words += philox(
            (block & 0xFFFFFFFF, block >> 32, index, use << 24 | epoch),
            (seed & 0xFFFFFFFF, seed >> 32),
        )
    z = []
    for w0, w1 in zip(words[::2], words[1::2]):
        r = np.sqrt(-2 * np.log((2 * (w0 >> 1) + 1) / 2**32))
        place = w1 << 2 & 0xFFFFFFFF  # of 30 bits, signed: -1/2 to 1/2 of a quarter turn
        place -= 2**32 if place >= 2**31 else 0
        angle = ((w1 >> 30) + place / 2**32) * np.pi / 2
        z += [r * np.cos(angle), r * np.sin(angle)]
    return np.array(z[:n])


class Sac:
    def __init__(self, c, rng):
        self.c = c
        self.pi = [c["obs"], *c["policy_hidden"], 2 * c["act"]]
        self.q = [c["obs"] + c["act"], *c["critic_hidden"], 1]
        draw = lambda widths: f32(rng.normal(0, 0.5, count(widths)))
        self.policy = draw(self.pi)
        # The last action's log-deviation is around its upper bound, so that some rows are clipped.
        self.policy[-1] = f32(1.8)
        self.critics = [draw(self.q), draw(self.q)]
        self.targets = [f32(t + rng.normal(0, 0.1, len(t))) for t in self.critics]
        self.log_alpha = np.log(c["alpha"])
        adam = lambda n: Adam(n, c["rate"], c["torch"])
        self.policy_adam, self.alpha_adam = adam(len(self.policy)), adam(1)
        self.critic_adam = [adam(len(t)) for t in self.critics]
        self.updates = 0
        self.margins = []  # distances from the kinks of ReLU, min and clip

    def act(self, policy, s, eps):
        """a ~ pi(s) and log pi(a|s)."""
        seen = []
        out = forward(policy, self.pi, s, relu, seen)
        m = self.c["act"]
        mean, raw = out[:, :m], out[:, m:]
        self.margins += [np.abs(z).min() for z in seen] + [np.abs(raw.real - 2).min()]
        log_std = np.where(raw.real > 2, 2, np.where(raw.real < -20, -20, raw))
        u = mean + np.exp(log_std) * eps
        logp = (
            -0.5 * eps**2
            - log_std
            - 0.5 * np.log(2 * np.pi)
            - 2 * (np.log(2) - u - softplus(-2 * u))
        )
        return np.tanh(u), logp.sum(axis=1)

    def value(self, theta, s, a):
        seen = []
        norm = self.c.get("layer_norm", False)
        q = forward(theta, self.q, np.concatenate([s, a], axis=1), relu, seen, norm)[:, 0]
        self.margins += [np.abs(z).min() for z in seen]
        return q

    def least(self, thetas, s, a):
        q0, q1 = (self.value(t, s, a) for t in thetas)
        self.margins.append(np.abs(q0.real - q1.real).min())
        return np.where(q0.real < q1.real, q0, q1)

    def update(self, s, a, r, d, s2, eps_next, eps_here):
        c, alpha = self.c, np.exp(self.log_alpha)
        a2, logp2 = self.act(self.policy, s2, eps_next)
        y = c["reward_scale"] * r + c["discount"] * (1 - d) * (
            self.least(self.targets, s2, a2) - alpha * logp2
        )
        j_q = lambda theta: 0.5 * np.mean((self.value(theta, s, a) - y) ** 2)

        def j_pi(theta):
            at, logp = self.act(theta, s, eps_here)
            return np.mean(alpha * logp - self.least(self.critics, s, at))

        logp = self.act(self.policy, s, eps_here)[1]
        report = {
            "q": np.mean([self.value(t, s, a) for t in self.critics]),
            "q_target": y.mean(),
            "critic_loss": sum(j_q(t) for t in self.critics),
            "actor_loss": j_pi(self.policy),
            "entropy": -logp.mean(),
        }
        by_critic = [gradient(j_q, t) for t in self.critics]
        by_policy = gradient(j_pi, self.policy)
        by_log_alpha = -np.mean(logp + c["target_entropy"])  # J = -log alpha mean(log pi + H)
        steep_enough("critics", np.concatenate(by_critic))
        steep_enough("policy", by_policy)

        for k in range(2):
            self.critics[k] = self.critic_adam[k].step(self.critics[k], by_critic[k])
        self.policy = self.policy_adam.step(self.policy, by_policy)
        self.log_alpha = self.alpha_adam.step(
            np.array([self.log_alpha]), np.array([by_log_alpha])
        )[0]
        self.updates += 1
        if self.updates % c["target_interval"] == 0:
            for k in range(2):
                self.targets[k] = c["tau"] * self.critics[k] + (1 - c["tau"]) * self.targets[k]
        report["alpha"] = np.exp(self.log_alpha)
        return report


def make(name, numpy_seed, steps, **c):
    rng = np.random.default_rng(numpy_seed)
    sac = Sac(c, rng)
    f = File(f"Written by tools/golden_sac.py, which explains it; numpy seed {numpy_seed}.")
    for key, value in c.items():
        f.put(key, value)
    f.put("steps", steps)
    f.put("policy", sac.policy)
    f.put("critics", sac.critics)
    f.put("targets", sac.targets)
    n, obs, act = c["batch"], c["obs"], c["act"]
    panels = -(-n // PANEL)
    for k in range(steps):
        s, s2 = f32(rng.normal(0, 1, (n, obs))), f32(rng.normal(0, 1, (n, obs)))
        a, r = f32(rng.uniform(-1, 1, (n, act))), f32(rng.normal(0, 2, n))
        d = (rng.random(n) < 0.3).astype(float)
        eps = normals(c["seed"], USE_UPDATE, c["epoch"], c["first"] + k, 2 * panels * act * PANEL)
        eps = eps.reshape(2, panels, act, PANEL).swapaxes(2, 3).reshape(2, panels * PANEL, act)
        report = sac.update(s, a, r, d, s2, eps[0, :n], eps[1, :n])
        f.put(f"batch{k}", np.column_stack([s, a, r, d, s2]))
        f.put(f"noise{k}", np.column_stack([eps[0, :n], eps[1, :n]]))
        for key, value in report.items():
            f.put(f"{key}{k}", value)
        f.put(f"policy{k}", sac.policy)
        f.put(f"critics{k}", sac.critics)
        f.put(f"targets{k}", sac.targets)
        f.put(f"log_alpha{k}", sac.log_alpha)
    # Adam does not notice a factor on its gradient, but its moments do.
    f.put("policy.m", sac.policy_adam.m)
    f.put("policy.v", sac.policy_adam.v)
    f.put("critics.m", [o.m for o in sac.critic_adam])
    f.put("critics.v", [o.v for o in sac.critic_adam])
    f.put("alpha.m", sac.alpha_adam.m)
    f.put("alpha.v", sac.alpha_adam.v)
    margin = min(sac.margins)
    assert margin > 2e-6, f"{name}: {margin:g} from a kink is too near; choose another seed"
    f.save(pathlib.Path(__file__).parents[1] / "tests/golden" / name)
    print(f"{name}: {steps} updates, {margin:.1g} from the nearest kink")


# Rates are large, so that three updates move weights and targets by far more than the tolerance.
make(
    "sac.txt",
    numpy_seed=84,
    steps=3,
    obs=3,
    act=2,
    policy_hidden=[8, 8],
    critic_hidden=[8, 8],
    discount=0.97,
    rate=0.01,
    batch=20,
    tau=0.25,
    target_interval=1,
    alpha=0.3,
    target_entropy=-1.5,
    reward_scale=0.5,
    torch=False,
    seed=5,
    epoch=3,
    first=7,
)
make(
    "sac_other.txt",
    numpy_seed=2,
    steps=3,
    obs=2,
    act=1,
    policy_hidden=[5],
    critic_hidden=[9, 4, 3],
    discount=0.9,
    rate=0.02,
    batch=37,
    tau=0.5,
    target_interval=2,
    alpha=1,
    target_entropy=0.5,
    reward_scale=2,
    torch=True,
    seed=2**40 + 6,
    epoch=0,
    first=0,
)
make(
    "sac_layer_norm.txt",
    numpy_seed=24,
    steps=3,
    obs=3,
    act=2,
    policy_hidden=[8],
    critic_hidden=[7, 6],
    discount=0.95,
    rate=0.01,
    batch=20,
    tau=0.25,
    target_interval=1,
    alpha=0.3,
    target_entropy=-1.5,
    reward_scale=0.5,
    torch=False,
    seed=8,
    epoch=1,
    first=2,
    layer_norm=True,
)
