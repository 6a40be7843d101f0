# SPDX-License-Identifier: MIT
"""Dynamics models: recorded episodes, the probabilistic ensemble, and rollouts through it by eq. 2, 3 and 5."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_void_p
from dataclasses import dataclass
from typing import Callable, Sequence

from ._arrays import Array, copied, numpy, pack, table, vector
from ._library import (ACT_FN, ENDS, STOP_FN, TERMINAL_FN, USE_EXPLORE, EnsembleOptions, FitPlan, FitReport, Guard,
                       Handle, ImaginePlan, PredictorHead, Rng, TransitionOptions, call, lib, path_bytes)
from .env import Env
from .run import Policy, setting_text


class Episodes:
    """The recorded past: whole episodes in their time order, which is what eq. 3 and eq. 5 need."""

    def __init__(self, observations: int, actions: int):
        self.observations, self.actions = observations, actions
        self.lengths: list[int] = []  #: number of steps of each episode
        self._episodes: list[tuple] = []  # (states, actions, rewards, terminal) as C numbers
        self._store: Handle | None = None  # the same for the library, made when it is asked for

    def add(self, states: Sequence, actions: Sequence, rewards: Sequence, terminal: bool = False) -> None:
        """Adds an episode of n steps: states [n + 1][obs], the start first; actions [n][act] in [-1, 1], as the
        policy chose them; rewards [n]. terminal: the task ended in the last state (running out of time is not
        terminal). States and rewards are rounded to float."""
        s, n, _ = pack(states, self.observations, c_double, "states")
        a, n_actions, _ = pack(actions, self.actions, c_float, "actions")
        r = pack(rewards, len(rewards), c_double, "rewards")[0]
        if not n - 1 == n_actions == len(rewards) or n_actions == 0:
            raise ValueError(f"{n} states, {n_actions} actions and {len(rewards)} rewards are no episode: n + 1, "
                             "n and n are needed, and n is at least 1")
        # One episode alone first: a number that does not fit is refused before anything is kept.
        episode = s, a, r, n_actions, bool(terminal)
        self._record([episode])
        self._episodes.append(episode)
        self.lengths.append(n_actions)
        self._store = None

    def _record(self, episodes: list[tuple]) -> Handle:
        """A store of the library with these episodes."""
        steps = sum(episode[3] for episode in episodes)
        store = Handle("opc_episodes_destroy", "opc_episodes_create", self.observations, self.actions, steps,
                       len(episodes))
        doubles, floats = ctypes.sizeof(c_double) * self.observations, ctypes.sizeof(c_float) * self.actions
        for s, a, r, n, terminal in episodes:
            state, action = address(s), address(a)
            call("opc_episodes_begin", store.pointer, at(state, c_double))
            for t in range(n):
                call("opc_episodes_append", store.pointer, at(action + t * floats, c_float), r[t],
                     at(state + (t + 1) * doubles, c_double), terminal and t == n - 1)
            lib.opc_episodes_close(store.pointer)
        return store

    def _pointer(self) -> c_void_p:
        if not self._episodes:
            raise ValueError("no episode is recorded; Episodes.add takes one")
        if self._store is None:
            self._store = self._record(self._episodes)
        return self._store.pointer

    def __len__(self) -> int:
        return len(self._episodes)


def address(numbers) -> int:
    """Where the numbers of `pack` are."""
    return ctypes.cast(numbers, c_void_p).value or 0


def at(where: int, kind):
    """A pointer to there."""
    return ctypes.cast(where, POINTER(kind))


# ---- the ensemble --------------------------------------------------------------------------------

@dataclass(frozen=True)
class Fit:
    """What `Ensemble.fit` reports."""

    passes: int            #: whole ones over the training data
    steps: int             #: gradient steps
    holdout: list[float]   #: mean squared error of each member on data it was not trained on
    train_loss: float      #: negative log-likelihood of the last pass


class Ensemble:
    """The probabilistic ensemble: networks that each predict a Gaussian over the next state and the reward.

    Settings are those of the section `model` (`opc config model`): Ensemble(3, 1, members=5, hidden=[64, 64],
    weight_decay=1e-5). Rows are answered by elites, the members with the smallest holdout error.
    """

    def __init__(self, observations: int, actions: int, *, seed: int = 0, threads: int = 1, **settings):
        words = [f"{name}={setting_text(value)}".encode() for name, value in settings.items()]
        options = EnsembleOptions(obs=observations, act=actions, threads=threads, seed=seed,
                                  settings=(c_char_p * (len(words) + 1))(*words, None))
        self._own(Handle("opc_predictor_destroy", "opc_ensemble_create", byref(options)), threads)
        self._fitted, self._fits, self._seed = False, 0, seed

    def _own(self, handle: Handle, threads: int) -> None:
        head = PredictorHead.from_address(handle.pointer.value)
        self._handle = handle
        self.observations, self.actions, self.members, self.elites = (head.obs, head.act, head.members,
                                                                      head.elites)
        self._pool = None if threads == 1 else Handle("opc_pool_destroy", "opc_pool_create", threads)

    @classmethod
    def load(cls, path: str | os.PathLike, *, threads: int = 1) -> "Ensemble":
        """Reads a file of `save`: it predicts, and goes on learning, as the saved one would have, to the bit."""
        model = cls.__new__(cls)
        model._own(Handle("opc_predictor_destroy", "opc_ensemble_load", path_bytes(path), threads), threads)
        model._fitted, model._fits, model._seed = True, 0, 0
        return model

    def save(self, path: str | os.PathLike) -> None:
        """Writes the ensemble with its settings to one file."""
        self._check_fitted()
        call("opc_ensemble_save", self._handle.pointer, path_bytes(path))

    def fit(self, past: Episodes, *, seed: int | None = None, index: int | None = None) -> Fit:
        """Fits the model to all recorded steps; a second fit goes on from the first. seed (that of the ensemble)
        and index (0 for the first fit, then 1, ...) name what is drawn. Ctrl-C stops it, and then it has to be
        fitted again."""
        if (past.observations, past.actions) != (self.observations, self.actions):
            raise ValueError(f"episodes of {past.observations} observations and {past.actions} actions for a model "
                             f"of {self.observations} and {self.actions}")
        n = sum(past.lengths)
        store = past._pointer()
        rows = (c_float * (n * (self.observations + self.actions)))()
        targets = (c_float * (n * (self.observations + 1)))()
        lib.opc_episodes_flatten(store, rows, targets)

        guard = Guard()

        def stop(_):
            with guard:
                return guard.kept is not None
            return True

        plan = FitPlan(seed=self._seed if seed is None else seed, index=self._fits if index is None else index,
                       pool=self._pool and self._pool.pointer, stop=STOP_FN(stop))
        report = FitReport()
        self._fitted = False
        try:
            call("opc_predictor_fit", self._handle.pointer, n, rows, targets, byref(plan), byref(report))
        finally:
            guard.raise_kept()
        self._fitted, self._fits = True, self._fits + 1
        return Fit(report.passes, report.steps, report.holdout[:self.members], report.train_loss)

    def predict(self, s: Sequence, a: Sequence, *, elite: int | Sequence[int] = 0,
                seed: int | None = None) -> tuple[Array, Array]:
        """The next state and the reward in state s with action a (in [-1, 1]), of one row or of many.

        Without a seed it is the mean f(s, a); with one it is drawn from the Gaussian. elite says who answers, 0
        to elites - 1, for all rows or for each."""
        self._check_fitted()
        state, n, single = pack(s, self.observations, c_float, "s")
        action, n_actions, _ = pack(a, self.actions, c_float, "a")
        if n != n_actions:
            raise ValueError(f"{n} states and {n_actions} actions: there must be as many")
        who = [elite] * n if isinstance(elite, int) else list(elite)
        if len(who) != n or not all(0 <= e < self.elites for e in who):
            raise ValueError(f"elite = {elite}: a number from 0 to {self.elites - 1}, or one for each row")
        y = (c_float * (n * (self.observations + 1)))()
        arguments = self._handle.pointer, n, state, action, (c_int * n)(*who)
        pool = self._pool and self._pool.pointer
        if seed is None:
            lib.opc_predictor_mean(*arguments, y, pool)
        else:
            rngs = (Rng * n)(*(lib.opc_rng_stream(seed, USE_EXPLORE, 0, i) for i in range(n)))
            lib.opc_predictor_sample(*arguments, rngs, y, pool)
        return self._split(y, single)

    def _split(self, y, single: bool) -> tuple[Array, Array]:
        """[s', reward] of each row as states and rewards."""
        rows = table(y, self.observations + 1)
        if numpy is not None:
            states, rewards = rows[:, :-1], rows[:, -1]
        else:
            states, rewards = [row[:-1] for row in rows], [row[-1] for row in rows]
        return (states[0], rewards[0]) if single else (states, rewards)

    def _check_fitted(self) -> None:
        if not self._fitted:
            raise ValueError("this ensemble is not fitted; call fit first")


# ---- rollouts ------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Trajectory:
    """An imagined rollout of n steps."""

    states: Array   #: [n + 1][obs], the start first
    actions: Array  #: [n][act], in [-1, 1]
    rewards: Array  #: [n]
    end: str        #: why it has no more steps: "horizon", "terminal", "reference" (its recording ended), "refused"
    episode: int    #: it started in this recorded episode,
    time: int       #: in this step of it

    def __len__(self) -> int:
        return len(self.rewards)


def rollout(past: Episodes, model: Ensemble | None, transition: str = "corrected", *, horizon: int,
            starts: Sequence[tuple[int, int]] | None = None, n: int | None = None,
            actions: Sequence | None = None, policy: Policy | Callable | None = None, explore: bool = False,
            env: Env | None = None, mean: bool = False, seed: int = 0) -> list[Trajectory]:
    """Rollouts of at most `horizon` steps, from recorded states on, through a transition model:

        "learned"    eq. 2   s' ~ p~(. | s, a)     (mean=True: the mean of the Gaussian)
        "replay"     eq. 3   s' = s_ref'           (needs no model)
        "corrected"  eq. 5   s' = s_ref' + f(s, a) - f(s_ref, a_ref)

    starts are pairs (episode, step of it), or `n` of them are drawn. Who acts: `actions` [rollout][horizon][act]
    given in advance, a `policy` (an opc.Policy, or a function from states [n][obs] to actions [n][act] in
    [-1, 1]), or else the recorded actions again. With `env`, rollouts end where that task ends. Which rollouts
    come out follows from the arguments alone.
    """
    check_rollout(past, model, transition, starts, n, horizon)
    store = past._pointer()
    count = n if starts is None else len(starts)
    options = TransitionOptions(name=transition.encode(), past=store, mean=mean,
                                model=None if model is None else model._handle.pointer)
    world = Handle("opc_transition_destroy", "opc_transition_create", byref(options))
    call("opc_transition_refresh", world.pointer, None)

    guard = Guard()
    plan = ImaginePlan(transition=world.pointer, n=count, horizon=horizon, seed=seed)
    if starts is not None:
        plan.episode = (c_int * count)(*(episode for episode, _ in starts))
        plan.time = (c_int * count)(*(time for _, time in starts))
    if actions is not None:
        if policy is not None:
            raise ValueError("actions and policy: only one of them can act")
        plan.actions = given_actions(actions, count, horizon, past.actions)
    elif policy is not None:
        plan.act = acting(policy, explore, past, guard)
    if env is not None:
        env._check_open()
        if (env.observations, env.actions) != (past.observations, past.actions):
            raise ValueError(f"{env!r} has {env.observations} observations and {env.actions} actions where episodes "
                             f"have {past.observations} and {past.actions}")
        # opc_env_terminal has the arguments of such a function, with the environment first.
        plan.terminal = ctypes.cast(lib.opc_env_terminal, TERMINAL_FN)
        plan.terminal_ctx = env._pointer
    try:
        paths = Handle("opc_trajectories_destroy", "opc_imagine", byref(plan))
    finally:
        guard.raise_kept()
    return [trajectory(paths.pointer, i, past) for i in range(count)]


def check_rollout(past, model, transition, starts, n, horizon) -> None:
    """Refuses what the library would call a bug of its caller."""
    if model is not None:
        model._check_fitted()
        if (model.observations, model.actions) != (past.observations, past.actions):
            raise ValueError("model and episodes have other dimensions")
    elif transition != "replay":
        raise ValueError(f"transition {transition!r} needs a model; only replay does without")
    if (starts is None) == (n is None):
        raise ValueError("either starts or n says how many rollouts there are")
    if horizon < 1 or (n is not None and n < 1) or (starts is not None and not len(starts)):
        raise ValueError("at least one rollout of at least one step is needed")
    for episode, time in starts or ():
        if not (0 <= episode < len(past) and 0 <= time < past.lengths[episode]):
            raise ValueError(f"start ({episode}, {time}) is not recorded")


def given_actions(actions: Sequence, count: int, horizon: int, width: int):
    """actions [count][horizon][width] as C numbers."""
    if len(actions) != count:
        raise ValueError(f"actions of {len(actions)} rollouts where there are {count}")
    numbers = (c_float * (count * horizon * width))()
    for i, rows in enumerate(actions):
        one, n, _ = pack(rows, width, c_float, "actions")
        if n != horizon:
            raise ValueError(f"{n} actions for rollout {i} where the horizon is {horizon}")
        ctypes.memmove(ctypes.byref(numbers, i * horizon * width * 4), one, horizon * width * 4)
    return numbers


def acting(policy: Policy | Callable, explore: bool, past: Episodes, guard: Guard):
    """The function by which the library asks a policy for actions."""
    if isinstance(policy, Policy):
        if (policy.observations, policy.actions) != (past.observations, past.actions):
            raise ValueError("policy and episodes have other dimensions")

        def act(_, n, state, rng, action):
            with guard:
                lib.opc_agent_act(policy._agent.pointer, n, state, explore, rng, action)
    else:
        def act(_, n, state, rng, action):
            # After an exception the rest of the rollouts is made of zeros and thrown away.
            if guard.kept is not None:
                return
            with guard:
                chosen = policy(table(copied(state, n * past.observations), past.observations))
                one, rows, _ = pack(chosen, past.actions, c_float, "actions of the policy")
                if rows != n:
                    raise ValueError(f"the policy returned {rows} actions for {n} states")
                ctypes.memmove(action, one, n * past.actions * 4)
    return ACT_FN(act)


def trajectory(paths: c_void_p, i: int, past: Episodes) -> Trajectory:
    """A copy of rollout i."""
    length = lib.opc_trajectories_length(paths, i)
    episode, time = c_int(), c_int()
    lib.opc_trajectories_start(paths, i, byref(episode), byref(time))
    states = copied(lib.opc_trajectories_states(paths, i), (length + 1) * past.observations)
    actions = copied(lib.opc_trajectories_actions(paths, i), length * past.actions)
    rewards = copied(lib.opc_trajectories_rewards(paths, i), length)
    return Trajectory(table(states, past.observations), table(actions, past.actions), vector(rewards),
                      ENDS[lib.opc_trajectories_end(paths, i)], episode.value, time.value)
