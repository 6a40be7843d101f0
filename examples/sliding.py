# SPDX-License-Identifier: MIT
"""The task of sliding.c in Python, frame by frame and with the standard library alone. docs/env-process.md
explains the frames. `python3 -m opc.serve_env` does all of this for a class (tanks.py); this file is for
those who want to see every byte, or to write the same in another language.

    opc env check 'exec:python3 sliding.py?mass=2'
"""
import struct
import sys

HELLO, RESET, STEP, TERMINAL, REWARD, START, STATE, CLOSE = 1, 2, 3, 4, 5, 6, 7, 10
REPEATS, CAN_TERMINAL, CAN_REWARD = 1, 2, 4
DT, EDGE = 0.05, 2.0
TEXT = b"""name=sliding
summary=a block slides on a table and is to stop in the middle
observation=position, velocity
action=force
reward=-(x^2 + 0.1 v^2 + 0.01 u^2) after the step
termination=when |x| > 2
reset=at rest, x uniform in [-1, 1)
"""


def receive():
    """A frame is the length of its body (4 bytes), its kind (1 byte) and its body."""
    head = sys.stdin.buffer.read(5)
    if len(head) < 5:
        sys.exit(0)  # opc has gone
    length, kind = struct.unpack("<IB", head)
    return kind, sys.stdin.buffer.read(length)


def send(kind, numbers, text=b""):
    body = struct.pack("<%dd" % len(numbers), *numbers) + text
    sys.stdout.buffer.write(struct.pack("<IB", len(body), kind) + body)
    sys.stdout.buffer.flush()


def reward_of(force, x, v):
    return -(x * x + 0.1 * v * v + 0.01 * force * force)


mass, x, v = 1.0, 0.0, 0.0
while True:
    kind, body = receive()
    numbers = struct.unpack("<%dd" % (len(body) // 8), body[:len(body) // 8 * 8])
    if kind == HELLO:
        arguments = body[8:].decode()  # what stood after the '?'
        if arguments.startswith("mass="):
            mass = float(arguments[5:])
        # version, observations, actions, full state, steps, dt, flags, deadline, low, high
        send(HELLO, [1, 2, 1, 2, 200, DT, REPEATS + CAN_TERMINAL + CAN_REWARD, 0, -3, 3], TEXT)
    elif kind == RESET:  # four random words below 2^32
        x, v = numbers[0] / 2147483648.0 - 1, 0.0
        send(RESET, [x, v])
    elif kind == START:
        x, v = numbers
        send(START, [x, v])
    elif kind == STATE:
        send(STATE, [x, v])
    elif kind == STEP:
        force = numbers[0]
        v += DT * (force / mass - 0.5 * v)
        x += DT * v
        send(STEP, [x, v, reward_of(force, x, v), abs(x) > EDGE, False])
    elif kind in (TERMINAL, REWARD):  # n, then n rows of s (2 numbers), a (1), s' (2)
        rows = [numbers[i:i + 5] for i in range(1, len(numbers), 5)]
        if kind == TERMINAL:
            send(kind, [abs(r[3]) > EDGE for r in rows])
        else:
            send(kind, [reward_of(r[2], r[3], r[4]) for r in rows])
    elif kind == CLOSE:
        break
    else:
        sys.exit("sliding: a frame of kind %d is not for us" % kind)
