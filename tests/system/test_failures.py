"""Backends that freeze, die and come back, under load: nobody gets a wrong reply, and only their keys suffer."""

import time

import pymemcache
import pytest

from support.kvferry import pool
from support.load import assert_clean, run_load
from support.process import IS_SANITIZED, wait_for
from support.wire import Wire, storage

TIMEOUT_MS = 200
RETRY_MS = 500
KEYS = 2000

TIMES = {"timeout": TIMEOUT_MS, "server_retry_timeout": RETRY_MS, "server_failure_limit": 2}


def keys_of(server, keys):
    """Which of `keys` lie on a backend, by asking it."""
    found = set()
    with Wire(server.port) as direct:
        for start in range(0, len(keys), 100):
            direct.send(("get %s\r\n" % " ".join(keys[start:start + 100])).encode())
            while True:
                line = direct.receive_line()
                if line == b"END\r\n":
                    break
                found.add(line.split()[1].decode())
                direct.receive(int(line.split()[3]) + 2)
    return found


def fill(port):
    assert_clean(run_load(port, op="fill", keys=KEYS, connections=4, depth=8))


def all_keys():
    return ["kvload:" + ":" * 17 + "%08d" % number for number in range(KEYS)]


def assert_only_errors(result):
    """Errors are allowed; wrong replies and lost connections are not."""
    for name in ("wrong", "closed", "lost", "unanswered", "connect_failures"):
        assert result[name] == 0, result
    for text in result["refusals"]:
        assert text.startswith("SERVER_ERROR "), result["refusals"]


def shape_of(result) -> str:
    """Good and bad answers of each tenth of a second, for people."""
    return " ".join("%d/%d" % (good, bad) for good, bad in result["timeline"]) + " " + str(result["refusals"])


@pytest.fixture
def pair(memcached, kvferry):
    """Two backends behind a pool that keeps the keys of a dead one."""
    servers = [memcached(), memcached()]
    proxy = kvferry(pool("main", [each.port for each in servers], auto_eject_hosts=False, **TIMES))
    fill(proxy.port())
    return proxy, servers


def run_through_failures(proxy, server, load, **options):
    """Load while `server` freezes, thaws, dies and restarts; the result, and when it was back.

    It goes on for longer than the longest pause between two attempts to connect (backoff_max, 5 s), so its end is quiet.
    """
    running = load(proxy.port(), keys=KEYS, connections=20, seconds=18 if IS_SANITIZED else 12, warmup=0, verify=True,
                   error_keys=True, timeline=0.1, stall=4, **options)
    started = time.monotonic()
    time.sleep(0.5)
    server.freeze()
    time.sleep(1.2)
    server.thaw()
    time.sleep(0.8)
    server.kill()
    time.sleep(1.0)
    server.restart()
    return running.finish(), time.monotonic() - started


@pytest.mark.parametrize("op, depth", [("mix", 1), ("get", 16), ("set", 4)])
def test_errors_only_for_keys_of_the_dead_backend(pair, load, op, depth):
    proxy, servers = pair
    dead_keys = keys_of(servers[0], all_keys())
    assert 0 < len(dead_keys) < KEYS
    result, _ = run_through_failures(proxy, servers[0], load, op=op, depth=depth)
    assert_only_errors(result)
    assert result["refused"] > 0, "the failure was not felt at all; the test tests nothing"
    assert set(result["error_keys"]) <= dead_keys
    tail = result["timeline"][-15:]
    assert sum(good for good, _ in tail) > 0 and sum(bad for _, bad in tail) == 0, shape_of(result)


def test_multi_key_gets_stay_right_while_a_backend_fails(pair, load):
    proxy, servers = pair
    result, _ = run_through_failures(proxy, servers[0], load, op="mget", depth=8)
    assert_only_errors(result)
    assert result["refused"] > 0
    tail = result["timeline"][-15:]
    assert sum(bad for _, bad in tail) == 0, shape_of(result)


def spread_key(number: int) -> str:
    """Keys that differ in their last bytes only hash alike, and might all belong to one server."""
    return "%d-back-%d" % (number * number * 7919, number * 104729)


def test_ejection_moves_the_keys_and_errors_end(memcached, kvferry, load):
    servers = [memcached(), memcached()]
    proxy = kvferry(pool("main", [each.port for each in servers], auto_eject_hosts=True, **TIMES))
    fill(proxy.port())
    running = load(proxy.port(), keys=KEYS, connections=20, seconds=4, warmup=0, verify=True, op="mix", timeline=0.1, stall=4)
    time.sleep(0.5)
    servers[0].kill()
    result = running.finish()
    assert_only_errors(result)
    # A few errors until the failure limit is reached on each worker, then none, probes of the dead server included.
    bad = [bad for _, bad in result["timeline"]]
    assert sum(bad[15:]) == 0, bad
    assert result["misses"] > 0, "keys of the dead server were not looked for on the other"
    servers[0].start()

    def is_back():
        with Wire(proxy.port()) as client:
            for number in range(50):
                client.ask(storage("set", spread_key(number), b"x"), b"STORED\r\n")
        return keys_of(servers[0], [spread_key(number) for number in range(50)])
    wait_for(is_back, 2 * RETRY_MS / 1000 + 2, "keys reach the restarted server again")


def test_a_frozen_backend_times_out_and_others_do_not_wait(pair):
    proxy, servers = pair
    keys = all_keys()
    frozen_keys = keys_of(servers[0], keys)
    frozen = next(iter(frozen_keys))
    healthy = next(key for key in keys if key not in frozen_keys)
    servers[0].freeze()
    with Wire(proxy.port()) as waiting, Wire(proxy.port()) as other:
        waiting.send(("get %s\r\nget %s\r\n" % (frozen, healthy)).encode())
        started = time.monotonic()
        for _ in range(20):
            other.send(("get %s\r\n" % healthy).encode())
            assert other.receive_line().startswith(b"VALUE ")
            other.receive(100 + 2 + 5)
        assert time.monotonic() - started < TIMEOUT_MS / 2000, "a frozen backend held up another client"
        assert waiting.receive_line().startswith(b"SERVER_ERROR ")
        assert time.monotonic() - started < 2.5 * TIMEOUT_MS / 1000
        assert waiting.receive_line().startswith(b"VALUE ")
    servers[0].thaw()


def test_replies_that_arrive_after_the_timeout_reach_nobody(pair):
    """The frozen server answers everything once thawed; those answers are late."""
    proxy, servers = pair
    frozen_keys = sorted(keys_of(servers[0], all_keys()))[:50]
    with Wire(proxy.port()) as client:
        for _ in range(3):
            servers[0].freeze()
            client.send("".join("get %s\r\n" % key for key in frozen_keys).encode())
            for _ in frozen_keys:
                assert client.receive_line().startswith(b"SERVER_ERROR ")
            servers[0].thaw()

            def healthy():
                line = client.ask_line(("get %s\r\n" % frozen_keys[0]).encode())
                if line.startswith(b"VALUE"):
                    client.receive(100 + 2 + 5)
                return line.startswith(("VALUE " + frozen_keys[0]).encode())
            wait_for(healthy, 3, "the thawed server answers")
            for key in frozen_keys:
                assert client.ask_line(("get %s\r\n" % key).encode()).startswith(("VALUE %s " % key).encode())
                client.receive(100 + 2 + 5)
            client.expect_in_step()


def test_a_real_client_sees_errors_for_dead_keys_only(pair):
    proxy, servers = pair
    keys = all_keys()
    dead_keys = keys_of(servers[1], keys)
    client = pymemcache.Client(("127.0.0.1", proxy.port()), timeout=5, default_noreply=False)
    servers[1].kill()
    failed = set()
    keys = sorted(keys, key=lambda key: key in dead_keys, reverse=True)  # The first ones are the dead server's.
    for key in keys[:300]:
        try:
            assert client.set(key, b"again")
        except pymemcache.exceptions.MemcacheServerError:
            failed.add(key)
    assert failed == dead_keys & set(keys[:300])
    servers[1].restart()
    wait_for(lambda: _sets(client, next(iter(failed))), RETRY_MS / 1000 + 2, "the restarted server is used")
    for key in keys[:300]:
        assert client.set(key, b"once more")
    assert client.get(keys[0]) == b"once more"
    client.close()


def _sets(client, key) -> bool:
    try:
        return client.set(key, b"probe")
    except pymemcache.exceptions.MemcacheServerError:
        return False


def test_all_backends_down_at_start(memcached, kvferry):
    """The program starts, answers errors at once, and serves when they come."""
    servers = [memcached(), memcached()]
    for each in servers:
        each.kill()
    proxy = kvferry(pool("main", [each.port for each in servers], preconnect=True, **TIMES))
    with Wire(proxy.port()) as client:
        for number in range(20):
            assert client.ask_line(b"get k%d\r\n" % number).startswith(b"SERVER_ERROR ")
        for each in servers:
            each.start()

        def stores_all():
            replies = [client.ask_line(storage("set", "k%d" % number, b"x")) for number in range(20)]
            return all(reply == b"STORED\r\n" for reply in replies)
        wait_for(stores_all, RETRY_MS / 1000 + 3, "the servers that came up are used")


def test_reconnecting_to_a_dead_backend_does_not_storm(memcached, kvferry):
    """Processor time stays low while clients insist on a server that refuses connections."""
    server = memcached()
    proxy = kvferry(pool("main", [server.port], **TIMES))
    server.kill()
    with Wire(proxy.port()) as client:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert client.ask_line(b"get k\r\n").startswith(b"SERVER_ERROR ")
            time.sleep(0.01)
    before = proxy.process.cpu_seconds()
    time.sleep(1)
    assert proxy.process.cpu_seconds() - before < 0.1, "busy although nothing is to be done"
