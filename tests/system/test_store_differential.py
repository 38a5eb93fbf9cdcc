"""The embedded store and memcached 1.6.18, side by side: the same random commands to both, every byte of the answers compared.

KVFERRY_DIFFERENTIAL_COMMANDS says how many (docs/testing.md); what they answer differently on purpose is a table of its own.
"""

import os
import time

import pytest

from support import differential
from support.differential import Comparison, Generator, Side
from support.kvferry import StoreServer
from support.memcached import Memcached
from support.wire import Wire

COMMANDS = int(os.environ.get("KVFERRY_DIFFERENTIAL_COMMANDS", "30000"))
SEED = int(os.environ.get("KVFERRY_DIFFERENTIAL_SEED", "1"))
BATCH = 100
MEMORY = ("-m", "1024")  # Enough for all: what is evicted when is each server's own affair.


@pytest.fixture
def pair(tmp_path, io, cleanup):
    """Ports of a memcached and of a kvferry that takes its place."""
    memcached = Memcached(tmp_path, *MEMORY)
    cleanup.add(memcached.stop)
    server = StoreServer(tmp_path, io, "-t", 2, *MEMORY)
    cleanup.add(server.stop)
    return memcached.port, server.port


def test_random_commands_are_answered_alike(pair):
    print("seed %d" % SEED)
    generator = Generator(SEED)
    comparison = Comparison(Side("memcached", pair[0]), Side("kvferry", pair[1]))
    while comparison.count < COMMANDS:
        comparison.step(generator.batch(BATCH))


def test_odd_lines_are_answered_alike(pair):
    comparison = Comparison(Side("memcached", pair[0]), Side("kvferry", pair[1]))
    for line in differential.ODD:
        comparison.step([differential.Command(line)])


def test_what_differs_differs_as_it_is_written(pair):
    for request, theirs, ours in differential.INTENDED:
        for port, reply in zip(pair, (theirs, ours)):
            with Wire(port) as client:
                client.ask(request + b"mn\r\n", reply + b"MN\r\n")
                client.ask(b"delete k noreply\r\ndelete hello noreply\r\nmn\r\n", b"MN\r\n")


def test_items_expire_alike(pair):
    """With seconds that pass: 1.6.18's clock cannot be moved."""
    lines = [b"set e%d 0 %d 1\r\nx\r\n" % (number, ttl) for number, ttl in enumerate((1, 2, 3, 60, 0, -1))]
    lines += [b"ms f%d 1 T%d\r\nx\r\n" % (number, ttl) for number, ttl in enumerate((1, 2, 60, 0))]
    lines += [b"set g 0 0 1\r\nx\r\n", b"touch g 2\r\n", b"set h 0 1 1\r\nx\r\n", b"gat 60 h\r\n", b"mg v N2\r\n", b"ma n N2 J5\r\n",
              b"set a 0 %d 1\r\nx\r\n" % (time.time() + 2), b"set o 0 %d 1\r\nx\r\n" % (time.time() - 10)]
    names = [b"e%d" % number for number in range(6)] + [b"f%d" % number for number in range(4)] + [b"g", b"h", b"v", b"n", b"a", b"o"]
    comparison = Comparison(Side("memcached", pair[0]), Side("kvferry", pair[1]))
    comparison.step([differential.Command(line) for line in lines])
    reads = [differential.Command(b"get %s\r\n" % name) for name in names]
    left = [name for name in names if name in (b"e3", b"e4", b"f2", b"f3", b"h")]
    time.sleep(5.5)
    comparison.step(reads)
    with Wire(pair[1]) as client:
        client.ask(b"get " + b" ".join(names) + b"\r\n", b"".join(b"VALUE %s 0 1\r\nx\r\n" % name for name in left) + b"END\r\n")


def test_a_flush_hides_alike(pair):
    """An item of the second before the flush may survive in 1.6.18, so seconds pass on both sides of it."""
    comparison = Comparison(Side("memcached", pair[0]), Side("kvferry", pair[1]))
    names = [b"k%d" % number for number in range(50)]

    def step(*texts):
        comparison.step([differential.Command(text) for text in texts])
    step(*(b"set %s 0 0 1\r\nx\r\n" % name for name in names))
    time.sleep(2.5)
    step(b"flush_all\r\n", *(b"get %s\r\n" % name for name in names), b"add k1 0 0 1\r\ny\r\n", b"replace k2 0 0 1\r\ny\r\n", b"incr k3 1\r\n")
    time.sleep(2.5)
    step(*(b"get %s\r\n" % name for name in names))
