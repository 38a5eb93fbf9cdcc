"""Native routes from YAML (`kvferry: routes:`), between real clients and real servers."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.kvferry import program
from support.load import assert_clean
from support.ports import free_port
from support.process import wait_for
from support.wire import Wire, storage, value_reply

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "routes.yml"
LOAD = {"connections": 20, "depth": 4, "warmup": 0, "verify": True, "keys": 2000}


def config(entry: str, port: int = 0, workers: int = 2, **pools) -> str:
    """One entry of `routes` in flow style, without its address, and the pools behind it: ports, or "store"."""
    lines = ["kvferry:", "  workers: %d" % workers, "  routes:", "    - {listen: 127.0.0.1:%d, %s}" % (port, entry)]
    for name, servers in pools.items():
        if servers == "store":
            lines.append("%s: {protocol: store}" % name)
        else:
            lines.append("%s: {protocol: memcache, timeout: 2s, backoff_max: 200ms, servers: [%s]}" % (
                name, ", ".join("127.0.0.1:%d" % each for each in servers)))
    return "\n".join(lines) + "\n"


def reload_and_wait(proxy, text):
    before = proxy.log().count("configuration applied")
    proxy.reload(text)
    wait_for(lambda: proxy.log().count("configuration applied") > before, 5, "the log tells of the reload")


def test_prefixes_choose_the_pool(kvferry, memcached, wire):
    a, b = memcached(), memcached()
    proxy = kvferry(config('map: {"a:": a, "a:b": b}, default: c', a=[a.port], b=[b.port], c="store"))
    client = wire(proxy.port())
    for name in ("a:1", "a:b1", "x"):
        client.ask(storage("set", name, name.encode()), b"STORED\r\n")
    # A get over three pools is put together in the order of its keys.
    client.ask(b"get x a:b1 none a:1\r\n", b"".join(value_reply(name, name.encode()) for name in ("x", "a:b1", "a:1")) + b"END\r\n")
    wire(a.port).ask(b"get a:1 a:b1 x\r\n", value_reply("a:1", b"a:1") + b"END\r\n")
    wire(b.port).ask(b"get a:1 a:b1 x\r\n", value_reply("a:b1", b"a:b1") + b"END\r\n")
    client.ask(b"mg a:1 v k\r\nmg zz v q\r\nmn\r\n", b"VA 3 ka:1\r\na:1\r\nMN\r\n")
    client.ask(b"set a:2 0 0 1 noreply\r\nz\r\nget a:2\r\n", value_reply("a:2", b"z") + b"END\r\n")


def test_without_a_default_other_keys_are_refused(kvferry, wire):
    proxy = kvferry(config('map: {"a:": c}', c="store"))
    client = wire(proxy.port())
    client.ask(b"get b\r\n", b"SERVER_ERROR no route for this request\r\n")
    client.ask(b"get a:1 b\r\n", b"SERVER_ERROR no route for this request\r\nEND\r\n")
    client.ask(b"flush_all\r\n", b"ERROR\r\n")
    client.expect_in_step()


def test_commands_have_routes_of_their_own(kvferry, wire):
    proxy = kvferry(config("default: {commands: {delete: {error: {text: not here}}, incr: {null: {}}, all: c}}", c="store"))
    client = wire(proxy.port())
    client.ask(storage("set", "k", b"1"), b"STORED\r\n")
    client.ask(b"delete k\r\n", b"SERVER_ERROR not here\r\n")
    client.ask(b"incr k 1\r\n", b"NOT_FOUND\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"1") + b"END\r\n")


def test_failover_when_a_server_dies_under_load(kvferry, memcached, load):
    """Misses are allowed, as the spare has other items; errors and wrong replies are not."""
    first, spare = memcached(), memcached()
    admin = free_port()
    port = free_port()
    text = config("name: front, default: {failover: {children: [a, b]}}", port=port, a=[first.port], b=[spare.port])
    proxy = kvferry(text.replace("kvferry:\n", "kvferry:\n  admin: {listen: 127.0.0.1:%d}\n" % admin), ports=[port])
    running = load(port, seconds=3, op="get", **LOAD)
    time.sleep(0.7)
    first.kill()
    time.sleep(0.7)
    first.restart()
    assert_clean(running.finish())
    with Wire(admin) as http:
        http.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        metrics = http.receive_all().decode()
    counted = re.search(r'^kvferry_route_events_total\{name="front/default"\} (\d+)$', metrics, re.MULTILINE)
    assert counted and int(counted.group(1)) > 0, metrics[-2000:]
    assert 'kvferry_requests_total{listener="front",command="get"}' in metrics
    del proxy


def test_noreply_is_silent_when_all_fail(kvferry, wire):
    dead = free_port()
    client = wire(kvferry(config("default: {allsync: {children: [a, a]}}", a=[dead])).port())
    client.ask(b"set k 0 0 1 noreply\r\nx\r\ndelete k noreply\r\nmn\r\n", b"MN\r\n")
    client.send(b"md k q\r\n")
    assert client.receive_line().startswith(b"SERVER_ERROR ")
    client.expect_in_step()


def test_a_frozen_server_is_left_after_its_wait(kvferry, memcached, wire):
    first, spare = memcached(), memcached()
    proxy = kvferry(config("default: {failover: {children: [a, b], wait: 100ms}}", a=[first.port], b=[spare.port]))
    wire(spare.port).ask(storage("set", "k", b"spare"), b"STORED\r\n")
    client = wire(proxy.port())
    client.ask(b"get k\r\n", b"END\r\n")
    first.freeze()
    started = time.monotonic()
    client.ask(b"get k\r\n", value_reply("k", b"spare") + b"END\r\n")
    assert 0.08 < time.monotonic() - started < 2
    first.thaw()


def test_large_values_go_to_all_children(kvferry, memcached, wire):
    servers = [memcached("-I", "16m", "-m", "256"), memcached("-I", "16m", "-m", "256")]
    proxy = kvferry(config("default: {allsync: {children: [a, b]}}", a=[servers[0].port], b=[servers[1].port]))
    value = bytes(range(256)) * (5 << 12)
    client = wire(proxy.port(), seconds=20)
    client.ask(storage("set", "big", value), b"STORED\r\n")
    for server in servers:
        wire(server.port, seconds=20).ask(b"get big\r\n", value_reply("big", value) + b"END\r\n")
    client.ask(b"get big\r\n", value_reply("big", value) + b"END\r\n")


def test_a_limit_for_all_workers(kvferry, wire):
    """Clients land on any of the workers; together they get what the bucket holds."""
    proxy = kvferry(config("default: {ratelim: {child: c, limit: 11, fillrate: 1, tickrate: 1h, global: true}}",
                           workers=4, c="store"))
    stored = 0
    for number in range(30):
        client = wire(proxy.port())
        client.send(storage("set", "k%d" % number, b"x"))
        stored += client.receive_line() == b"STORED\r\n"
    assert stored == 10  # The last token stays.


def test_routes_and_pools_change_under_load(kvferry, memcached, load, wire):
    """Entries, kinds of routes, pools come and go while clients are served; a broken file changes nothing."""
    servers = [memcached() for _ in range(3)]
    port, second = free_port(), free_port()
    pools = {"a": [servers[0].port], "b": [servers[1].port], "c": [servers[2].port]}
    fastest = "default: {allfastest: {children: [a, b]}}"
    proxy = kvferry(config("default: {failover: {children: [a, b, c]}}", port=port, **pools), ports=[port])
    running = load(port, seconds=4, op="mix", **LOAD)
    for entry in (fastest, 'map: {"k": {allsync: {children: [a, c]}}}, default: b', "default: {random: {children: [a, b, c]}}",
                  "default: {split: {child_a: b, child_b: c}}, name: renamed"):
        used = {name: ports for name, ports in pools.items() if re.search(r"\b%s\b" % name, entry)}
        reload_and_wait(proxy, config(entry, port=port, **used))
        time.sleep(0.2)
    proxy.reload(config("default: {failover: {children: [a, nowhere]}}", port=port, **pools))
    proxy.wait_log(r"there is no pool 'nowhere'")
    pools.pop("c")
    both = config(fastest, port=port, **pools).replace(
        "  routes:\n", "  routes:\n    - {name: other, listen: 127.0.0.1:%d, default: a}\n" % second)
    reload_and_wait(proxy, both)
    proxy.wait_port(second)
    client = wire(second)
    client.ask(b"get none\r\n", b"END\r\n")
    reload_and_wait(proxy, config(fastest, port=port, **pools))
    proxy.wait_port(second, listening=False)
    client.expect_closed()
    assert_clean(running.finish())


@pytest.mark.parametrize("route", ["{failover: {children: [a, b]}}", "{allfastest: {children: [a, b]}}",
                                   "{allasync: {children: [a, b]}}", "{failover: {children: [b, a], wait: 1m}}"])
def test_the_end_with_requests_under_way(kvferry, fake_backend, route):
    """What hangs at backends, answered or not, ends with the program at the deadline."""
    def serve(connection):
        while True:
            connection.read_request()

    backends = [fake_backend(serve), fake_backend(serve)]
    text = config("default: " + route, a=[backends[0].port], b=[backends[1].port])
    proxy = kvferry(text.replace("timeout: 2s", "timeout: 1h").replace("kvferry:\n", "kvferry:\n  drain_timeout: 500ms\n"))
    with Wire(proxy.port()) as client:
        client.send(b"get k\r\n")
        wait_for(lambda: any(each.connections and each.connections[0].seen for each in backends), 3, "a backend has it")
        proxy.process.child.send_signal(signal.SIGTERM)
        assert proxy.process.child.wait(10) == 0


def test_the_example(kvferry, memcached, wire):
    servers = {11212: memcached(), 11213: memcached()}
    text = EXAMPLE.read_text().replace("22122", "0")
    for port, server in servers.items():
        text = text.replace(str(port), str(server.port))
    proxy = kvferry(text)
    main, other = (wire(server.port) for server in servers.values())
    client = wire(proxy.port())
    other.ask(storage("set", "sess:1", b"far"), b"STORED\r\n")
    client.ask(b"get sess:1\r\n", value_reply("sess:1", b"far") + b"END\r\n")
    client.ask(storage("set", "user:1", b"u"), b"STORED\r\n")
    for direct in (main, other):
        direct.ask(b"get user:1\r\n", value_reply("user:1", b"u") + b"END\r\n")
    client.ask(storage("set", "batch:1", b"b"), b"STORED\r\n")
    servers[11212].kill()
    client.ask(storage("set", "k", b"kept"), b"STORED\r\n")
    client.ask(b"mg k v t\r\n", b"VA 4 t{n}\r\nkept\r\n")


def test_check_names_what_is_wrong(tmp_path):
    file = tmp_path / "r.yml"
    file.write_text(config("default: {failover: {children: [a, q]}}", a="store"))
    done = subprocess.run([program(), "check", file], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "r.yml:4:" in done.stdout + done.stderr and "there is no pool 'q'" in done.stdout + done.stderr
