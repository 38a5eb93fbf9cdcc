"""Random bytes from clients, for some seconds, from a fixed seed: others never notice."""

import random
import time

import pytest

from support.kvferry import pool, store
from support.wire import Wire, storage, value_reply

SECONDS = 4.0
WORDS = [b"get", b"gets", b"gat", b"set", b"add", b"cas", b"append", b"mg", b"ms", b"md", b"ma", b"me", b"mn", b"incr", b"decr",
         b"touch", b"delete", b"version", b"stats", b"verbosity", b"noreply", b"k", b"key", b"0", b"1", b"-1", b"5", b"100",
         b"4294967296", b"18446744073709551616", b"999999999999999999999999", b"q", b"v", b"b", b"k O1", b"T0", b"C1", b"I", b"MA",
         b"AAEC", b"x" * 250, b"x" * 251, b"\0", b"\x80", b"\xff\xfe", b"\t", b"", b"\r", b"HTTP/1.1", b"GET / HTTP/1.1", b"watch",
         b"cache_memlimit", b"lru_crawler", b"slabs"]
ENDS = [b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r", b"", b"\r\n\r\n", b"\0\r\n"]


def random_request(chance) -> bytes:
    kind = chance.randrange(10)
    if kind == 0:
        return chance.randbytes(chance.choice([1, 3, 24, 300, 5000]))
    if kind == 1:
        value = chance.randbytes(chance.randrange(100))
        return storage(chance.choice(["set", "add", "append"]), "fuzz", value)
    if kind == 2:
        return b"get" + b" fuzz" * chance.randrange(2000) + chance.choice(ENDS)
    if kind == 3:
        size = chance.choice([0, 1, 5, 100])
        return b"ms fuzz %d%s\r\n%s\r\n" % (size, chance.choice([b"", b" q", b" c", b" zz"]), b"z" * chance.choice([size, size, size + 1]))
    return b" ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 8))) + chance.choice(ENDS)


def torment(port: int, seed: int):
    chance = random.Random(seed)
    witness = Wire(port)
    witness.ask(storage("set", "witness", b"w" * 1000), b"STORED\r\n")
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end:
        rounds += 1
        with Wire(port) as client:
            client.socket.setblocking(False)
            try:
                for _ in range(chance.randrange(1, 20)):
                    client.socket.send(random_request(chance))
                    client.socket.recv(65536)
            except (BlockingIOError, ConnectionError):
                pass
        witness.ask(b"get witness\r\n", value_reply("witness", b"w" * 1000) + b"END\r\n")
    witness.expect_in_step()
    witness.close()
    assert rounds > 50


@pytest.mark.parametrize("seed", [1, 2])
def test_garbage_to_a_pool(memcached, kvferry, seed):
    server = memcached()
    proxy = kvferry(pool("main", [server.port, memcached().port], timeout=2000))
    torment(proxy.port(), seed)


@pytest.mark.parametrize("seed", [3])
def test_garbage_to_the_store(kvferry, seed):
    torment(kvferry(store()).port(), seed)
