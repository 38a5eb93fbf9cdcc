"""Transactions over pools of real Redis servers: blocks that stay whole beside other clients, errors found while queueing, databases."""

import hashlib
import threading

import pytest

from support.kvferry import one_worker, pool
from support.redis import ReplyError, RedisWire, request, value_of

TRANSFERS = 300
CLIENTS = 4
ANSWER_SECONDS = 20.0
CROSS_SLOT = "CROSSSLOT Keys in request don't hash to the same slot"


@pytest.fixture
def two(redis_server):
    return [redis_server(), redis_server()]


@pytest.fixture
def port(kvferry, two):
    return kvferry(pool("main", [server.port for server in two], protocol="redis", hash_tag='"{}"')).port()


def apart(port: int, servers):
    """Two keys that are on different servers."""
    keys = {}
    with RedisWire(port) as client:
        for number in range(100):
            # Names that differ everywhere: fnv1a puts those that differ at their end only close together.
            key = hashlib.md5(b"%d" % number).hexdigest()
            client.command("SET", key, "0")
            for index, server in enumerate(servers):
                with server.client() as direct:
                    if direct.value("EXISTS", key) == 1:
                        keys.setdefault(index, key)
            if len(keys) == 2:
                return keys[0], keys[1]
    raise AssertionError("one server has all keys")


def transact(client, *commands):
    """The value of EXEC, all sent at once."""
    client.send(b"".join(request(*words) for words in [("MULTI",), *commands, ("EXEC",)]))
    assert client.receive_reply() == b"+OK\r\n"
    for _ in commands:
        assert client.receive_reply() == b"+QUEUED\r\n"
    return value_of(client.receive_reply())


def test_runs_commands_of_all_kinds(port, redis_wire):
    for version in (2, 3):
        client = redis_wire(port, version=version)
        got = transact(client, ("PING",), ("SET", "{a}1", "x"), ("MGET", "{a}1", "{a}2"), ("DEL", "{a}1", "{a}2"), ("UNWATCH",),
                       ("LPUSH", "{a}3", "x"), ("INCR", "{a}3"), ("DEL", "{a}3"))
        assert got[:6] == [b"PONG", b"OK", [b"x", None], 1, b"OK", 1]
        assert isinstance(got[6], ReplyError) and str(got[6]).startswith("WRONGTYPE"), "an error of a command is one of its replies"
        assert got[7] == 1
        client.expect_in_step()


def test_a_long_transaction_of_large_values(port, redis_wire):
    client = redis_wire(port, seconds=ANSWER_SECONDS)
    value = b"v" * 200_000
    got = transact(client, *[("SET", "{big}%d" % number, value) for number in range(20)], *[("GET", "{big}%d" % number) for number in range(20)])
    assert got == [b"OK"] * 20 + [value] * 20
    assert transact(client, *[("INCR", "count")] * 5000) == list(range(1, 5001))
    client.expect_in_step()


def test_keys_of_two_servers_are_refused(port, two, redis_wire):
    first, second = apart(port, two)
    client = redis_wire(port)
    assert client.command("MULTI") == b"+OK\r\n"
    assert client.command("SET", first, "1") == b"+QUEUED\r\n"
    assert str(client.value("SET", second, "1")) == CROSS_SLOT
    assert client.command("SET", first, "2") == b"+QUEUED\r\n"
    assert client.command("EXEC") == b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    assert client.value("GET", first) == b"0"
    client.expect_in_step()


def test_tells_why_a_server_refused_to_queue(kvferry, redis_server, redis_wire):
    server = redis_server("--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
    port = kvferry(pool("main", [server.port], protocol="redis")).port()
    client = redis_wire(port)
    with server.client() as direct:
        direct.command("CONFIG", "SET", "maxmemory", "1")
    client.send(request("MULTI") + request("SET", "k", "v") + request("EXEC"))
    assert client.receive_reply() == b"+OK\r\n"
    assert client.receive_reply() == b"+QUEUED\r\n"
    assert client.receive_reply().startswith(b"-EXECABORT Transaction discarded because of: OOM command not allowed")
    client.expect_in_step()


def test_select_inside_leaves_other_clients_where_they_are(kvferry, redis_server, redis_wire):
    server = redis_server()
    port = kvferry(one_worker(pool("main", [server.port], protocol="redis"))).port()
    one, other = redis_wire(port), redis_wire(port)
    assert transact(one, ("SET", "k", "zero"), ("SELECT", "3"), ("SET", "k", "three")) == [b"OK"] * 3
    assert one.value("GET", "k") == b"three", "the client is in the database that it chose"
    assert other.value("GET", "k") == b"zero", "the shared connection is back in its own"
    with server.client() as direct:
        assert direct.value("GET", "k") == b"zero"


def test_blocks_stay_whole_beside_other_clients(port, redis_wire):
    """Two counters that only transactions change never differ for who reads both in one."""
    wrong = []

    def work(number: int):
        with RedisWire(port, seconds=ANSWER_SECONDS) as client:
            for _ in range(TRANSFERS):
                got = transact(client, ("INCR", "{t}a"), ("INCRBY", "{t}noise%d" % number, "3"), ("INCR", "{t}b"), ("MGET", "{t}a", "{t}b"))
                if got[3][0] != got[3][1] or got[0] != got[2]:
                    wrong.append(got)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert redis_wire(port).value("GET", "{t}a") == b"%d" % (CLIENTS * TRANSFERS)


def test_a_server_that_dies_fails_the_transaction(kvferry, redis_server, redis_wire):
    server = redis_server()
    port = kvferry(pool("main", [server.port], protocol="redis", timeout=20000)).port()
    client = redis_wire(port)
    assert client.command("SET", "k", "1") == b"+OK\r\n"
    server.freeze()
    client.send(request("MULTI") + request("SET", "k", "2") + request("EXEC"))
    assert client.receive_reply() == b"+OK\r\n"
    assert client.receive_reply() == b"+QUEUED\r\n"
    server.kill()
    assert client.receive_reply().startswith(b"-UNAVAIL kvferry: connection lost after the command was sent; it may have run")
    server.start()
    client.expect_in_step()
