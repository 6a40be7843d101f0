# SPDX-License-Identifier: MIT
"""check.py RUN...: metrics.jsonl and the event file of each run hold what its metrics.csv holds.

The event file is read twice: by a reader of its own, which checks the lengths and checksums of all records,
and by TensorBoard's, if that is installed."""
import csv
import json
import os
import struct
import sys
import time


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # the published check of CRC-32C


def check(data, stored):
    crc = crc32c(data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    assert stored == struct.pack("<I", masked), "wrong checksum"


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a message."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            n = {1: 8, 5: 4}.get(kind)
            if n is None:
                assert kind == 2
                n, at = varint(data, at)
            value, at = data[at : at + n], at + n
            assert len(value) == n
        yield key >> 3, value


def records(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        check(data[at : at + 8], data[at + 8 : at + 12])
        message = data[at + 12 : at + 12 + n]
        assert len(message) == n
        check(message, data[at + 12 + n : at + 16 + n])
        at += 16 + n
        yield message


def points(path):
    """{tag: [(step, value)]}, and the times."""
    found, times, first = {}, [], True
    for message in records(path):
        event = dict(fields(message))
        times += struct.unpack("<d", event[1])
        if first:
            assert event[3] == b"brain.Event:2"
            first = False
            continue
        for number, value in fields(event[5]):
            assert number == 1
            scalar = dict(fields(value))
            found.setdefault(scalar[1].decode(), []).append((event[2], *struct.unpack("<f", scalar[2])))
    return found, times


def to_float(text):
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


for run in sys.argv[1:]:
    rows = list(csv.DictReader(open(os.path.join(run, "metrics.csv"))))
    assert rows
    want = {}
    for row in rows:
        for name, cell in row.items():
            if cell:
                want.setdefault(name, []).append((int(row["env_steps"]), to_float(cell)))

    # JSON lines: every column of every row, as the very same doubles
    lines = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    assert lines == [{k: float(v) if v else None for k, v in row.items()} for row in rows], "metrics.jsonl"

    # the event file by our own reader
    found, times = points(os.path.join(run, "events.out.tfevents.opc"))
    assert found == want, "event file"
    assert len(times) == 1 + len(rows)
    assert times == sorted(times) and time.time() - 86400 < times[0] and times[-1] <= time.time()

    # and by TensorBoard's
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        print(f"{run}: {len(rows)} rows, {len(want)} scalars agree; TensorBoard is not installed")
        continue
    board = EventAccumulator(run, size_guidance={"scalars": 0}).Reload()
    read = {tag: [(e.step, e.value) for e in board.Scalars(tag)] for tag in board.Tags()["scalars"]}
    assert read == want, "TensorBoard's reader"
    print(f"{run}: {len(rows)} rows, {len(want)} scalars agree, also in TensorBoard's reader")
