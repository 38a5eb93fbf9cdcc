"""Pools of Redis servers: keys lie where a running nutcracker puts them, commands of several keys are split and merged, logins, databases,
servers that die under load, big values and long pipelines."""

import os
import random
import threading
import time

import pytest

from support.kvferry import pool
from support.nutcracker import Nutcracker
from support.ports import free_port
from support.process import wait_for
from support.redis import ReplyError, RedisWire, bulk, request, value_of

KEY_COUNT = 2000
KEY_BYTES_MAX = 60
PIPELINE = 10_000
BIG_BYTES = 20 << 20
ANSWER_SECONDS = 20.0


def redis_pool(servers, name: str = "main", **keys) -> str:
    """Our own dialect; a twemproxy file is made by twemproxy_pool()."""
    return pool(name, [server.port for server in servers], protocol="redis", **keys)


def twemproxy_pool(entries, **keys) -> str:
    """The text of one pool as twemproxy reads it, which knows no port 0."""
    lines = ["main:", "  listen: 127.0.0.1:%d" % free_port(), "  redis: true"]
    lines += ["  %s: %s" % each for each in keys.items()]
    return "\n".join(lines + ["  servers:"] + ["   - %s" % entry for entry in entries]) + "\n"


def keys_on(server, *login):
    """Every key of a server, past the proxy."""
    with server.client(*login) as direct:
        return set(direct.value("KEYS", "*"))


@pytest.fixture
def two(redis_server):
    return [redis_server(), redis_server()]


@pytest.fixture
def port(kvferry, two):
    return kvferry(redis_pool(two)).port()


# Placement.

LISTS = {
    "ketama": dict(hash="fnv1a_64", distribution="ketama", count=2, weights=(1, 1), names=False),
    "modula with weights, names and tags": dict(hash="murmur", distribution="modula", count=3, weights=(1, 3, 2), names=True, hash_tag='"{}"'),
}


def make_key(chosen) -> bytes:
    """Any bytes: keys of Redis may have blanks and line ends."""
    key = bytes(chosen.randrange(256) for _ in range(chosen.randrange(1, KEY_BYTES_MAX)))
    return chosen.choice([key, b"{" + key[:5] + b"}" + key, b"user:%d" % chosen.randrange(10_000), b"{}" + key])


def set_all(port: int, keys):
    with RedisWire(port, seconds=ANSWER_SECONDS) as client:
        for begin in range(0, len(keys), 500):
            part = keys[begin:begin + 500]
            client.send(b"".join(request("SET", key, "v") for key in part))
            client.expect(b"+OK\r\n" * len(part))


@pytest.mark.parametrize("name", LISTS)
def test_places_keys_as_nutcracker(kvferry, redis_server, tmp_path, cleanup, name):
    seed = int(os.environ.get("KVFERRY_SEED") or int.from_bytes(os.urandom(4), "little"))
    print("KVFERRY_SEED=%d" % seed)
    made = LISTS[name]
    servers = [redis_server() for _ in range(made["count"])]
    entries = ["%s:%d%s" % (server.address, weight, " n%d" % index if made["names"] else "")
               for index, (server, weight) in enumerate(zip(servers, made["weights"]))]
    options = {key: made[key] for key in ("hash", "distribution", "hash_tag") if key in made}
    proxy = kvferry(twemproxy_pool(entries, timeout=10000, **options))
    peer = Nutcracker(tmp_path, [server.port for server in servers], entries=entries, redis=True, **options)
    cleanup.add(peer.stop)
    chosen = random.Random(seed)
    keys = list({make_key(chosen) for _ in range(KEY_COUNT * 2)})[:KEY_COUNT]
    set_all(peer.port, keys)
    theirs = [keys_on(server) for server in servers]
    for server in servers:
        server.client().ask(request("FLUSHALL"), b"+OK\r\n")
    set_all(proxy.port(), keys)
    ours = [keys_on(server) for server in servers]
    assert ours == theirs, "KVFERRY_SEED=%d, keys differ: %r" % (seed, [list(a ^ b)[:5] for a, b in zip(ours, theirs)])
    # Against a comparison that sees one server only and so proves nothing.
    assert sum(map(len, ours)) == len(keys) and all(ours)


# Commands of several keys.

# What differs stands in front: fnv1a_64 spreads keys badly that differ at their ends alone.
NAMES = ["%d:key" % (number * 7919 % 100_000) for number in range(100)]


@pytest.mark.parametrize("version", [2, 3])
def test_split_commands(port, two, redis_wire, version):
    client = redis_wire(port, version=version)
    null = None
    assert client.value("MSET", *(word for name in NAMES for word in (name, "v" + name))) == b"OK"
    parts = [keys_on(server) for server in two]
    assert all(len(part) > 10 for part in parts) and sum(map(len, parts)) == len(NAMES)
    assert client.value("MGET", *NAMES, "none", NAMES[0]) == [b"v" + name.encode() for name in NAMES] + [null, b"v" + NAMES[0].encode()]
    assert client.command("MGET", "none", "nothing", "no")[-3:] == (b"_\r\n" if version == 3 else b"-1\r\n")[-3:]
    assert client.value("EXISTS", *NAMES, "none", NAMES[0]) == 101
    assert client.value("TOUCH", *NAMES, "none") == 100
    assert client.value("DEL", *NAMES[:40], "none") == 40
    assert client.value("UNLINK", *NAMES[:60]) == 20
    assert client.value("EXISTS", *NAMES) == 40
    assert sum(len(keys_on(server)) for server in two) == 40
    client.expect_in_step()


def test_split_commands_with_wrong_counts_and_types(port, two, redis_wire):
    client, direct = redis_wire(port), two[0].client()
    for words in (["MGET"], ["MSET"], ["MSET", "a"], ["MSET", "a", "1", "b"], ["DEL"], ["EXISTS"], ["TOUCH"], ["UNLINK"]):
        assert client.command(*words) == direct.command(*words), words
    for name in NAMES[:20]:
        assert client.value("LPUSH", name, "x") == 1
    # A key of another type is a null of MGET, as on one server.
    assert client.value("MGET", *NAMES[:20]) == [None] * 20
    client.expect_in_step()


def test_commands_of_several_keys_that_cannot_be_split(port, two, redis_wire):
    client = redis_wire(port)
    for name in NAMES:
        client.value("SADD", name, name, "common")
    first, other = (sorted(keys_on(server))[:2] for server in two)
    assert set(client.value("SUNION", *first)) == {*first, b"common"}
    assert client.command("SUNION", first[0], other[0]).startswith(b"-CROSSSLOT ")
    assert client.command("RENAME", first[0], other[0]).startswith(b"-CROSSSLOT ")
    assert client.value("RENAME", first[0], first[1]) == b"OK"
    client.expect_in_step()


def test_commands_for_all_servers(port, two, redis_wire):
    client = redis_wire(port)
    client.value("MSET", *(word for name in NAMES for word in (name, "x")))
    assert client.value("DBSIZE") == 100
    assert set(client.value("KEYS", "*:key")) == {name.encode() for name in NAMES}
    found, cursor = [], b"0"
    while True:
        cursor, page = client.value("SCAN", cursor, "COUNT", 7)
        found += page
        if cursor == b"0":
            break
    assert sorted(found) == sorted(name.encode() for name in NAMES)
    assert client.value("FLUSHALL") == b"OK"
    assert client.value("DBSIZE") == 0 and all(keys_on(server) == set() for server in two)


def test_hash_tag(kvferry, two, redis_wire):
    client = redis_wire(kvferry(redis_pool(two, hash_tag='"{}"')).port())
    names = ["{%s}:%s" % (tag, part) for tag in NAMES[:30] for part in "abc"]
    client.value("MSET", *(word for name in names for word in (name, "x")))
    parts = [keys_on(server) for server in two]
    assert all(parts)
    for tag in NAMES[:30]:
        mine = [("{%s}:%s" % (tag, part)).encode() for part in "abc"]
        assert any(set(mine) <= part for part in parts)
        assert client.value("RENAME", mine[0], mine[1]) == b"OK"
    client.expect_in_step()


# Logins and databases.

def test_redis_auth(kvferry, redis_server, redis_wire):
    servers = [redis_server("--requirepass", "secret") for _ in range(2)]
    port = kvferry(twemproxy_pool([server.address + ":1" for server in servers], redis_auth="secret")).port()
    direct = servers[0].client()
    client = redis_wire(port)
    for words in (["GET", "a"], ["MGET", "a", "b"], ["AUTH", "wrong"], ["AUTH", "default", "wrong"], ["AUTH", "nobody", "secret"],
                  ["AUTH", "a", "b", "c"], ["AUTH"], ["HELLO", "3"], ["PING"]):
        assert client.command(*words) == direct.command(*words), words
    # A server says what is wrong with a command before it asks who sent it; a proxy tells strangers nothing.
    for words in (["NOTHING"], ["GET"]):
        assert direct.command(*words).startswith(b"-ERR ") and client.command(*words).startswith(b"-NOAUTH ")
    assert client.value("AUTH", "secret") == b"OK"
    assert client.value("MSET", *(word for name in NAMES for word in (name, "x"))) == b"OK"
    assert all(keys_on(server, "secret") for server in servers)
    other = redis_wire(port)
    assert other.command("HELLO", 3, "AUTH", "default", "secret")[:1] == b"%"
    assert other.value("EXISTS", *NAMES) == 100


def test_servers_with_another_password(kvferry, redis_server, redis_wire):
    server = redis_server("--requirepass", "other")
    client = redis_wire(kvferry(redis_pool([server], redis_auth="secret")).port(), "secret")
    error = client.value("GET", "a")
    assert isinstance(error, ReplyError) and "credentials rejected" in str(error), error
    client.expect_in_step()


def test_redis_db(kvferry, two, redis_wire):
    client = redis_wire(kvferry(twemproxy_pool([server.address + ":1" for server in two], redis_db=5)).port())
    client.value("MSET", *(word for name in NAMES for word in (name, "x")))
    for server in two:
        with server.client() as direct:
            assert direct.value("DBSIZE") == 0
            assert direct.value("SELECT", 5) == b"OK" and direct.value("DBSIZE") > 10
    assert client.value("SELECT", 0) == b"OK"
    assert client.command("SELECT", 1) == b"-ERR DB index is out of range\r\n"


def test_clients_choose_databases(kvferry, two, redis_wire):
    port = kvferry(redis_pool(two, databases=4)).port()
    client, other = redis_wire(port), redis_wire(port)
    client.send(b"".join(request("SELECT", number) + request("SET", "k", "in %d" % number) for number in (0, 3, 1)))
    client.expect(b"+OK\r\n" * 6)
    client.send(b"".join(request("SELECT", number) + request("GET", "k") for number in (3, 2, 1, 0)))
    client.expect(b"+OK\r\n" + bulk(b"in 3") + b"+OK\r\n$-1\r\n" + b"+OK\r\n" + bulk(b"in 1") + b"+OK\r\n" + bulk(b"in 0"))
    assert other.value("GET", "k") == b"in 0"
    assert client.command("SELECT", 4) == b"-ERR DB index is out of range\r\n"


def test_both_versions_side_by_side(port, redis_wire):
    old, new = redis_wire(port), redis_wire(port, version=3)
    assert new.value("HSET", "h", "a", "1", "b", "2") == 2
    assert old.command("HGETALL", "h") == b"*4\r\n" + bulk(b"a") + bulk(b"1") + bulk(b"b") + bulk(b"2")
    assert new.command("HGETALL", "h") == b"%2\r\n" + bulk(b"a") + bulk(b"1") + bulk(b"b") + bulk(b"2")
    assert old.command("GET", "none") == b"$-1\r\n" and new.command("GET", "none") == b"_\r\n"
    # A change of the version in the middle of a pipeline.
    old.send(request("GET", "none") + request("HELLO", 3) + request("GET", "none") + request("HELLO", 2) + request("GET", "none"))
    assert [old.receive_reply()[:1] for _ in range(5)] == [b"$", b"%", b"_", b"*", b"$"]
    assert new.value("ZADD", "z", "1.5", "m") == 1
    assert new.command("ZSCORE", "z", "m") == b",1.5\r\n" and old.command("ZSCORE", "z", "m") == bulk(b"1.5")


# Servers that die.

class Traffic(threading.Thread):
    """Sets and gets of its own keys in pipelines, until told to end. Every reply is checked: it is the right one, or an error."""

    DEPTH = 40

    def __init__(self, port: int, number: int):
        super().__init__(daemon=True)
        self._client = RedisWire(port, seconds=ANSWER_SECONDS)
        self._keys = [b"%d:%d" % (index * 7919 % 100_000, number) for index in range(200)]
        self._chosen = random.Random(number)
        self.is_ending = False
        self.wrong, self.errors, self.good = [], {}, 0  # Errors: key to number.
        self.texts = set()

    def run(self):
        try:
            count = 0
            while not self.is_ending:
                count += 1
                self._round(count)
            self._client.expect_in_step()
        except Exception as failure:  # pylint: disable=broad-except
            self.wrong.append(repr(failure))
        finally:
            self._client.close()

    def _round(self, count: int):
        keys = [self._chosen.choice(self._keys) for _ in range(self.DEPTH)]
        # The value names the key: a shifted reply shows.
        self._client.send(b"".join(request("SET", key, key + b"=%d" % count) + request("GET", key) for key in keys))
        for key in keys:
            self._take(key, self._client.receive_reply(), (b"+OK\r\n",))
            self._take(key, self._client.receive_reply(), (bulk(key + b"=%d" % count),))

    def _take(self, key: bytes, reply: bytes, good):
        if reply in good:
            self.good += 1
        elif reply.startswith(b"-"):
            self.errors[key] = self.errors.get(key, 0) + 1
            self.texts.add(reply)
        # A server that has come back empty has not what a SET that failed was to set; nor has one where the SET was refused.
        elif not (reply == b"$-1\r\n" or reply.partition(b"\r\n")[2].startswith(key + b"=")):
            self.wrong.append("%r got %r" % (key, reply))


def test_a_server_dies_and_comes_back_under_load(kvferry, two, redis_wire):
    proxy = kvferry(redis_pool(two, timeout=1000, auto_eject_hosts=False, backoff_max="200ms"))
    clients = [Traffic(proxy.port(), number) for number in range(8)]
    for client in clients:
        client.start()
    try:
        wait_for(lambda: all(client.good > 2000 for client in clients), 10, "traffic flows")
        for _ in range(3):
            before = keys_on(two[1])
            two[0].kill()
            time.sleep(0.3)
            two[0].start()
            wait_for(lambda: len(keys_on(two[0])) > 100, 10, "its keys are served again")
            assert len(before) > 100
        marks = [client.good for client in clients]
        wait_for(lambda: all(client.good > mark + 1000 for client, mark in zip(clients, marks)), 10, "traffic flows again")
    finally:
        for client in clients:
            client.is_ending = True
        for client in clients:
            client.join(ANSWER_SECONDS)
    assert not any(client.wrong for client in clients), [client.wrong[:3] for client in clients]
    survivors = keys_on(two[1])
    errors = {key for client in clients for key in client.errors}
    assert errors, "the kill was not seen: this proves nothing"
    assert not errors & survivors, "errors for keys of the server that lived: %r" % list(errors & survivors)[:5]
    texts = {text for client in clients for text in client.texts}
    assert all(text.startswith((b"-UNAVAIL kvferry: ", b"-TIMEOUT kvferry: ")) for text in texts), texts


def test_a_frozen_server_costs_its_keys_the_timeout(kvferry, two, redis_wire):
    client = redis_wire(kvferry(redis_pool(two, timeout=300, auto_eject_hosts=False)).port())
    client.value("MSET", *(word for name in NAMES for word in (name, "v" + name)))
    lost = keys_on(two[0])
    two[0].freeze()
    client.send(b"".join(request("GET", name) for name in NAMES))
    for name in NAMES:
        value = value_of(client.receive_reply())
        if name.encode() in lost:
            assert isinstance(value, ReplyError) and str(value).startswith("TIMEOUT kvferry: "), value
        else:
            assert value == b"v" + name.encode()
    two[0].thaw()
    wait_for(lambda: client.value("MGET", *NAMES) == [b"v" + name.encode() for name in NAMES], 10, "it is back")
    client.expect_in_step()


def test_mget_of_which_a_part_fails(kvferry, two, redis_wire):
    config = {style: kvferry(redis_pool(two, on_partial=style, timeout=1000)) for style in ("error", "element", "null")}
    with redis_wire(config["error"].port()) as client:
        client.value("MSET", *(word for name in NAMES for word in (name, "x")))
    lost = keys_on(two[0])
    two[0].kill()
    asked = {style: redis_wire(proxy.port()).value("MGET", *NAMES) for style, proxy in config.items()}
    assert isinstance(asked["error"], ReplyError)
    for name, element, null in zip(NAMES, asked["element"], asked["null"]):
        if name.encode() in lost:
            assert isinstance(element, ReplyError) and null is None
        else:
            assert element == null == b"x"


# Size.

@pytest.mark.parametrize("version", [2, 3])
def test_a_big_value(port, redis_wire, version):
    client = redis_wire(port, version=version, seconds=ANSWER_SECONDS)
    big = random.Random(1).randbytes(BIG_BYTES)
    # Requests around it in one pipeline stay in order.
    client.send(request("SET", "small", "1") + request("SET", "big", big) + request("STRLEN", "big") + request("GET", "small"))
    client.expect(b"+OK\r\n+OK\r\n:%d\r\n" % BIG_BYTES + bulk(b"1"))
    client.send(request("GET", "small") + request("GET", "big") + request("GET", "small"))
    client.expect(bulk(b"1"))
    assert client.receive_reply() == bulk(big)
    client.expect(bulk(b"1"))
    client.ask(request("APPEND", "big", big[:100_000]), b":%d\r\n" % (BIG_BYTES + 100_000))
    client.ask(request("HSET", "h", "field", big[:1 << 20]), b":1\r\n")
    assert client.command("HGET", "h", "field") == bulk(big[:1 << 20])
    client.expect_in_step()


def test_big_values_in_split_commands(port, redis_wire):
    client = redis_wire(port, seconds=ANSWER_SECONDS)
    words = [word for number in range(20) for word in ("m%d" % number, bytes([number]) * 40_000)]
    client.ask(request("MSET", *words), b"+OK\r\n")
    assert client.value("MGET", *words[::2]) == words[1::2]
    client.expect_in_step()


def test_ten_thousand_requests_in_one_pipeline(port, redis_wire):
    client = redis_wire(port, seconds=ANSWER_SECONDS)
    sender = threading.Thread(target=client.send, daemon=True, args=(
        b"".join(request("SET", "p%d" % number, number) + request("GET", "p%d" % number) for number in range(PIPELINE // 2)),))
    sender.start()
    for number in range(PIPELINE // 2):
        assert client.receive_line() == b"+OK\r\n"
        data = b"%d" % number
        client.expect(bulk(data))
    sender.join()
    client.expect_in_step()


