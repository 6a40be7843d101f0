# SPDX-License-Identifier: MIT
"""libopc for ctypes: where it is, its structs and functions as in include/opc, and its errors.

Everything that knows the C side is here; the other files use `lib`, the structs and `call`. A struct has the
members of the header, in their order, under their names, and every function has its arguments declared, so
that a wrong call is an exception and not a crash. tests/program/python.sh compares both with the headers.
"""
from __future__ import annotations

import atexit
import ctypes
import enum
import glob
import logging
import os
from ctypes import (CFUNCTYPE, POINTER, byref, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_long,
                    c_size_t, c_uint32, c_uint64, c_void_p)

SONAME = "libopc.so.0"


class Code(enum.IntEnum):
    """What kind of failure an Error is (enum opc_code of opc/err.h)."""

    OK = 0
    EUSER = 1      #: the request cannot be meant: option, setting, file content
    ENOMEM = 2     #: the machine has not enough memory for it
    EIO = 3        #: the operating system refused: file, directory, process, thread
    EABSENT = 4    #: this build lacks the library that would do it
    EDAMAGED = 5   #: a file of opc does not pass its checks
    EDIVERGED = 6  #: NaN or infinity in a network, a model or a simulator
    EENV = 7       #: an environment failed
    ESTOPPED = 8   #: stopped by request; can be resumed
    EBUG = 9       #: opc's own fault
    EREFUSED = 10  #: every imagined rollout was refused: there is nothing to learn from


class Error(Exception):
    """A failure of the library: `code` (a Code), `text` (one line) and `settings` (names of those at fault)."""

    def __init__(self, code: Code, text: str, settings: tuple[str, ...] = ()):
        super().__init__(text)
        self.code, self.text, self.settings = code, text, settings

    def __reduce__(self):  # so that it can be sent between processes
        return Error, (self.code, self.text, self.settings)


# Names of enums whose values the library hands out: enum opc_phase, enum opc_end.
PHASES = ("random", "act", "fit", "measure", "simulate", "improve", "evaluate", "save")
ENDS = ("refused", "bound", "drift", "disagreement", "dropped", "terminal", "horizon", "reference")
USE_RESET, USE_EXPLORE = 2, 4  # of enum opc_use
MEMBERS = 32  # OPC_MEMBERS


# ---- structs -------------------------------------------------------------------------------------

class Err(ctypes.Structure):
    """struct opc_err"""
    _fields_ = [("code", c_int), ("text", c_char * 400), ("settings", c_char * 120)]


class Rng(ctypes.Structure):
    """struct opc_rng"""
    _fields_ = [("seed", c_uint64), ("stream", c_uint64), ("block", c_uint64), ("word", c_uint32 * 4),
                ("left", c_uint32)]


class Outcome(ctypes.Structure):
    """struct opc_outcome"""
    _fields_ = [("obs", POINTER(c_double)), ("reward", c_double), ("terminated", c_bool),
                ("truncated", c_bool)]


class EnvHead(ctypes.Structure):
    """struct opc_env, which the library allocates; Python only reads it."""
    _fields_ = [("obs", c_int), ("act", c_int), ("state", c_int), ("steps", c_int), ("dt", c_double),
                ("low", POINTER(c_double)), ("high", POINTER(c_double)), ("angles", c_void_p),
                ("n_angles", c_int), ("engine", c_char_p), ("joints", c_char_p), ("model", c_char_p),
                ("model_hash", c_uint32), ("type", c_void_p), ("inner", c_void_p), ("spec", c_char_p),
                ("arg", c_double * 8), ("t", c_int)]


class Progress(ctypes.Structure):
    """struct opc_progress"""
    _fields_ = [("phase", c_int), ("share", c_double), ("epoch_done", c_bool), ("epoch", c_int),
                ("epochs", c_int), ("steps_per_epoch", c_int), ("step", c_int), ("env_steps", c_long),
                ("total_steps", c_long), ("eval_return", c_double), ("eval_length", c_double),
                ("model_error", c_double), ("seconds", c_double * len(PHASES)), ("elapsed", c_double),
                ("first_epoch", c_int), ("fit_passes", c_int), ("fit_holdout", c_double),
                ("error_equation", c_int)]


PROGRESS_FN = CFUNCTYPE(None, c_void_p, POINTER(Progress))
STOP_FN = CFUNCTYPE(c_bool, c_void_p)
ACT_FN = CFUNCTYPE(None, c_void_p, c_int, POINTER(c_float), POINTER(Rng), POINTER(c_float))
TERMINAL_FN = CFUNCTYPE(None, c_void_p, c_int, POINTER(c_float), POINTER(c_float), POINTER(c_float),
                        POINTER(c_bool))
REWARD_FN = CFUNCTYPE(None, c_void_p, c_int, POINTER(c_float), POINTER(c_float), POINTER(c_float),
                      POINTER(c_float))
LOG_FN = CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class Sized(ctypes.Structure):
    """A struct that begins with its own size (opc/sized.h), by which a newer library knows an older mirror."""

    def __init__(self, **members):
        super().__init__(size=ctypes.sizeof(self), **members)


class TrainPlan(Sized):
    """struct opc_train_plan"""
    _fields_ = [("size", c_size_t), ("dir", c_char_p), ("resume", c_bool), ("threads", c_int),
                ("progress", PROGRESS_FN), ("stop", STOP_FN), ("ctx", c_void_p),
                ("skip_damaged", c_long)]


class Evaluation(Sized):
    """struct opc_evaluation"""
    _fields_ = [("size", c_size_t), ("epoch", c_int), ("episodes", c_int), ("mean", c_double),
                ("deviation", c_double), ("min", c_double), ("max", c_double), ("length", c_double)]


class EnsembleOptions(Sized):
    """struct opc_ensemble_options"""
    _fields_ = [("size", c_size_t), ("obs", c_int), ("act", c_int), ("threads", c_int),
                ("settings", POINTER(c_char_p)), ("seed", c_uint64)]


class PredictorHead(ctypes.Structure):
    """struct opc_predictor, which the library allocates; Python only reads it."""
    _fields_ = [("type", c_void_p), ("obs", c_int), ("act", c_int), ("members", c_int), ("elites", c_int),
                ("elite", c_int * MEMBERS)]


class FitPlan(Sized):
    """struct opc_fit_plan"""
    _fields_ = [("size", c_size_t), ("seed", c_uint64), ("epoch", c_uint32), ("index", c_uint32),
                ("pool", c_void_p), ("stop", STOP_FN), ("stop_ctx", c_void_p), ("progress", c_void_p)]


class FitReport(Sized):
    """struct opc_fit_report"""
    _fields_ = [("size", c_size_t), ("passes", c_int), ("steps", c_int), ("holdout", c_double * MEMBERS),
                ("train_loss", c_double), ("log_std_min", c_double), ("log_std_max", c_double)]


class TransitionOptions(Sized):
    """struct opc_transition_options"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("past", c_void_p), ("model", c_void_p),
                ("steps", c_int), ("first_episode", c_int), ("reward_by_model", c_int), ("mean", c_int),
                ("reward", REWARD_FN), ("reward_ctx", c_void_p)]


class ImaginePlan(Sized):
    """struct opc_imagine_plan"""
    _fields_ = [("size", c_size_t), ("transition", c_void_p), ("episode", POINTER(c_int)),
                ("time", POINTER(c_int)), ("n", c_int), ("horizon", c_int), ("act", ACT_FN),
                ("act_ctx", c_void_p), ("actions", POINTER(c_float)), ("terminal", TERMINAL_FN),
                ("terminal_ctx", c_void_p), ("seed", c_uint64), ("epoch", c_uint32), ("index", c_uint32),
                ("pool", c_void_p), ("elite_per_rollout", c_int), ("end_with_reference", c_int)]


#: The structs by the names they have in the headers, for the test that compares them.
STRUCTS = {"opc_err": Err, "opc_rng": Rng, "opc_outcome": Outcome, "opc_env": EnvHead,
           "opc_progress": Progress, "opc_train_plan": TrainPlan, "opc_evaluation": Evaluation,
           "opc_ensemble_options": EnsembleOptions, "opc_predictor": PredictorHead, "opc_fit_plan": FitPlan,
           "opc_fit_report": FitReport, "opc_transition_options": TransitionOptions,
           "opc_imagine_plan": ImaginePlan}

# ---- functions -----------------------------------------------------------------------------------

FLOATS, DOUBLES, INTS = POINTER(c_float), POINTER(c_double), POINTER(c_int)
OUT, ERR = POINTER(c_void_p), POINTER(Err)  # an object that is handed out; the last argument

#: Name, what it returns, its arguments. Objects of the library are void pointers here.
FUNCTIONS = {
    "opc_free": (None, [c_void_p]),
    "opc_log_to": (None, [LOG_FN, c_void_p]),
    "opc_rng_stream": (Rng, [c_uint64, c_int, c_uint32, c_uint32]),
    "opc_rng_fill": (None, [POINTER(Rng), c_int, POINTER(c_uint32)]),
    "opc_pool_create": (c_int, [c_int, OUT, ERR]),
    "opc_pool_destroy": (None, [c_void_p]),
    "opc_env_open": (c_int, [c_char_p, OUT, ERR]),
    "opc_env_close": (None, [c_void_p]),
    "opc_env_reset": (c_int, [c_void_p, POINTER(Rng), DOUBLES, ERR]),
    "opc_env_start": (c_int, [c_void_p, DOUBLES, DOUBLES, ERR]),
    "opc_env_state": (None, [c_void_p, DOUBLES]),
    "opc_env_step": (c_int, [c_void_p, DOUBLES, POINTER(Outcome), ERR]),
    "opc_env_scale": (None, [c_void_p, FLOATS, DOUBLES]),
    "opc_env_rest": (None, [c_void_p]),
    "opc_env_failure": (c_int, [c_void_p, ERR]),
    "opc_env_terminal": (None, [c_void_p, c_int, FLOATS, FLOATS, FLOATS, POINTER(c_bool)]),
    "opc_config_create": (c_int, [OUT, ERR]),
    "opc_config_load": (c_int, [c_char_p, OUT, ERR]),
    "opc_config_destroy": (None, [c_void_p]),
    "opc_config_set": (c_int, [c_void_p, c_char_p, ERR]),
    "opc_config_get": (c_int, [c_void_p, c_char_p, OUT, ERR]),
    "opc_config_print": (c_int, [c_void_p, OUT, ERR]),
    "opc_config_check": (c_int, [c_void_p, ERR]),
    "opc_config_of_run": (c_int, [c_char_p, OUT, ERR]),
    "opc_train": (c_int, [c_void_p, POINTER(TrainPlan), ERR]),
    "opc_evaluate_run": (c_int, [c_char_p, c_int, c_uint64, c_bool, c_int, POINTER(Evaluation), DOUBLES,
                                 ERR]),
    "opc_policy_load": (c_int, [c_char_p, OUT, ERR]),
    "opc_policy_config": (c_int, [c_char_p, OUT, ERR]),
    "opc_policy_limits": (c_int, [c_char_p, c_int, DOUBLES, DOUBLES, ERR]),
    "opc_agent_destroy": (None, [c_void_p]),
    "opc_agent_dimensions": (None, [c_void_p, INTS, INTS]),
    "opc_agent_act": (None, [c_void_p, c_int, FLOATS, c_bool, POINTER(Rng), FLOATS]),
    "opc_agent_act_in": (None, [c_void_p, c_void_p, FLOATS, c_bool, POINTER(Rng), FLOATS]),
    "opc_episode_state_create": (c_int, [c_void_p, OUT, ERR]),
    "opc_episode_state_destroy": (None, [c_void_p]),
    "opc_episode_state_begin": (None, [c_void_p, c_uint64, c_uint32, c_uint32]),
    "opc_episodes_create": (c_int, [c_int, c_int, c_int, c_int, OUT, ERR]),
    "opc_episodes_destroy": (None, [c_void_p]),
    "opc_episodes_begin": (c_int, [c_void_p, DOUBLES, ERR]),
    "opc_episodes_append": (c_int, [c_void_p, FLOATS, c_double, DOUBLES, c_bool, ERR]),
    "opc_episodes_close": (None, [c_void_p]),
    "opc_episodes_flatten": (None, [c_void_p, FLOATS, FLOATS]),
    "opc_ensemble_create": (c_int, [POINTER(EnsembleOptions), OUT, ERR]),
    "opc_ensemble_save": (c_int, [c_void_p, c_char_p, ERR]),
    "opc_ensemble_load": (c_int, [c_char_p, c_int, OUT, ERR]),
    "opc_predictor_fit": (c_int, [c_void_p, c_int, FLOATS, FLOATS, POINTER(FitPlan), POINTER(FitReport),
                                  ERR]),
    "opc_predictor_mean": (None, [c_void_p, c_int, FLOATS, FLOATS, INTS, FLOATS, c_void_p]),
    "opc_predictor_sample": (None, [c_void_p, c_int, FLOATS, FLOATS, INTS, POINTER(Rng), FLOATS,
                                    c_void_p]),
    "opc_predictor_destroy": (None, [c_void_p]),
    "opc_transition_create": (c_int, [POINTER(TransitionOptions), OUT, ERR]),
    "opc_transition_destroy": (None, [c_void_p]),
    "opc_transition_refresh": (c_int, [c_void_p, c_void_p, ERR]),
    "opc_imagine": (c_int, [POINTER(ImaginePlan), OUT, ERR]),
    "opc_trajectories_destroy": (None, [c_void_p]),
    "opc_trajectories_length": (c_int, [c_void_p, c_int]),
    "opc_trajectories_end": (c_int, [c_void_p, c_int]),
    "opc_trajectories_start": (None, [c_void_p, c_int, INTS, INTS]),
    "opc_trajectories_states": (FLOATS, [c_void_p, c_int]),
    "opc_trajectories_actions": (FLOATS, [c_void_p, c_int]),
    "opc_trajectories_rewards": (FLOATS, [c_void_p, c_int]),
}


def candidates() -> list[str]:
    """Where the library may be, the first that exists counts: OPC_LIBRARY, beside this file, the build of a
    source tree, the lib folders of the prefix that this package is installed in; else the system's."""
    if os.environ.get("OPC_LIBRARY"):
        return [os.environ["OPC_LIBRARY"]]
    here = os.path.dirname(os.path.realpath(__file__))
    tree = os.path.join(here, "..", "..")              # python/opc of a source tree
    prefix = os.path.join(here, "..", "..", "..", "..")  # PREFIX/share/opc/python/opc
    paths = [os.path.join(here, SONAME)]
    if os.path.exists(os.path.join(tree, "CMakeLists.txt")):
        paths.append(os.path.join(tree, "build", SONAME))
    elif here.endswith(os.path.join("share", "opc", "python", "opc")):
        for folder in ("lib", "lib64", "lib/*-linux-*"):
            paths += sorted(glob.glob(os.path.join(prefix, folder, SONAME)))
    return [os.path.normpath(path) for path in paths if os.path.exists(path)] + [SONAME]


def load() -> ctypes.CDLL:
    """The library with its functions declared. ImportError says where it was looked for."""
    path = candidates()[0]
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"cannot load libopc ({error}); build it with ./dev build, install opc, or say "
                          f"where it is: OPC_LIBRARY=/path/to/{SONAME}") from None
    for name, (result, arguments) in FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: it is older than this package") from None
        function.restype, function.argtypes = result, arguments
    return library


lib = load()


# ---- errors, callbacks, objects ------------------------------------------------------------------

def call(name: str, *arguments) -> None:
    """Calls a function that can fail, with an Err as its last argument; its failure is raised as an Error."""
    err = Err()
    code = getattr(lib, name)(*arguments, byref(err))
    if code:
        raise error_of(code, err)


def error_of(code: int, err: Err) -> Error:
    """The Error of a call that returned `code`."""
    names = err.settings.decode(errors="replace").split()
    return Error(Code(code), err.text.decode(errors="replace"), tuple(names))


def path_bytes(path) -> bytes:
    """A path, or any text, as the library takes it."""
    return os.fsencode(path)


class Handle:
    """Owns an object of the library, made by `maker(*arguments, out)` and freed by `destroyer`."""

    def __init__(self, destroyer: str, maker: str, *arguments):
        self.pointer = c_void_p()
        # Kept here because module globals may be gone when the interpreter ends.
        self.destroy = getattr(lib, destroyer)
        call(maker, *arguments, byref(self.pointer))

    def close(self) -> None:
        """Frees the object; twice is fine."""
        if self.pointer:
            self.destroy(self.pointer)
            self.pointer = c_void_p()

    def __del__(self):
        if hasattr(self, "destroy"):
            self.close()


class Guard:
    """Carries an exception through C. Callbacks run their Python code within it: the first exception (Ctrl-C
    included) is kept, and `raise_kept` raises it when the C function has returned."""

    def __init__(self):
        self.kept: BaseException | None = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None and self.kept is None:
            self.kept = error
        return True

    def raise_kept(self) -> None:
        if self.kept is not None:
            raise self.kept


logger = logging.getLogger("opc")


@LOG_FN
def _log(_, level, line):
    """What the library reports goes to the logger "opc"; Python prints its warnings."""
    logger.log((logging.DEBUG, logging.INFO, logging.WARNING)[level], "%s",
               line.decode(errors="replace"))


lib.opc_log_to(_log, None)
atexit.register(lib.opc_log_to, LOG_FN(), None)
