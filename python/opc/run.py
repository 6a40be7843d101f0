# SPDX-License-Identifier: MIT
"""Runs: settings, training, what a run directory holds, and the policy that comes of it."""
from __future__ import annotations

import csv
import ctypes
import json
import os
from ctypes import byref, c_double, c_float, c_int, c_void_p
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, Sequence, Union

from ._arrays import Array, as_list, numpy, pack, table, vector
from ._library import (PHASES, PROGRESS_FN, STOP_FN, USE_EXPLORE, Code, Error, Evaluation, Guard, Handle, Rng,
                       TrainPlan, call, lib, path_bytes)

Settings = Union[str, os.PathLike, Mapping[str, Any], "Config"]


# ---- settings ------------------------------------------------------------------------------------

def setting_text(value: Any) -> str:
    """A Python value as it is written in a file of settings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(setting_text(x) for x in value) + "]"
    return str(value)


class Config:
    """The settings of a run: those of a file, or of a dictionary, and defaults for the rest.

    A dictionary has full names ({"train.epochs": 3}) or sections ({"train": {"epochs": 3}}). `opc config` and
    docs/configuration.md explain every setting. config[name] is the value as text.
    """

    def __init__(self, source: Settings | None = None):
        if isinstance(source, (str, os.PathLike)):
            self._handle = Handle("opc_config_destroy", "opc_config_load", path_bytes(source))
            return
        self._handle = Handle("opc_config_destroy", "opc_config_create")
        if isinstance(source, Config):
            raise TypeError("a Config is used as it is; make another one from its file or dictionary")
        if source:
            self.update(source)

    @classmethod
    def _of(cls, maker: str, path) -> "Config":
        """The settings that a function of the library finds at a path."""
        config = cls.__new__(cls)
        config._handle = Handle("opc_config_destroy", maker, path_bytes(path))
        return config

    def update(self, settings: Mapping[str, Any]) -> None:
        """Sets all of them, in their order."""
        for name, value in settings.items():
            if isinstance(value, Mapping):
                self.update({f"{name}.{key}": x for key, x in value.items()})
            else:
                self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        call("opc_config_set", self._handle.pointer, f"{name}={setting_text(value)}".encode())

    def __getitem__(self, name: str) -> str:
        return self._text("opc_config_get", name.encode())

    def check(self) -> None:
        """Raises an Error if the settings do not fit each other."""
        call("opc_config_check", self._handle.pointer)

    def __str__(self) -> str:
        """All settings, as the text of a file."""
        return self._text("opc_config_print")

    def _text(self, function: str, *arguments) -> str:
        out = c_void_p()
        call(function, self._handle.pointer, *arguments, byref(out))
        try:
            return ctypes.string_at(out).decode(errors="replace")
        finally:
            lib.opc_free(out)


# ---- training ------------------------------------------------------------------------------------

@dataclass(frozen=True)
class Epoch:
    """An epoch that is done, for `on_epoch`."""

    epoch: int          #: from 1
    epochs: int         #: how many there will be
    env_steps: int      #: on the real environment, without the random phase
    total_steps: int    #: with it
    eval_return: float  #: mean return of the last evaluation; NaN before the first
    eval_length: float
    model_error: float  #: of one step on the newest episodes, relative to their spread; NaN: not measured
    seconds: dict[str, float]  #: spent in each phase of this epoch
    elapsed: float      #: seconds since training began


def epoch_of(p) -> Epoch:
    """A copy of what the library passes to its callback (struct opc_progress)."""
    return Epoch(p.epoch, p.epochs, p.env_steps, p.total_steps, p.eval_return, p.eval_length, p.model_error,
                 dict(zip(PHASES, p.seconds)), p.elapsed)


def train(config: Settings | None = None, settings: Mapping[str, Any] | None = None, *,
          out: str | os.PathLike | None = None, on_epoch: Callable[[Epoch], Any] | None = None,
          resume: bool = False, threads: int = 0) -> Epoch | None:
    """Trains a run to its end and returns its last epoch (None if all was done before).

    config is the path of a file, a dictionary or a Config; `settings` are set on top. `out` is the run directory
    to be made; without one nothing is written. resume=True goes on with the run in `out`, with the settings it
    has. on_epoch(epoch) is called after each epoch and stops the run by returning True. A run that is stopped,
    also by Ctrl-C or an exception in on_epoch, can be resumed. threads=0: one per processor; no result depends
    on it.
    """
    if resume:
        if out is None or config is not None or settings:
            raise ValueError("resume=True needs out=DIRECTORY, and takes all settings from there; "
                             "'opc resume DIRECTORY train.epochs=N' trains a run further")
        config = Config._of("opc_config_of_run", out)
    elif config is None:
        config = Config()
    elif not isinstance(config, Config):
        config = Config(config)
    config.update(settings or {})

    guard, last, asked_to_stop = Guard(), None, False

    def progress(_, p):
        nonlocal last, asked_to_stop
        if not p.contents.epoch_done:
            return
        with guard:
            last = epoch_of(p.contents)
            if on_epoch is not None and on_epoch(last):
                asked_to_stop = True

    def stop(_):
        # Ctrl-C arrives while this runs, so the guard sees it.
        with guard:
            return guard.kept is not None or asked_to_stop
        return True

    plan = TrainPlan(dir=None if out is None else path_bytes(out), resume=resume, threads=threads,
                     progress=PROGRESS_FN(progress), stop=STOP_FN(stop))
    try:
        call("opc_train", config._handle.pointer, byref(plan))
    except Error as error:
        guard.raise_kept()
        if not (asked_to_stop and error.code == Code.ESTOPPED):
            raise
    guard.raise_kept()
    return last


@dataclass(frozen=True)
class Returns:
    """What `evaluate` has played."""

    epoch: int         #: the policy is as it was at the end of this epoch
    returns: Array     #: of each episode
    mean: float
    deviation: float
    min: float
    max: float
    length: float      #: mean number of steps


def evaluate(path: str | os.PathLike, episodes: int = 10, *, seed: int = 0, explore: bool = False,
             threads: int = 0) -> Returns:
    """Plays episodes with the policy of a run directory on its own environment, as `opc evaluate` does."""
    if episodes < 1:
        raise ValueError(f"episodes = {episodes}: at least one has to be played")
    report, returns = Evaluation(), (c_double * episodes)()
    call("opc_evaluate_run", path_bytes(path), episodes, seed, explore, threads, byref(report), returns)
    return Returns(report.epoch, vector(returns), report.mean, report.deviation, report.min, report.max,
                   report.length)


# ---- run directories -----------------------------------------------------------------------------

@dataclass
class Run:
    """A run directory, as it was when it was read. run["eval_return"] is a column of metrics.csv."""

    path: str
    metrics: dict[str, Array]  #: columns of metrics.csv, a number for each epoch; NaN where a cell is empty
    timing: dict[str, Array]   #: the same of timing.csv
    meta: dict = field(repr=False)            #: meta.json: what made the run
    status: dict = field(repr=False)          #: status.json: how far it is
    result: dict | None = field(repr=False)   #: result.json; None: the run is not complete

    def __getitem__(self, column: str) -> Array:
        return self.metrics[column]

    def __len__(self) -> int:
        """How many epochs are done."""
        return len(self.metrics.get("epoch", ()))

    @property
    def config(self) -> Config:
        """The settings that the run was started with."""
        return Config._of("opc_config_of_run", self.path)

    def policy(self) -> "Policy":
        """The policy of the run."""
        return Policy.load(self.path)


def read_columns(path: str) -> dict[str, Array]:
    """The columns of a table of a run. A last line that is still being written is left out."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        return {}
    rows = list(csv.reader(text[:text.rfind("\n") + 1].splitlines()))
    return {name: as_list([float(row[k] or "nan") for row in rows[1:]])
            for k, name in enumerate(rows[0] if rows else [])}


def read_json(path: str) -> dict | None:
    """A JSON file of a run; None: it is not there."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def read_run(path: str | os.PathLike) -> Run:
    """Reads a run directory (docs/run-directory.md), which may be done while the run goes on."""
    path = os.fspath(path)
    meta = read_json(os.path.join(path, "meta.json"))
    if meta is None:
        raise Error(Code.EUSER, f"{path} holds no run: it has no meta.json", ())
    tables = [read_columns(os.path.join(path, name)) for name in ("metrics.csv", "timing.csv")]
    return Run(path, *tables, meta, read_json(os.path.join(path, "status.json")) or {},
               read_json(os.path.join(path, "result.json")))


# ---- policies ------------------------------------------------------------------------------------

class Policy:
    """A trained policy. policy(observation) is its action, in the task's units.

    >>> policy = opc.Policy.load("runs/hopper")     # or a policy.opc alone
    >>> observation, _ = env.reset(seed=1); policy.reset()
    >>> env.step(policy(observation))

    A row of observations gives a row; [n][obs] gives [n][act]. One that plans (docs/pets.md) remembers its plan
    from call to call, so `reset` has to say where an episode begins.
    """

    def __init__(self, path: str | os.PathLike):
        self._agent = Handle("opc_agent_destroy", "opc_policy_load", path_bytes(path))
        obs, act = c_int(), c_int()
        lib.opc_agent_dimensions(self._agent.pointer, byref(obs), byref(act))
        self.path = os.fspath(path)
        self.observations, self.actions = obs.value, act.value
        low, high = (c_double * act.value)(), (c_double * act.value)()
        call("opc_policy_limits", path_bytes(path), act.value, low, high)
        self.low, self.high = vector(low), vector(high)
        self._memory = Handle("opc_episode_state_destroy", "opc_episode_state_create", self._agent.pointer)
        self.reset()

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Policy":
        """Loads a policy.opc, or the policy of a run directory: the final one, or that of the last checkpoint."""
        return cls(path)

    @property
    def config(self) -> Config:
        """The settings it was trained with; config["env.name"] is its task."""
        return Config._of("opc_policy_config", self.path)

    def reset(self, seed: int = 0, episode: int = 0) -> None:
        """An episode begins. What is drawn in it (explore=True, or by a planner) follows from seed and episode."""
        self._rng = lib.opc_rng_stream(seed, USE_EXPLORE, 0, episode)
        lib.opc_episode_state_begin(self._memory.pointer, seed, 0, episode)

    def __call__(self, observation: Sequence, explore: bool = False) -> Array:
        """The action in the task's units; explore=True draws it from the policy."""
        chosen = self.normalized(observation, explore)
        # As opc_env_scale does, in doubles.
        if numpy is not None:
            return numpy.clip(self.low + (chosen.astype(float) + 1) * (self.high - self.low) / 2, self.low,
                              self.high)
        if chosen and isinstance(chosen[0], list):
            return [self._scaled(row) for row in chosen]
        return self._scaled(chosen)

    def _scaled(self, row: Sequence[float]) -> list[float]:
        return [min(max(low + (a + 1) * (high - low) / 2, low), high)
                for low, a, high in zip(self.low, row, self.high)]

    def normalized(self, observation: Sequence, explore: bool = False) -> Array:
        """The action as the policy chooses it, in [-1, 1]: what episodes record and models are asked with."""
        state, n, single = pack(observation, self.observations, c_float, "observation")
        action = (c_float * (n * self.actions))()
        if single:
            lib.opc_agent_act_in(self._agent.pointer, self._memory.pointer, state, explore, byref(self._rng),
                                 action)
        else:
            # A stream for each row, all named by the one of this episode.
            rngs = (Rng * n)(*(self._next_stream() for _ in range(n))) if explore else None
            lib.opc_agent_act(self._agent.pointer, n, state, explore, rngs, action)
        return vector(action) if single else table(action, self.actions)

    def _next_stream(self) -> Rng:
        words = (ctypes.c_uint32 * 2)()
        lib.opc_rng_fill(byref(self._rng), 2, words)
        return lib.opc_rng_stream(words[0] << 32 | words[1], USE_EXPLORE, 0, 0)

    def __repr__(self):
        return f"opc.Policy.load({self.path!r})"
