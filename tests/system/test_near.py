"""Near caches and coalescing routes, from YAML and from the route library, between real clients and real servers."""

import threading
import time
import urllib.request
from pathlib import Path

import pytest
from support.load import assert_clean
from support.ports import free_port
from support.wire import Wire, storage, value_reply
from test_routes import config, reload_and_wait

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "near_cache.yml"
NEAR = "default: {nearcache: {child: a, ttl: %s}}"
BOTH = "default: {nearcache: {child: {coalesce: {child: a}}, ttl: %s}}"
COALESCE = "default: {coalesce: {child: a}}"
# Beyond the time to live: a turn of the loop, and a machine that is busy with other things.
SLACK_SECONDS = 0.25
LOAD = {"connections": 20, "depth": 4, "warmup": 0, "verify": True, "keys": 200}


def route_counts(port: int) -> dict:
    with Wire(port) as client:
        client.send(b"stats routes\r\n")
        lines = iter(client.receive_line, b"END\r\n")
        return {name.decode(): int(count) for _, name, count in (line.split() for line in lines)}


def value_of(client: Wire, key: str) -> bytes:
    """The value, or what else the answer begins with."""
    line = client.ask_line(b"get %s\r\n" % key.encode())
    if not line.startswith(b"VALUE"):
        return line.strip()
    value = client.receive(int(line.split()[3]) + 2)[:-2]
    client.expect(b"END\r\n")
    return value


class Slow:
    """A server that answers a get when it is told to."""

    def __init__(self):
        self.go = threading.Event()
        self.gets = 0

    def serve(self, connection):
        while True:
            request = connection.read_request()
            if request.startswith(b"get"):
                self.gets += 1
                self.go.wait(10)
                connection.send(value_reply(request.split()[1].decode(), b"slow") + b"END\r\n")
            else:
                connection.send(b"STORED\r\n")


def test_nothing_is_served_that_is_older_than_the_time_to_live(kvferry, memcached, wire):
    """A writer goes past the route, so that only time makes copies go."""
    ttl = 0.2
    server = memcached()
    proxy = kvferry(config(NEAR % "200ms", a=[server.port]))
    direct, stop, replaced = wire(server.port), threading.Event(), {}
    direct.ask(storage("set", "k", b"0"), b"STORED\r\n")

    def write():
        number = 0
        while not stop.is_set():
            direct.ask(storage("set", "k", b"%d" % (number + 1)), b"STORED\r\n")
            replaced[number] = time.monotonic()
            number += 1
            stop.wait(0.02)

    writer = threading.Thread(target=write)
    writer.start()
    clients, stale, end = [wire(proxy.port()) for _ in range(6)], 0, time.monotonic() + 2.5
    try:
        while time.monotonic() < end:
            for client in clients:
                asked = time.monotonic()
                number = int(value_of(client, "k"))
                if number in replaced:
                    stale += 1
                    assert asked - replaced[number] <= ttl + SLACK_SECONDS
    finally:
        stop.set()
        writer.join()
    assert stale > 0, "nothing was ever served from a copy"
    counts = route_counts(proxy.port())
    assert counts["routes/default_hits"] > counts["routes/default_misses"] > 0


@pytest.mark.parametrize("entry", [NEAR % "1h", COALESCE, BOTH % "1h"], ids=["near", "coalesce", "both"])
def test_a_client_reads_what_it_has_written(entry, kvferry, memcached, wire):
    """Others read the same keys all the time, on other workers, and try to bring old values back."""
    server = memcached("-t", "4")
    proxy = kvferry(config(entry, workers=4, a=[server.port]))
    stop, failures = threading.Event(), []

    def disturb():
        with Wire(proxy.port()) as client:
            while not stop.is_set():
                for key in "abc":
                    value_of(client, key)

    def write_and_read(key):
        clients = [Wire(proxy.port()) for _ in range(4)]
        number, end = 0, time.monotonic() + 3
        changes = [lambda: clients[number % 4].ask(storage("set", key, b"%d" % number), b"STORED\r\n"),
                   lambda: clients[number % 4].ask(b"ms %s %d\r\n%d\r\n" % (key.encode(), len(str(number)), number), b"HD\r\n")]
        while time.monotonic() < end:
            changes[number % 2]()
            for client in clients:
                got = value_of(client, key)
                if got != b"%d" % number:
                    failures.append((key, number, got))
            number += 1
            if number % 50 == 0:
                clients[1].ask(b"delete %s\r\n" % key.encode(), b"DELETED\r\n")
                if value_of(clients[2], key) != b"END":
                    failures.append((key, "deleted"))
        for client in clients:
            client.close()

    threads = [threading.Thread(target=disturb) for _ in range(4)]
    writers = [threading.Thread(target=write_and_read, args=(key,)) for key in "abc"]
    for thread in threads + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:10]


def test_each_change_drops_the_copy(kvferry, memcached, wire):
    server = memcached()
    proxy = kvferry(config(NEAR % "1h", a=[server.port]))
    client, direct = wire(proxy.port()), wire(server.port)
    client.ask(storage("set", "k", b"1", flags=7), b"STORED\r\n")
    for change, answer, after in (
            (storage("set", "k", b"2", flags=7), b"STORED\r\n", b"2"), (storage("append", "k", b"3"), b"STORED\r\n", b"23"),
            (b"incr k 4\r\n", b"27\r\n", b"27"), (b"ma k q\r\nmn\r\n", b"MN\r\n", b"28"),
            (storage("set", "k", b"29", flags=7, tail="noreply") + b"mn\r\n", b"MN\r\n", b"29"),
            (b"touch k 100\r\n", b"TOUCHED\r\n", b"29"), (b"gat 0 k\r\n", value_reply("k", b"29", 7) + b"END\r\n", b"29"),
            (b"ms aw== 2 b F7\r\n30\r\n", b"HD\r\n", b"30")):
        client.ask(b"get k\r\n", b"VALUE k 7 {n}\r\n")
        client.receive_line()
        client.expect(b"END\r\n")
        client.ask(change, answer)
        # Past the route, so that a copy that was kept would be seen.
        client.ask(b"get k\r\n", value_reply("k", after, 7) + b"END\r\n")
        direct.ask(b"get k\r\n", value_reply("k", after, 7) + b"END\r\n")
    client.ask(b"delete k\r\nget k\r\n", b"DELETED\r\nEND\r\n")


def test_flags_and_cas_uniques_are_the_servers(kvferry, memcached, wire):
    server = memcached()
    proxy = kvferry(config(NEAR % "1h", a=[server.port]))
    client, direct = wire(proxy.port()), wire(server.port)
    direct.ask(storage("set", "k", b"v", flags=4294967295), b"STORED\r\n")
    direct.send(b"gets k\r\n")
    truth = direct.receive_line() + direct.receive_line() + direct.receive_line()
    cas = truth.split()[4]
    for _ in range(2):
        client.ask(b"gets k\r\n", truth)
        client.ask(b"mg k c f s v k Oq7\r\n", b"VA 1 c%s f4294967295 s1 kk Oq7\r\nv\r\n" % cas)
    counts = route_counts(proxy.port())
    assert (counts["routes/default_hits"], counts["routes/default_misses"]) == (3, 1)
    client.ask(storage("cas", "k", b"w").replace(b" 1\r\n", b" 1 %s\r\n" % cas, 1), b"STORED\r\n")
    client.ask(storage("cas", "k", b"x").replace(b" 1\r\n", b" 1 %s\r\n" % cas, 1), b"EXISTS\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"w") + b"END\r\n")


def test_what_only_the_server_knows_comes_from_there(kvferry, memcached, wire):
    server = memcached()
    proxy = kvferry(config(NEAR % "1h", a=[server.port]))
    client, direct = wire(proxy.port()), wire(server.port)
    client.ask(storage("set", "k", b"v", ttl=500), b"STORED\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"v") + b"END\r\n")
    client.ask(b"mg k t v\r\n", b"VA 1 t{n}\r\nv\r\n")
    client.ask(b"mg k h\r\n", b"HD h1\r\n")
    client.ask(b"mg aw== b k v\r\n", b"VA 1 kk\r\nv\r\n")
    client.ask(b"mg k T9 v\r\n", b"VA 1\r\nv\r\n")
    direct.ask(b"mg k t\r\n", b"HD t{n}\r\n")
    # A stale item is for the one that wins it.
    direct.ask(b"md k I T30\r\n", b"HD\r\n")
    client.ask(b"mg k v\r\n", b"VA 1 X W\r\nv\r\n")
    client.ask(b"mg k v\r\n", b"VA 1 Z X\r\nv\r\n")


def test_large_values_are_copied_whole(kvferry, memcached, wire):
    server = memcached("-I", "16m", "-m", "256")
    text = config("default: {nearcache: {child: a, ttl: 1h, max_value: 8mb}}", a=[server.port])
    proxy = kvferry(text.replace("kvferry:\n", "kvferry:\n  store: {memory: 256mb, item_size_max: 16mb}\n"))
    client = wire(proxy.port(), seconds=30)
    sizes = {"small": 100, "inline": 8168, "piece": 8169, "middle": 70_000, "large": 5 << 20, "huge": 9 << 20}
    values = {key: (bytes(range(251)) * (size // 251 + 1))[:size] for key, size in sizes.items()}
    for key, value in values.items():
        client.ask(storage("set", key, value, flags=3), b"STORED\r\n")
        client.ask(b"get %s\r\n" % key.encode(), value_reply(key, value, 3) + b"END\r\n")
    server.kill()
    for key, value in values.items():
        if key == "huge":
            client.ask(b"get huge\r\n", b"SERVER_ERROR ")
            client.receive_line()
        else:
            client.ask(b"get %s\r\n" % key.encode(), value_reply(key, value, 3) + b"END\r\n")
            client.ask(b"mg %s s v\r\n" % key.encode(), b"VA %d s%d\r\n" % (len(value), len(value)) + value + b"\r\n")
    # Copies of many keys in one get.
    client.ask(b"get small huge middle\r\n", value_reply("small", values["small"], 3) + b"SERVER_ERROR ")


def test_identical_reads_reach_the_server_once(kvferry, fake_backend, wire):
    slow = Slow()
    backend = fake_backend(slow.serve)
    proxy = kvferry(config(COALESCE, workers=1, a=[backend.port]))
    clients = [wire(proxy.port()) for _ in range(40)]
    for client in clients:
        client.send(b"get k\r\n")
    deadline = time.monotonic() + 5
    while route_counts(proxy.port())["routes/default_joined"] < 39:
        assert time.monotonic() < deadline, route_counts(proxy.port())
    slow.go.set()
    for client in clients:
        client.expect(value_reply("k", b"slow") + b"END\r\n")
    assert slow.gets == 1
    wire(proxy.port()).ask(b"get k k k\r\n", value_reply("k", b"slow") * 3 + b"END\r\n")


def test_each_worker_asks_once(kvferry, fake_backend, wire):
    slow = Slow()
    backend = fake_backend(slow.serve)
    proxy = kvferry(config(COALESCE, workers=2, a=[backend.port]))
    clients = [wire(proxy.port()) for _ in range(40)]
    for client in clients:
        client.send(b"get k\r\n")
    deadline = time.monotonic() + 5
    while route_counts(proxy.port())["routes/default_joined"] < 38:
        assert time.monotonic() < deadline, route_counts(proxy.port())
    slow.go.set()
    for client in clients:
        client.expect(value_reply("k", b"slow") + b"END\r\n")
    assert slow.gets <= 2


def test_copies_outlive_a_killed_server_for_their_time(kvferry, memcached, wire):
    server = memcached()
    proxy = kvferry(config(BOTH % "1s", a=[server.port]))
    client = wire(proxy.port())
    client.ask(storage("set", "k", b"v"), b"STORED\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"v") + b"END\r\n")
    begun = time.monotonic()
    server.kill()
    while True:
        asked = time.monotonic()
        value = value_of(client, "k")
        if value != b"v":
            assert value.startswith(b"SERVER_ERROR"), value
            break
        assert asked - begun < 1 + SLACK_SECONDS
        time.sleep(0.02)
    server.start()
    client.expect_in_step()
    end = time.monotonic() + 5
    while value_of(client, "k") != b"END":
        assert time.monotonic() < end


def test_a_leader_that_fails_fails_for_all(kvferry, memcached, wire):
    server = memcached()
    proxy = kvferry(config(COALESCE, workers=1, a=[server.port]).replace("timeout: 2s", "timeout: 400ms"))
    clients = [wire(proxy.port()) for _ in range(10)]
    clients[0].ask(b"get k\r\n", b"END\r\n")
    server.freeze()
    for client in clients:
        client.send(b"get k\r\n")
    for client in clients:
        assert client.receive_line().startswith(b"SERVER_ERROR")
    server.thaw()
    for client in clients:
        client.expect_in_step()
    end = time.monotonic() + 5
    while value_of(clients[0], "k") != b"END":
        assert time.monotonic() < end


def test_routes_change_while_reads_are_under_way(kvferry, memcached, load):
    server, other = memcached(), memcached()
    port = free_port()
    pools = {"a": [server.port]}
    proxy = kvferry(config(BOTH % "100ms", port=port, **pools), ports=[port])
    running = load(port, seconds=5, op="mix", **LOAD)
    for entry in (COALESCE, "default: a", NEAR % "1h", BOTH % "50ms",
                  "default: {nearcache: {child: {failover: {children: [a, b]}}, ttl: 2s, stats: false}}"):
        used = {**pools, "b": [other.port]} if "b]" in entry else pools
        reload_and_wait(proxy, config(entry, port=port, **used))
        time.sleep(0.3)
    reload_and_wait(proxy, config(BOTH % "100ms", port=port, **pools))
    assert_clean(running.finish())


def test_a_read_that_hangs_over_a_reload_is_answered(kvferry, fake_backend, wire):
    slow = Slow()
    backend = fake_backend(slow.serve)
    port = free_port()
    proxy = kvferry(config(BOTH % "1h", port=port, workers=1, a=[backend.port]), ports=[port])
    clients = [wire(port) for _ in range(3)]
    for client in clients:
        client.send(b"get k\r\n")
    deadline = time.monotonic() + 5
    while route_counts(port)["routes/default_joined"] < 2:
        assert time.monotonic() < deadline
    reload_and_wait(proxy, config("default: a", port=port, workers=1, a=[backend.port]))
    slow.go.set()
    for client in clients:
        client.expect(value_reply("k", b"slow") + b"END\r\n")


def test_copies_are_found_again_after_a_reload_and_not_by_others(kvferry, memcached, wire):
    server, other = memcached(), memcached()
    port = free_port()
    entry = "map: {\"m:\": {nearcache: {child: %s, ttl: 1h}}}, default: b"
    pools = {"a": [server.port], "b": [other.port]}
    proxy = kvferry(config(entry % "a", port=port, **pools), ports=[port])
    client = wire(port)
    wire(server.port).ask(storage("set", "m:1", b"a"), b"STORED\r\n")
    wire(other.port).ask(storage("set", "m:1", b"b"), b"STORED\r\n")
    client.ask(b"get m:1\r\n", value_reply("m:1", b"a") + b"END\r\n")
    wire(server.port).ask(b"delete m:1\r\n", b"DELETED\r\n")
    reload_and_wait(proxy, config(entry.replace("1h", "30m") % "a", port=port, **pools))
    client.ask(b"get m:1\r\n", value_reply("m:1", b"a") + b"END\r\n")
    reload_and_wait(proxy, config(entry.replace("default: b", "default: a") % "b", port=port, **pools))
    client.ask(b"get m:1\r\n", value_reply("m:1", b"b") + b"END\r\n")


def test_clients_of_the_store_cannot_name_copies(kvferry, memcached, wire):
    server = memcached()
    text = config(NEAR % "1h", a=[server.port]) + "cache: {protocol: store, listen: 127.0.0.1:0}\n"
    proxy = kvferry(text)
    client, store = wire(proxy.port("routes")), wire(proxy.port("store"))
    client.ask(storage("set", "k", b"v"), b"STORED\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"v") + b"END\r\n")
    store.ask(b"get k\r\n", b"END\r\n")
    store.ask(b"lru_crawler metadump all\r\n", b"OK\r\nEND\r\n")
    # Its flush empties copies too.
    wire(server.port).ask(b"delete k\r\n", b"DELETED\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"v") + b"END\r\n")
    store.ask(b"flush_all\r\n", b"OK\r\n")
    client.ask(b"get k\r\n", b"END\r\n")


def test_copies_have_a_limit_of_their_own(kvferry, memcached, wire):
    """They push out each other, and nothing of the embedded store."""
    server = memcached("-m", "256")
    port = free_port()
    text = config("default: {nearcache: {child: a, ttl: 1h, memory: %s}}", port=port, a=[server.port])
    text = text.replace("kvferry:\n", "kvferry:\n  store: {memory: 8mb}\n") + "cache: {protocol: store, listen: 127.0.0.1:0}\n"
    proxy = kvferry(text % "2mb", ports=[port])
    client, store = wire(port), wire(proxy.port("store"))
    store.ask(storage("set", "own", b"o" * 500_000), b"STORED\r\n")
    value = b"v" * 10_000
    for index in range(2000):
        client.ask(storage("set", "k%d" % index, value), b"STORED\r\n")
        client.ask(b"get k%d\r\n" % index, value_reply("k%d" % index, value) + b"END\r\n")
    counts = route_counts(port)
    assert counts["nearcache_limit_bytes"] == 2 << 20
    assert 1 << 20 < counts["nearcache_bytes"] <= 2 << 20
    assert counts["nearcache_items"] > 100
    assert counts["nearcache_evictions"] > 1700
    store.ask(b"get own\r\n", value_reply("own", b"o" * 500_000) + b"END\r\n")
    store.send(b"stats\r\n")
    stats = dict(line.split()[1:3] for line in iter(store.receive_line, b"END\r\n"))
    assert (stats[b"curr_items"], stats[b"evictions"]) == (b"1", b"0")
    # Another limit begins empty; without a near cache there is nothing to tell.
    reload_and_wait(proxy, text % "4mb")
    end = time.monotonic() + 5
    while route_counts(port)["nearcache_limit_bytes"] != 4 << 20:
        assert time.monotonic() < end, route_counts(port)
    assert route_counts(port)["nearcache_items"] == 0
    reload_and_wait(proxy, config("default: a", port=port, a=[server.port]))
    while "nearcache_bytes" in route_counts(port):
        assert time.monotonic() < end


def test_figures_are_in_the_metrics(kvferry, memcached, wire):
    server, admin = memcached(), free_port()
    text = config("name: front, default: {nearcache: {child: {coalesce: {child: a}}, ttl: 1h, stats_name: near}}", a=[server.port])
    proxy = kvferry(text.replace("kvferry:\n", "kvferry:\n  admin: {listen: 127.0.0.1:%d}\n" % admin))
    client = wire(proxy.port("front"))
    client.ask(storage("set", "k", b"v"), b"STORED\r\n")
    for _ in range(3):
        client.ask(b"get k\r\n", value_reply("k", b"v") + b"END\r\n")
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % admin, timeout=5) as reply:
        metrics = reply.read().decode()
    for line in ('{name="near_hits"} 2', '{name="near_misses"} 1', '{name="front/default_joined"} 0'):
        assert "kvferry_route_events_total" + line in metrics
    for line in ('{name="items"} 1', '{name="limit_bytes"} 67108864', '{name="evictions"} 0'):
        assert "kvferry_near_caches_value" + line in metrics


LIBRARY = """
pools{ main = { backends = { "127.0.0.1:%d" } } }
routes{
    map = {
        near = route_nearcache{ child = route_coalesce{ child = "main", stats = true }, ttl = 3600, stats = true },
        short = route_nearcache{ child = "main", ttl = 0.001 },
        own = route_nearcache{ child = route_direct{ child = "main" }, ttl = %s, max_value = 3, stats = true },
    },
    default = route_coalesce{ child = "main" },
}
"""


def test_routes_of_the_library(scripted, memcached, wire):
    server = memcached()
    proxy = scripted(LIBRARY % (server.port, 3600), library=True)
    client, direct = wire(proxy.port()), wire(server.port)
    for key in ("near/1", "short/1", "own/1", "own/2", "k"):
        client.ask(storage("set", key, b"abcd" if key == "own/2" else b"abc"), b"STORED\r\n")
        client.ask(b"get %s\r\n" % key.encode(), b"VALUE %s 0 {n}\r\n" % key.encode())
        client.receive_line()
        client.expect(b"END\r\n")
    time.sleep(0.01)
    direct.ask(b"flush_all\r\n", b"OK\r\n")
    client.ask(b"get near/1 short/1 own/1 own/2 k\r\n",
               value_reply("near/1", b"abc") + value_reply("own/1", b"abc") + b"END\r\n")
    stats = proxy.stats("proxy")
    assert (stats["user_near_hits"], stats["user_near_misses"], stats["user_near_joined"]) == ("1", "1", "0")
    assert stats["user_own_hits"] == "1"
    # Another time to live is no reason to lose the copies; other children are.
    assert proxy.reload_and_wait(LIBRARY % (server.port, 1800))
    client.ask(b"get own/1\r\n", value_reply("own/1", b"abc") + b"END\r\n")
    # So is another limit; both work.
    assert proxy.reload_and_wait((LIBRARY % (server.port, 3600)).replace("max_value = 3", "max_value = 3, memory = 2 * 1024 * 1024"))
    client.ask(b"get own/1\r\n", b"END\r\n")
    direct.ask(storage("set", "own/1", b"abc"), b"STORED\r\n")
    client.ask(b"get own/1\r\n", value_reply("own/1", b"abc") + b"END\r\n")
    direct.ask(b"delete own/1\r\n", b"DELETED\r\n")
    client.ask(b"get own/1\r\n", value_reply("own/1", b"abc") + b"END\r\n")
    assert proxy.reload_and_wait((LIBRARY % (server.port, 1800)).replace('route_direct{ child = "main" }', 'route_split{ child_a = "main", child_b = "main" }'))
    client.ask(b"get own/1\r\n", b"END\r\n")


@pytest.mark.parametrize("route, message", [
    ("route_nearcache{ child = 'main' }", "route_nearcache: argument ttl is missing"),
    ("route_nearcache{ child = 'main', ttl = 0 }", "route_nearcache: ttl must be 0.001 to 3600 seconds, not 0"),
    ("route_nearcache{ child = 'main', ttl = 3601 }", "route_nearcache: ttl must be 0.001 to 3600 seconds, not 3601"),
    ("route_nearcache{ child = 'main', ttl = 1, max_value = 0 }", "route_nearcache: max_value must be 1 to 1073741824 bytes, not 0"),
    ("route_nearcache{ child = 'main', ttl = 1, memory = 1048575 }",
     "route_nearcache: memory must be 1048576 to 1099511627776 bytes, not 1048575"),
    ("route_coalesce{ child = { 'main', 'main' } }", "route_coalesce: child must be one child, not several"),
])
def test_what_the_library_refuses(route, message, scripted):
    with pytest.raises(AssertionError, match=message):
        scripted("pools{ main = { backends = { '127.0.0.1:1' } } }\nroutes{ default = %s }\n" % route, library=True)


def test_the_example(kvferry, memcached, wire):
    server = memcached()
    text = EXAMPLE.read_text().replace("22122", "0").replace("11212", str(server.port))
    proxy = kvferry(text)
    client, direct = wire(proxy.port()), wire(server.port)
    for key in ("hot:1", "live:1", "1"):
        client.ask(storage("set", key, b"old"), b"STORED\r\n")
        client.ask(b"get %s\r\n" % key.encode(), value_reply(key, b"old") + b"END\r\n")
        direct.ask(storage("set", key, b"new"), b"STORED\r\n")
    written = time.monotonic()
    client.ask(b"get hot:1 live:1 1\r\n",
               value_reply("hot:1", b"old") + value_reply("live:1", b"new") + value_reply("1", b"new") + b"END\r\n")
    while value_of(client, "hot:1") == b"old":
        assert time.monotonic() - written < 2 + SLACK_SECONDS
        time.sleep(0.05)
