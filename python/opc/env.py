# SPDX-License-Identifier: MIT
"""Environments of opc with Gymnasium's functions. Gymnasium itself is not needed; where it is installed, Env is
one of its environments and the spaces are its boxes, so wrappers and other libraries take them."""
from __future__ import annotations

import ctypes
import math
import random
from ctypes import byref, c_bool, c_double, c_float
from typing import Any, Sequence

from ._arrays import Array, as_list, numpy, pack, vector
from ._library import USE_RESET, EnvHead, Err, Handle, Outcome, error_of, call, lib, path_bytes

try:
    if numpy is None:
        raise ImportError
    import gymnasium
except ImportError:
    gymnasium = None


class Box:
    """A range of numbers, as far as opc needs one where Gymnasium is not installed."""

    def __init__(self, low: Sequence[float], high: Sequence[float]):
        self.low, self.high = as_list(low), as_list(high)
        self.shape = (len(low),)
        self.dtype = numpy.dtype(float) if numpy is not None else float
        self._random = random.Random()

    def seed(self, seed: int | None = None) -> None:
        """What `sample` draws follows from the seed."""
        self._random.seed(seed)

    def sample(self) -> Array:
        """One point, uniform in each bounded entry and normal in others."""
        return as_list([self._random.uniform(l, h) if math.isfinite(h - l) else self._random.gauss(0, 1)
                        for l, h in zip(self.low, self.high)])

    def contains(self, x: Sequence[float]) -> bool:
        """Is x within the range?"""
        return len(x) == self.shape[0] and all(l <= v <= h for l, v, h in zip(self.low, x, self.high))

    __contains__ = contains

    def __repr__(self):
        return f"Box({list(self.low)}, {list(self.high)})"


def make_box(low: Sequence[float], high: Sequence[float]):
    """The same as a box of Gymnasium where that is installed; of doubles, so no limit is rounded."""
    if gymnasium is None:
        return Box(low, high)
    return gymnasium.spaces.Box(numpy.array(low), numpy.array(high), dtype=numpy.float64)


class Env(gymnasium.Env if gymnasium is not None else object):
    """An environment: `opc env list` names them, `opc env show NAME` explains one.

    `Env("mujoco:hopper?angle=sincos")` takes arguments after the name, and paths of plugins and `exec:COMMAND`
    are names as well. Observations, actions and rewards are in the task's units. Used by one thread at a time.
    """

    metadata: dict[str, Any] = {"render_modes": []}
    render_mode = None

    def __init__(self, name: str):
        self._handle = Handle("opc_env_close", "opc_env_open", path_bytes(name))
        self._pointer = self._handle.pointer
        head = EnvHead.from_address(self._pointer.value)
        self.name = name
        self.observations, self.actions = head.obs, head.act
        self.steps: int = head.steps  #: an episode is truncated after this many; 0: never
        self.dt: float = head.dt      #: seconds between two observations; 0: there is no clock
        self.engine: str = (head.engine or b"").decode()
        self._state_size = head.state
        self.action_space = make_box(head.low[:head.act], head.high[:head.act])
        self.observation_space = make_box([-math.inf] * head.obs, [math.inf] * head.obs)
        self._seed: int | None = None
        self._episode = 0
        self._prepare_step()

    def _prepare_step(self) -> None:
        """Everything that a step needs and that stays the same, so that a step is one call of C."""
        self._obs = (c_double * self.observations)()
        self._action = (c_double * self.actions)()
        self._outcome = Outcome(obs=ctypes.cast(self._obs, ctypes.POINTER(c_double)))
        self._err = Err()
        self._arguments = self._pointer, self._action, byref(self._outcome), byref(self._err)
        self._c_step = lib.opc_env_step
        # Views of the same memory: numpy copies them faster than lists are made.
        self._obs_view = vector(self._obs) if numpy is not None else self._obs
        self._action_view = vector(self._action) if numpy is not None else self._action

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[Array, dict]:
        """Begins an episode and returns (observation, info).

        With a seed, it is the first episode of that seed (the start of episode 1 of a run with
        train.seed = seed); without, the next one of the last seed. options={"state": [...]} starts at a full
        state of the simulator, without noise.
        """
        self._check_open()
        if gymnasium is not None:
            super().reset(seed=seed)
        if seed is not None:
            self._seed, self._episode = seed, 0
        elif self._seed is None:
            self._seed = random.SystemRandom().getrandbits(63)
        if options and "state" in options:
            state = pack(options["state"], self._state_size, c_double, "state")[0]
            call("opc_env_start", self._pointer, state, self._obs)
        else:
            rng = lib.opc_rng_stream(self._seed, USE_RESET, 0, self._episode)
            self._episode += 1
            call("opc_env_reset", self._pointer, byref(rng), self._obs)
        return self._observation(), {}

    def step(self, action: Sequence[float]) -> tuple[Array, float, bool, bool, dict]:
        """Returns (observation, reward, terminated, truncated, info). It never resets."""
        if len(action) != self.actions:
            raise ValueError(f"an action of {len(action)} numbers where {self.name} takes {self.actions}")
        self._action_view[:] = action
        code = self._c_step(*self._arguments)
        if code:
            self._check_open()
            raise error_of(code, self._err)
        outcome = self._outcome
        return self._observation(), outcome.reward, outcome.terminated, outcome.truncated, {}

    if numpy is not None:
        def _observation(self) -> Array:
            return self._obs_view.copy()
    else:
        def _observation(self) -> Array:
            return self._obs[:]

    @property
    def state(self) -> Array:
        """The full state of the simulator now, which reset(options={"state": ...}) takes."""
        self._check_open()
        if not self._state_size:
            raise AttributeError(f"the state of {self.name} cannot be set or read")
        numbers = (c_double * self._state_size)()
        lib.opc_env_state(self._pointer, numbers)
        call("opc_env_failure", self._pointer)
        return vector(numbers)

    def scale(self, a: Sequence[float]) -> Array:
        """An action of a policy or of recorded episodes, in [-1, 1], in the task's units and within its range."""
        self._check_open()
        action = (c_double * self.actions)()
        lib.opc_env_scale(self._pointer, pack(a, self.actions, c_float, "action")[0], action)
        return vector(action)

    def terminal(self, s: Array, a: Array, following: Array) -> list[bool]:
        """Has the task ended in `following`? Asked about rows of imagined steps, with actions in [-1, 1]."""
        self._check_open()
        rows = [pack(s, self.observations, c_float, "s"), pack(a, self.actions, c_float, "a"),
                pack(following, self.observations, c_float, "following")]
        n = rows[0][1]
        if any(row[1] != n for row in rows):
            raise ValueError(f"{[row[1] for row in rows]} rows of s, a and following: they must be as many")
        out = (c_bool * n)()
        lib.opc_env_terminal(self._pointer, n, *(row[0] for row in rows), out)
        call("opc_env_failure", self._pointer)
        return list(out)

    def rest(self) -> None:
        """Says that the episode is over (a machine stops its motors); the next call is a reset."""
        self._check_open()
        lib.opc_env_rest(self._pointer)

    def render(self) -> None:
        """Nothing: `opc env render` makes pictures and films."""

    def close(self) -> None:
        """Closes the environment; twice is fine."""
        self._handle.close()
        # A step on a closed environment: an error, not a crash.
        self._c_step = _closed

    def _check_open(self) -> None:
        if not self._handle.pointer:
            raise ValueError(f"{self.name} is closed")

    @property
    def unwrapped(self) -> "Env":
        return self

    def __enter__(self) -> "Env":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self):
        return f"opc.Env({self.name!r})"


def _closed(*_) -> int:
    return 1
