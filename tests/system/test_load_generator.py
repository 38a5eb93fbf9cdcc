"""The load generator sees what it is there to see: shifted, damaged and missing replies."""

import threading

import pytest

from support.fake_backend import FakeBackend
from support.load import Load, run_load, assert_clean
from support.memcached import Memcached


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    server = Memcached(tmp_path_factory.mktemp("plain"))
    run_load(server.port, op="fill", keys=1000)
    yield server
    server.stop()


def value_of(key: bytes) -> bytes:
    """As the load generator makes it, for values of 100 bytes."""
    number = int(key[-8:])
    return key[-8:] + bytes(ord("a") + (number + place) % 26 for place in range(8, 92)) + key[-8:]


def honest(keys):
    hits = (b"VALUE %s %d 100\r\n%s\r\n" % (key, int(key[-8:]) % 1000, value_of(key)) for key in keys)
    return b"".join(hits) + b"END\r\n"


def run_against(answer, **options):
    """Load on a server that answers each get with answer(keys, how many gets it has seen)."""
    count = 0
    lock = threading.Lock()

    def serve(connection):
        nonlocal count
        while True:
            keys = connection.read_request().split()[1:]
            with lock:
                count += 1
                number = count
            connection.send(answer(keys, number))

    backend = FakeBackend(serve)
    try:
        given = {"op": "get", "connections": 2, "requests": 200, "seconds": 10, "warmup": 0, "verify": True, "reconnect": True}
        given.update(options)
        return Load(backend.port, **given).finish()
    finally:
        backend.stop()


@pytest.mark.parametrize("op", ["get", "set", "mix", "mget"])
@pytest.mark.parametrize("depth", [1, 16])
def test_clean_on_memcached(plain, op, depth):
    result = run_load(plain.port, op=op, keys=1000, depth=depth, connections=10, seconds=0.2, warmup=0, verify=True)
    assert_clean(result)
    assert result["misses"] == 0
    if op == "mget":
        assert result["hits"] == 10 * result["ops"]


def test_clean_on_an_honest_server():
    result = run_against(lambda keys, number: honest(keys))
    assert_clean(result)
    assert result["ops"] == 200 and result["hits"] == 200


def other(key: bytes) -> bytes:
    """A key that is not `key`: its last digit is another one."""
    return key[:-1] + bytes([key[-1] ^ 1])


LIES = {
    "reply of another request": lambda keys: honest([other(keys[0])]),
    "value of another key": lambda keys: honest(keys).replace(value_of(keys[0]), value_of(other(keys[0]))),
    "flags": lambda keys: honest(keys).replace(b"VALUE %s " % keys[0], b"VALUE %s 1" % keys[0]),
    "one damaged byte": lambda keys: honest(keys).replace(value_of(keys[0])[40:60], value_of(keys[0])[40:59] + b"#"),
    "short value": lambda keys: honest(keys).replace(b" 100\r\n" + value_of(keys[0]), b" 99\r\n" + value_of(keys[0])[:99]),
    "wrong length": lambda keys: honest(keys).replace(b" 100\r\n", b" 98\r\n"),
    "answer to a set": lambda keys: b"STORED\r\n",
    "twice": lambda keys: honest(keys) * 2,
    "two hits": lambda keys: honest(keys * 2),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lie_is_counted_as_wrong(lie):
    result = run_against(lambda keys, number: lie(keys) if number % 50 == 49 else honest(keys))
    assert result["wrong"] > 0, result


def test_errors_are_counted_by_text_and_key():
    def answer(keys, number):
        return b"SERVER_ERROR number %d\r\n" % (number % 2) if number % 10 == 0 or number % 10 == 5 else honest(keys)

    result = run_against(answer, error_keys=True, timeline=0.1)
    assert result["wrong"] == 0
    assert result["refused"] == 40 and result["refusals"] == {"SERVER_ERROR number 0": 20, "SERVER_ERROR number 1": 20}
    assert 0 < len(result["error_keys"]) <= 40
    assert sum(bad for _, bad in result["timeline"]) == 40


def test_closed_connections_are_counted():
    def serve(connection):
        for _ in range(10):
            connection.send(honest(connection.read_request().split()[1:]))
        connection.read_request()

    backend = FakeBackend(serve)
    try:
        result = Load(backend.port, op="get", connections=1, seconds=1, warmup=0, verify=True, reconnect=True).finish()
    finally:
        backend.stop()
    assert result["closed"] > 2 and result["lost"] == result["closed"] and result["wrong"] == 0


def test_a_silent_server_ends_the_run():
    def serve(connection):
        while True:
            connection.read_request()

    backend = FakeBackend(serve)
    running = Load(backend.port, op="get", connections=1, seconds=5, stall=0.3)
    with pytest.raises(AssertionError, match="ended with 4"):
        running.finish()
    backend.stop()
