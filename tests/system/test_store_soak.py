"""A full store under four writers: memory stays within its limit and a stated margin, readers see whole values and no pause.

KVFERRY_SOAK_SECONDS says how long it lasts; KVFERRY_STORE_TEN_MILLION=1 adds ten million items in a gigabyte (docs/testing.md).
"""

import math
import os
import random
import threading
import time

import pytest

from support.kvferry import running_store
from support.load import Load, assert_clean, run_load
from support.process import IS_SANITIZED
from support.wire import Wire, storage

SECONDS = float(os.environ.get("KVFERRY_SOAK_SECONDS", "10"))
WRITERS = 4
LIMIT_MB = 64
# docs/operations.md states it: the program itself, its buffers, and what clients have in flight.
MARGIN_MB = 32
KEYS = 20_000
ITEM_BYTES_MAX = (1 << 20) - 100
# A get may take that long, or some times what a command takes that does not touch the store: the machine has other things to do.
PAUSE_SECONDS = 0.05
PAUSE_TIMES = 3
FILL_SECONDS = 900  # For ten million items, on a slow machine.


def value_of(number: int, size: int) -> bytes:
    """Every eight bytes tell the key, so that a part of another value is seen wherever it is."""
    return (b"%08d" % number * (size // 8 + 1))[:size]


class Writer(threading.Thread):
    """Sets, deletes, appends and touches, as fast as it can."""

    def __init__(self, port: int, number: int, end: float):
        super().__init__(daemon=True)
        self.port, self.end = port, end
        self.random = random.Random(number)
        self.fault, self.count = "", 0

    def run(self):
        try:
            with Wire(self.port, seconds=60) as client:
                while time.monotonic() < self.end:
                    client.ask(b"".join(self.command() for _ in range(50)) + b"mn\r\n", b"MN\r\n")
                    self.count += 50
        except (AssertionError, OSError) as fault:
            self.fault = str(fault)[:500]

    def command(self) -> bytes:
        pick = self.random
        number = int(KEYS ** pick.random())
        key = "k%d" % number
        draw = pick.random()
        if draw < 0.03:
            return b"delete %s noreply\r\n" % key.encode()
        if draw < 0.06:
            return b"touch %s %d noreply\r\n" % (key.encode(), pick.choice((0, 1, 100)))
        # Mostly small, up to the largest item that there may be.
        size = int(math.exp(pick.random() * math.log(2000 if pick.random() < 0.98 else ITEM_BYTES_MAX)))
        return storage("set", key, value_of(number, size), ttl=pick.choice((0, 0, 0, 2, 100)), tail="noreply")


class Reader(threading.Thread):
    """Gets one key at a time, and asks in between what a command without the store takes."""

    def __init__(self, port: int, end: float):
        super().__init__(daemon=True)
        self.port, self.end = port, end
        self.random = random.Random(99)
        self.fault = ""
        self.hits = 0
        self.get_seconds, self.noop_seconds = [], []

    def run(self):
        try:
            with Wire(self.port, seconds=60) as client:
                while time.monotonic() < self.end:
                    began = time.monotonic()
                    self.read_one(client)
                    middle = time.monotonic()
                    client.ask(b"mn\r\n", b"MN\r\n")
                    self.get_seconds.append(middle - began)
                    self.noop_seconds.append(time.monotonic() - middle)
        except (AssertionError, OSError) as fault:
            self.fault = str(fault)[:500]

    def read_one(self, client):
        number = int(KEYS ** self.random.random())
        client.send(b"get k%d\r\n" % number)
        line = client.receive_line()
        if line == b"END\r\n":
            return
        word, key, _, size = line.split()
        assert word == b"VALUE" and key == b"k%d" % number, line
        assert client.receive(int(size)) == value_of(number, int(size)), "a damaged value of k%d" % number
        client.expect(b"\r\nEND\r\n")
        self.hits += 1


def one_in_thousand(seconds) -> float:
    return sorted(seconds)[-1 - len(seconds) // 1000]


def stats_of(port: int) -> dict:
    with Wire(port) as client:
        client.send(b"stats\r\n")
        return dict(line.decode().rstrip().split(" ", 2)[1:] for line in iter(client.receive_line, b"END\r\n"))


def fill(port: int):
    """More than fits, so that all that follows evicts, however slow the machine is."""
    with Wire(port, seconds=60) as client:
        for number in range(LIMIT_MB + LIMIT_MB // 2):
            client.send(storage("set", "fill%d" % number, b"f" * 1_000_000, tail="noreply"))
        client.expect_in_step()


def test_memory_and_readers_under_writers(tmp_path, io):
    with running_store(tmp_path, io, "-m", LIMIT_MB, "-t", 2) as server:
        fill(server.port)
        end = time.monotonic() + SECONDS
        writers = [Writer(server.port, number, end) for number in range(WRITERS)]
        reader = Reader(server.port, end)
        for thread in [*writers, reader]:
            thread.start()
        sizes = []
        while time.monotonic() < end:
            time.sleep(0.2)
            sizes.append(server.process.rss_kb())
        for thread in [*writers, reader]:
            thread.join(90)
            assert not thread.is_alive() and not thread.fault, thread.fault
        stats = stats_of(server.port)
        print("commands %d, hits %d, evictions %s, RSS at most %d KiB; get p99.9 %.1f ms, mn %.1f ms" % (
            sum(writer.count for writer in writers), reader.hits, stats["evictions"], max(sizes),
            one_in_thousand(reader.get_seconds) * 1e3, one_in_thousand(reader.noop_seconds) * 1e3))
        assert reader.hits > 0
        if not IS_SANITIZED:
            assert int(stats["evictions"]) > 0, "the store was never full"
            assert max(sizes) <= (LIMIT_MB + MARGIN_MB) * 1024, sizes
            assert one_in_thousand(reader.get_seconds) <= max(PAUSE_SECONDS, PAUSE_TIMES * one_in_thousand(reader.noop_seconds))


@pytest.mark.skipif(os.environ.get("KVFERRY_STORE_TEN_MILLION") != "1", reason="takes minutes and a gigabyte: KVFERRY_STORE_TEN_MILLION=1")
def test_ten_million_items_in_a_gigabyte(tmp_path, io):
    items = 10_000_000
    with running_store(tmp_path, io, "-m", 1024, "-t", 2) as server:
        size = {"keys": items, "key_bytes": 16, "value_bytes": 40}
        assert_clean(Load(server.port, op="fill", connections=4, depth=64, stall=60, **size).finish(FILL_SECONDS))
        stats = stats_of(server.port)
        print("RSS %d KiB for %s items" % (server.process.rss_kb(), stats["curr_items"]))
        assert int(stats["curr_items"]) == items and int(stats["evictions"]) == 0
        if not IS_SANITIZED:
            assert server.process.rss_kb() <= (1024 + MARGIN_MB) * 1024
        result = run_load(server.port, op="get", seconds=5, connections=4, depth=16, stall=60, verify=True, **size)
        assert_clean(result)
        assert result["misses"] == 0
