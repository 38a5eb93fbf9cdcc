"""A changed configuration under load: no client notices, and a broken file changes nothing. SIGTERM drains."""

import signal
import time

import pytest

from support.kvferry import pool
from support.load import assert_clean
from support.ports import free_port
from support.process import wait_for
from support.wire import Wire, storage, value_reply

LOAD = {"connections": 20, "depth": 4, "warmup": 0, "verify": True, "op": "mix", "keys": 2000}


def reloads(proxy) -> int:
    return proxy.log().count("configuration applied")


def reload_and_wait(proxy, config=None):
    before = reloads(proxy)
    proxy.reload(config)
    wait_for(lambda: reloads(proxy) > before, 5, "the log tells of the reload")


def test_reload_of_the_same_file_under_load(memcached, kvferry, load):
    servers = [memcached(), memcached()]
    port = free_port()
    proxy = kvferry(pool("main", [each.port for each in servers], port=port), ports=[port])
    running = load(port, seconds=3, **LOAD)
    for _ in range(10):
        time.sleep(0.2)
        proxy.reload()
    assert_clean(running.finish())


def test_servers_added_changed_and_removed_under_load(memcached, kvferry, load):
    """Keys move, so there are misses; there are no errors, and no connection is lost."""
    servers = [memcached() for _ in range(4)]
    port = free_port()

    def config(*indexes, **keys):
        return pool("main", [servers[index].port for index in indexes], port=port, **keys)

    proxy = kvferry(config(0, 1), ports=[port])
    running = load(port, seconds=4, **LOAD)
    time.sleep(0.3)
    for indexes in ((0, 1, 2), (0, 1, 2, 3), (1, 2), (3,), (0, 1)):
        reload_and_wait(proxy, config(*indexes))
        time.sleep(0.3)
    reload_and_wait(proxy, config(0, 1, timeout=1500, server_connections=3))
    reload_and_wait(proxy, config(0, 1, hash="murmur", distribution="modula"))
    assert_clean(running.finish())


def key(number: int) -> str:
    """Keys that differ in their last bytes only hash alike, and might all belong to one server."""
    return "%d-kept-%d" % (number * number * 7919, number * 104729)


def test_a_removed_server_is_left_alone(memcached, kvferry):
    """After a reload without it, its connections are closed and its keys are on the other."""
    servers = [memcached(), memcached()]
    port = free_port()
    proxy = kvferry(pool("main", [each.port for each in servers], port=port), ports=[port])
    with Wire(port) as client, Wire(servers[0].port) as direct:
        for number in range(50):
            client.ask(storage("set", key(number), b"x"), b"STORED\r\n")
        assert connections_of(direct) > 1
        reload_and_wait(proxy, pool("main", [servers[1].port], port=port))
        for number in range(50):
            client.ask(storage("set", key(number), b"y"), b"STORED\r\n")
            client.ask(b"get %s\r\n" % key(number).encode(), value_reply(key(number), b"y") + b"END\r\n")
        wait_for(lambda: connections_of(direct) == 1, 5, "the connections to the removed server are closed")


def connections_of(direct) -> int:
    """Clients of a memcached, ourselves included."""
    direct.send(b"stats\r\n")
    count = 0
    while True:
        line = direct.receive_line()
        if line == b"END\r\n":
            return count
        if line.startswith(b"STAT curr_connections "):
            count = int(line.split()[2])


def test_pools_and_listeners_come_and_go(memcached, kvferry, load):
    server = memcached()
    first, second, third = free_port(), free_port(), free_port()
    one = pool("one", [server.port], port=first)
    proxy = kvferry(one, ports=[first])
    running = load(first, seconds=3, **LOAD)
    reload_and_wait(proxy, one + pool("two", [server.port], port=second))
    proxy.wait_port(second)
    with Wire(second) as client:
        client.ask(storage("set", "x", b"2"), b"STORED\r\n")
        # The pool moves to another port; whoever is connected stays connected.
        reload_and_wait(proxy, one + pool("two", [server.port], port=third))
        proxy.wait_port(third)
        proxy.wait_port(second, listening=False)
        client.ask(b"get x\r\n", value_reply("x", b"2") + b"END\r\n")
    reload_and_wait(proxy, one)
    proxy.wait_port(third, listening=False)
    assert_clean(running.finish())


BROKEN = {
    "not YAML": "main: [",
    "unknown key": "main:\n  lissen: 127.0.0.1:1\n",
    "no servers": "main:\n  listen: 127.0.0.1:{port}\n",
    "bad value": "main:\n  listen: 127.0.0.1:{port}\n  timeout: soon\n  servers:\n   - 127.0.0.1:{backend}:1\n",
    "empty": "",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_keeps_what_runs(memcached, kvferry, load, text):
    server = memcached()
    port = free_port()
    proxy = kvferry(pool("main", [server.port], port=port), ports=[port])
    running = load(port, seconds=1, **LOAD)
    proxy.reload(text.format(port=port, backend=server.port))
    proxy.wait_log(r"kvferry\.yml|no pools")
    assert_clean(running.finish())
    # And the file can be mended.
    reload_and_wait(proxy, pool("main", [server.port], port=port, timeout=1000))
    with Wire(port) as client:
        client.expect_in_step()


def test_a_listener_whose_port_is_taken_keeps_what_runs(memcached, kvferry):
    server = memcached()
    port = free_port()
    one = pool("one", [server.port], port=port)
    proxy = kvferry(one, ports=[port])
    with Wire(port) as client:
        proxy.reload(one + pool("two", [server.port], port=server.port))
        proxy.wait_log(str(server.port) + r"\D")
        time.sleep(0.3)
        client.ask(storage("set", "x", b"1"), b"STORED\r\n")
    with Wire(port) as client:
        client.expect_in_step()


def test_watch_reloads_when_the_file_changes(memcached, kvferry):
    servers = [memcached(), memcached()]
    port = free_port()
    watch = "kvferry:\n  watch: true\n"
    proxy = kvferry(watch + pool("main", [servers[0].port], port=port), ports=[port])
    with Wire(port) as client, Wire(servers[1].port) as direct:
        client.ask(storage("set", "w", b"1"), b"STORED\r\n")
        proxy.write(watch + pool("main", [servers[1].port], port=port))

        def is_stored_there():
            client.ask(storage("set", "w", b"2"), b"STORED\r\n")
            direct.send(b"get w\r\n")
            line = direct.receive_line()
            if line == b"END\r\n":
                return False
            direct.expect(b"2\r\nEND\r\n")
            return True
        wait_for(is_stored_there, 8, "the changed file is in effect")


def test_sigterm_answers_what_was_asked(kvferry, fake_backend):
    """A request in flight is answered before the end; new clients are refused."""
    def serve(connection):
        connection.read_request()
        time.sleep(0.7)
        connection.send(b"END\r\n")
        connection.read_line()

    backend = fake_backend(serve)
    proxy = kvferry(pool("main", [backend.port], timeout=3000))
    with Wire(proxy.port()) as client, Wire(proxy.port()) as idle:
        client.send(b"get slow\r\n")
        wait_for(lambda: backend.connections and backend.connections[0].seen, 3, "the backend has the request")
        proxy.process.child.send_signal(signal.SIGTERM)
        client.expect(b"END\r\n")
        idle.expect_closed()
    assert proxy.process.child.wait(10) == 0


def test_sigterm_does_not_wait_for_ever(kvferry, fake_backend):
    """drain_timeout ends a request that is never answered."""
    def serve(connection):
        while True:
            connection.read_request()

    backend = fake_backend(serve)
    proxy = kvferry("kvferry:\n  drain_timeout: 1s\n" + pool("main", [backend.port]))
    with Wire(proxy.port()) as client:
        client.send(b"get never\r\n")
        wait_for(lambda: backend.connections and backend.connections[0].seen, 3, "the backend has the request")
        started = time.monotonic()
        proxy.process.child.send_signal(signal.SIGTERM)
        assert proxy.process.child.wait(10) == 0
        assert 0.5 < time.monotonic() - started < 4


@pytest.mark.parametrize("is_last_client_slow", [False, True])
def test_sigterm_again_and_again(kvferry, fake_backend, is_last_client_slow):
    """Further signals meet workers that have ended and such that have not; the second one ends the wait."""
    def serve(connection):
        while True:
            connection.read_request()

    backend = fake_backend(serve)
    proxy = kvferry("kvferry:\n  workers: 4\n  drain_timeout: 60s\n" + pool("main", [backend.port]))
    with Wire(proxy.port()) as client:
        if is_last_client_slow:
            client.send(b"get never\r\n")
            wait_for(lambda: backend.connections and backend.connections[0].seen, 3, "the backend has the request")
        started = time.monotonic()
        while proxy.process.child.poll() is None and time.monotonic() - started < 20:
            proxy.process.child.send_signal(signal.SIGTERM)
            time.sleep(0.0005)
        assert proxy.process.child.wait(0.1) == 0


def test_sigterm_again_and_again_with_scripts(scripted):
    """The first worker, which drives the connections of all, ends last; signals that come meanwhile change nothing."""
    proxy = scripted("""
function mcp_config_pools() return nil end
function mcp_config_routes()
  local fg = mcp.funcgen_new()
  fg:ready({ n = "ok", f = function() return function() return "HD\\r\\n" end end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end
""", workers=4)
    with Wire(proxy.port()) as client:
        client.send(b"mg a\r\n")
        client.expect(b"HD\r\n")
        started = time.monotonic()
        while proxy.process.child.poll() is None and time.monotonic() - started < 20:
            proxy.process.child.send_signal(signal.SIGTERM)
            time.sleep(0.0005)
        assert proxy.process.child.wait(0.1) == 0
