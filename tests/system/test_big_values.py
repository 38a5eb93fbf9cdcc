"""Values of 100 MB pass through in a window: memory does not grow with them, and small requests do not wait."""

import random
import threading
import time

import pytest

from support.kvferry import pool
from support.process import IS_SANITIZED, wait_for
from support.wire import Wire, storage, value_reply

BIG_BYTES = 100 << 20
GROWTH_KB = 16 * 1024
PIECE = random.Random(7).randbytes(1 << 20)

# Sanitizers keep freed memory for a while and shadow the rest, so their builds say nothing about ours.
pytestmark = pytest.mark.skipif(IS_SANITIZED, reason="memory is measured on builds without sanitizers")


def serve_big(connection):
    """Knows every key: 100 MB for big*, a byte for the others. Swallows whatever is set."""
    while True:
        line = connection.read_line()
        words = line.split()
        if words[0] == b"set":
            connection.skip(int(words[4]) + 2)
            connection.send(b"STORED\r\n")
        elif words[1].startswith(b"big"):
            connection.send(b"VALUE %s 0 %d\r\n" % (words[1], BIG_BYTES))
            for _ in range(BIG_BYTES // len(PIECE)):
                connection.send(PIECE)
            connection.send(b"\r\nEND\r\n")
        else:
            connection.send(value_reply(words[1].decode(), b"x") + b"END\r\n")


@pytest.fixture
def proxy(kvferry, fake_backend):
    running = kvferry(pool("main", [fake_backend(serve_big).port], server_connections=2))
    with Wire(running.port()) as client:
        client.ask(b"get warm\r\n", value_reply("warm", b"x") + b"END\r\n")
    running.process.reset_peak_rss()
    running.start_kb = running.process.rss_kb()
    return running


def growth_kb(proxy) -> int:
    return proxy.process.peak_rss_kb() - proxy.start_kb


def read_big(client, key=b"big"):
    client.expect(b"VALUE %s 0 %d\r\n" % (key, BIG_BYTES))
    for _ in range(BIG_BYTES // len(PIECE)):
        assert client.receive(len(PIECE)) == PIECE
    client.expect(b"\r\nEND\r\n")


def test_get(proxy):
    with Wire(proxy.port()) as client:
        client.send(b"get big\r\nget small\r\n")
        read_big(client)
        client.expect(value_reply("small", b"x") + b"END\r\n")
    assert growth_kb(proxy) < GROWTH_KB


def test_get_by_a_slow_reader_holds_only_a_window(proxy):
    with Wire(proxy.port(), receive_buffer=16384) as slow:
        slow.send(b"get big\r\n")
        slow.expect(b"VALUE big 0 %d\r\n" % BIG_BYTES)
        time.sleep(1)
        assert growth_kb(proxy) < GROWTH_KB
        for _ in range(5):
            assert slow.receive(len(PIECE)) == PIECE


def test_set(proxy):
    with Wire(proxy.port()) as client:
        client.send(b"set big 0 0 %d\r\n" % BIG_BYTES)
        for _ in range(BIG_BYTES // len(PIECE)):
            client.send(PIECE)
        client.send(b"\r\nget small\r\n")
        client.expect(b"STORED\r\n" + value_reply("small", b"x") + b"END\r\n")
    assert growth_kb(proxy) < GROWTH_KB


def test_a_client_that_leaves_in_the_middle(proxy):
    """Of a get and of a set; the pool works on, and nothing of the value stays behind."""
    for _ in range(3):
        with Wire(proxy.port()) as client:
            client.send(b"get big\r\n")
            client.receive(10 << 20)
        with Wire(proxy.port()) as client:
            client.send(b"set big 0 0 %d\r\n" % BIG_BYTES + PIECE * 3)
    with Wire(proxy.port(), seconds=15) as client:
        for number in range(10):
            line = client.ask_line(b"get after%d\r\n" % number)
            if line.startswith(b"VALUE"):
                client.expect(b"x\r\nEND\r\n")

        def is_right():
            line = client.ask_line(b"get after\r\n")
            if line.startswith(b"VALUE"):
                client.expect(b"x\r\nEND\r\n")
            return line.startswith(b"VALUE")
        wait_for(is_right, 10, "the pool answers again")
    assert growth_kb(proxy) < GROWTH_KB


def test_small_requests_of_others_do_not_wait_for_a_big_value(memcached, kvferry):
    """On a real server with large items, over connections that the big value does not fill for long."""
    server = memcached("-I", "64m", "-m", "512")
    proxy = kvferry(pool("main", [server.port], server_connections=4))
    value = PIECE * 40
    with Wire(proxy.port(), seconds=20) as big, Wire(proxy.port()) as small:
        big.ask(storage("set", "large", value), b"STORED\r\n")
        small.ask(storage("set", "little", b"x"), b"STORED\r\n")
        reply = value_reply("large", value) + b"END\r\n"
        reader = threading.Thread(target=lambda: [big.ask(b"get large\r\n", reply) for _ in range(4)])
        reader.start()
        slowest = 0.0
        while reader.is_alive():
            started = time.monotonic()
            small.ask(b"get little\r\n", value_reply("little", b"x") + b"END\r\n")
            slowest = max(slowest, time.monotonic() - started)
        reader.join()
        assert slowest < 1.0


def test_memory_comes_back_after_many_large_values(memcached, kvferry, load):
    """100 KB values and ten-key gets of many clients, then idle."""
    servers = [memcached("-m", 256), memcached("-m", 256)]
    proxy = kvferry(pool("main", [each.port for each in servers]))
    options = {"keys": 200, "value_bytes": 100_000, "warmup": 0, "stall": 20}
    filled = load(proxy.port(), op="fill", connections=4, **options).finish()
    assert filled["refused"] == 0
    result = load(proxy.port(), op="mget", connections=300, seconds=3, **options).finish()
    assert result["wrong"] == 0 and result["closed"] == 0 and result["ops"] > 0
    wait_for(lambda: proxy.process.rss_kb() < 32 * 1024, 20, "resident memory is back under 32 MB")
