# SPDX-License-Identifier: MIT
"""Serves an environment that is written in Python to opc.

    opc train FILE.yaml 'env.name=exec:python3 -m opc.serve_env MODULE:CLASS' --out run

opc starts this program, asks on its standard input and reads the answers from its standard output, in
the frames of docs/env-process.md. CLASS is called without arguments, or with the text after the last
'?' of the name as keywords (`?mass=2&mode=fast` is CLASS(mass=2, mode="fast")). What it returns needs

    reset(seed=INTEGER)  -> observation, info         (or the observation alone)
    step(action)         -> observation, reward, terminated, truncated, info
    observation_space and action_space as in Gymnasium (shape, low, high), or instead of them
    observations = N and low, high = [...], [...]

and may have `steps` (time limit), `dt` (seconds), `machine` (True for hardware, with `rest()`),
`terminal(s, a, next)` and `reward(s, a, next)` about one imagined transition, the same as
`terminal_batch` and `reward_batch` about arrays of them, `get_state()` and `set_state(state)`,
`rest()` and `close()`. Without `terminal`, imagined rollouts never end by themselves.

MODULE:CLASS may also name an environment that Gymnasium knows: gymnasium:Pendulum-v1.

Only the standard library is used. numpy, where it can be imported, makes arrays of observations and
actions; Gymnasium is imported only if it is asked for.
"""

import argparse
import importlib
import inspect
import os
import struct
import sys
import traceback
import zlib

try:
    import numpy
except ImportError:  # lists do as well
    numpy = None

VERSION = 1
HELLO, RESET, STEP, TERMINAL, REWARD, START, STATE, REST, SCENE, CLOSE = range(1, 11)
ERROR = 255
REPEATS, CAN_TERMINAL, CAN_REWARD, CAN_REST, MACHINE, CAN_DRAW = 1, 2, 4, 8, 16, 32
MAX_TEXT = 4096


class Pipe:
    """The frames: a length of 4 bytes, a kind of 1 byte, and a body."""

    def __init__(self, source, target):
        self.source, self.target = source, target

    def read(self, n):
        """Exactly n bytes; at the end of the input opc has gone, and EOFError says so."""
        data = self.source.read(n)
        if len(data) < n:
            raise EOFError
        return data

    def receive(self):
        length, kind = struct.unpack("<IB", self.read(5))
        return kind, self.read(length)

    def send(self, kind, body):
        self.target.write(struct.pack("<IB", len(body), kind) + body)
        self.target.flush()


def pack(numbers):
    return struct.pack("<%dd" % len(numbers), *numbers)


def unpack(body):
    return struct.unpack("<%dd" % (len(body) // 8), body)


def flat(values):
    """The numbers of a list, a nested list or an array, in order, as floats."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, (list, tuple)):
        return [x for value in values for x in flat(value)]
    return [float(values)]


def first(env, names, default=None):
    """The first of these attributes that the environment, or what it wraps, has and that is not None."""
    for holder in (env, getattr(env, "unwrapped", env)):
        for name in names:
            value = getattr(holder, name, None)
            if value is not None:
                return value
    return default


def size(space, name):
    shape = getattr(space, "shape", None)
    if shape is None or not hasattr(space, "low"):
        raise TypeError("%s = %r is not a box of numbers; opc needs continuous ones" % (name, space))
    n = 1
    for k in shape:
        n *= k
    return n


class Task:
    """An environment with Gymnasium's functions, in numbers: everything that opc may ask."""

    def __init__(self, env, options):
        self.env, self.options = env, options
        self.require(env)
        box = getattr(env, "action_space", None)
        self.action_shape = tuple(getattr(box, "shape", ()) or ())
        self.action_dtype = getattr(box, "dtype", None)
        if box is not None:
            size(box, "action_space")
        self.low = flat(box.low if box is not None else env.low)
        self.high = flat(box.high if box is not None else env.high)
        self.act = len(self.low)
        if len(self.high) != self.act:
            raise ValueError("low has %d entries and high has %d" % (self.act, len(self.high)))
        space = getattr(env, "observation_space", None)
        self.obs = size(space, "observation_space") if space is not None else int(env.observations)
        self.takes_seed = self.knows_seed(env.reset)
        self.state_size = self.find_state()
        self.flags = self.find_flags()

    @staticmethod
    def require(env):
        """Names everything that is missing at once."""
        missing = [name for name in ("reset", "step") if not callable(getattr(env, name, None))]
        if getattr(env, "action_space", None) is None:
            if not hasattr(env, "low") or not hasattr(env, "high"):
                missing.append("action_space (or low and high)")
        if getattr(env, "observation_space", None) is None and not hasattr(env, "observations"):
            missing.append("observation_space (or observations)")
        if missing:
            raise TypeError("%s has no %s" % (type(env).__name__, ", no ".join(missing)))

    @staticmethod
    def knows_seed(reset):
        try:
            parameters = inspect.signature(reset).parameters.values()
        except (TypeError, ValueError):
            return True
        return any(p.name == "seed" or p.kind == p.VAR_KEYWORD for p in parameters)

    def find_state(self):
        """How many numbers the full state has; 0: it cannot be set."""
        if hasattr(self.env, "get_state") and hasattr(self.env, "set_state"):
            self.reset(0)
            return len(flat(self.env.get_state()))
        if self.options.state:
            self.reset(0)
            return len(flat(getattr(self.inner(), self.options.state)))
        return 0

    def find_flags(self):
        flags = 0 if self.options.no_repeat else REPEATS
        if hasattr(self.env, "terminal") or hasattr(self.env, "terminal_batch"):
            flags |= CAN_TERMINAL
        if callable(getattr(self.env, "reward", None)) or hasattr(self.env, "reward_batch"):
            flags |= CAN_REWARD
        if hasattr(self.env, "rest"):
            flags |= CAN_REST
        if getattr(self.env, "machine", False):
            flags = flags & ~REPEATS | MACHINE
        return flags

    def inner(self):
        return getattr(self.env, "unwrapped", self.env)

    def lines(self):
        """What `opc env show` prints and a run records."""
        about = {"name": type(self.inner()).__name__, "engine": engine(self.env),
                 "version": "%08x" % checksum(self.env)}
        document = inspect.getdoc(type(self.inner()))
        if document:
            about["summary"] = document.splitlines()[0].rstrip(".")
        for key in ("summary", "observation", "action", "reward", "termination", "reset"):
            text = getattr(self.env, key + "_text", None)
            if isinstance(text, str):
                about[key] = text
        text = "".join("%s=%s\n" % (k, " ".join(v.split())) for k, v in about.items())
        return text.encode()[:MAX_TEXT]

    def hello(self):
        spec = getattr(self.env, "spec", None)
        steps = first(self.env, ["steps"]) or getattr(spec, "max_episode_steps", None) or 0
        numbers = [VERSION, self.obs, self.act, self.state_size, int(steps),
                   float(first(self.env, ["dt"], 0)), self.flags, self.options.deadline]
        return pack(numbers + self.low + self.high) + self.lines()

    def observation(self, values):
        numbers = flat(values)
        if len(numbers) != self.obs:
            raise ValueError("an observation has %d numbers where %d were declared"
                             % (len(numbers), self.obs))
        return numbers

    def reset(self, seed):
        got = self.env.reset(seed=seed) if self.takes_seed else self.env.reset()
        # Gymnasium returns (observation, info), older code the observation alone.
        if isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict):
            got = got[0]
        return self.observation(got)

    def action(self, numbers):
        if numpy is None:
            return list(numbers)
        return numpy.array(numbers, dtype=self.action_dtype or float).reshape(
            self.action_shape or (self.act,))

    def step(self, numbers):
        got = self.env.step(self.action(numbers))
        if len(got) == 5:
            obs, reward, terminated, truncated = got[:4]
        elif len(got) == 4:  # as gym had it
            obs, reward, done, info = got
            truncated = bool(info.get("TimeLimit.truncated", False))
            terminated = bool(done) and not truncated
        else:
            raise ValueError("step returned %d values instead of 5: observation, reward, "
                             "terminated, truncated, info" % len(got))
        ends = [float(bool(terminated)), float(bool(truncated))]
        return self.observation(obs) + [float(reward)] + ends

    def batch(self, name, numbers):
        """terminal or reward of many imagined transitions (s, a, next)."""
        n, o, a = int(numbers[0]), self.obs, self.act
        width = 2 * o + a
        if hasattr(self.env, name + "_batch"):
            if numpy is None:
                rows = [numbers[1 + i * width:1 + (i + 1) * width] for i in range(n)]
                parts = [r[:o] for r in rows], [r[o:o + a] for r in rows], [r[o + a:] for r in rows]
            else:
                rows = numpy.array(numbers[1:]).reshape(n, width)
                parts = rows[:, :o], rows[:, o:o + a], rows[:, o + a:]
            return flat(getattr(self.env, name + "_batch")(*parts))
        rule = getattr(self.env, name)
        out = []
        for i in range(1, 1 + n * width, width):
            s, u, following = (list(numbers[i:i + o]), list(numbers[i + o:i + o + a]),
                               list(numbers[i + o + a:i + width]))
            out.append(float(rule(s, u, following)))
        return out

    def set_state(self, numbers):
        """Starts at a full state, without noise, and returns the observation there."""
        self.reset(0)
        if not self.options.state:
            got = self.env.set_state(list(numbers))
            return self.observation(got if got is not None else self.env.observe())
        state = numpy.array(numbers) if numpy is not None else list(numbers)
        setattr(self.inner(), self.options.state, state)
        look = getattr(self.inner(), "_get_obs", None)
        return self.observation(look() if look else state)

    def get_state(self):
        if self.options.state:
            return flat(getattr(self.inner(), self.options.state))
        return flat(self.env.get_state())

    def answer(self, kind, numbers):
        if kind == STEP:
            return pack(self.step(numbers))
        if kind == RESET:
            return pack(self.reset(int(numbers[0]) >> 1))
        if kind == TERMINAL:
            return pack(self.batch("terminal", numbers))
        if kind == REWARD:
            return pack(self.batch("reward", numbers))
        if kind == START:
            return pack(self.set_state(numbers))
        if kind == STATE:
            return pack(self.get_state())
        if kind == REST:
            self.env.rest()
            return b""
        raise ValueError("frames of kind %d are not for this program" % kind)


def engine(env):
    """Which Python, and which package the class comes from, for the record of a run."""
    name = "Python %d.%d" % sys.version_info[:2]
    package = sys.modules.get(type(getattr(env, "unwrapped", env)).__module__.split(".")[0])
    version = getattr(package, "__version__", None)
    return "%s, %s %s" % (name, package.__name__, version) if version else name


def checksum(env):
    """CRC of the file that defines the class, so that a run notices another one."""
    try:
        with open(inspect.getfile(type(getattr(env, "unwrapped", env))), "rb") as f:
            return zlib.crc32(f.read())
    except (OSError, TypeError):
        return 0


def number(text):
    """'2' is a number; 'fast' is a word, and so is 'nan'."""
    for kind in (int, float) if any(c.isdigit() for c in text) else ():
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def keywords(text):
    """The arguments 'mass=2&mode=fast' as a dictionary."""
    out = {}
    for pair in filter(None, text.split("&")):
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError("'%s' is not an argument; write key=value and join several by '&'" % pair)
        out[key] = number(value)
    return out


def make(name, arguments):
    """The environment MODULE:CLASS, or the one that Gymnasium knows by gymnasium:ID."""
    module_name, colon, class_name = name.partition(":")
    if not colon:
        raise ValueError("'%s' names no class; write MODULE:CLASS" % name)
    module = importlib.import_module(module_name)
    maker = getattr(module, class_name, None)
    if maker is None and hasattr(module, "make"):
        return module.make(class_name, **arguments)
    if maker is None:
        raise ValueError("%s has no %s" % (module_name, class_name))
    return maker(**arguments)


def serve(pipe, options):
    """Answers until opc closes the pipe. A failure is an answer, too: opc prints it."""
    task = None
    try:
        while True:
            kind, body = pipe.receive()
            if kind == CLOSE:
                return
            try:
                if kind == HELLO:
                    task = Task(make(options.env, keywords(body[8:].decode())), options)
                    answer = task.hello()
                else:
                    answer = task.answer(kind, unpack(body))
            except Exception as error:
                traceback.print_exc()
                text = "%s: %s" % (type(error).__name__, error)
                pipe.send(ERROR, text.encode()[:MAX_TEXT])
                continue
            pipe.send(kind, answer)
    except (EOFError, BrokenPipeError):
        pass  # opc has gone
    finally:
        # A machine must not go on without us.
        for name in ("rest", "close"):
            end = getattr(task.env, name, None) if task else None
            if end:
                end()


def main():
    parser = argparse.ArgumentParser(
        prog="python3 -m opc.serve_env",
        description="Serves an environment that is written in Python to opc, which starts this "
                    "program itself: env.name = \"exec:python3 -m opc.serve_env MODULE:CLASS\".")
    parser.add_argument("env", metavar="MODULE:CLASS",
                        help="the environment; gymnasium:ID is one that Gymnasium knows")
    parser.add_argument("--state", metavar="ATTRIBUTE",
                        help="attribute that is the full state, for opc env trace (Gymnasium's "
                             "classic tasks: state)")
    parser.add_argument("--no-repeat", action="store_true",
                        help="the same seed and actions do not give the same numbers")
    parser.add_argument("--deadline", type=float, default=0, metavar="SECONDS",
                        help="how long an answer may take (default: opc's, 30)")
    options = parser.parse_args()
    # Frames go through the standard output that opc reads; what the environment prints goes to
    # standard error, where it does no harm.
    pipe = Pipe(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())
    serve(pipe, options)


if __name__ == "__main__":
    main()
