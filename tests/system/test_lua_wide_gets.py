"""Gets of several keys through scripts: what clients see, and what backends are asked."""

import random
import time

import pytest

from support.fake_backend import FakeBackend, answer_get
from support.kvferry import ScriptedKvferry
from support.memcached import Memcached
from support.process import wait_for
from support.wire import Wire, storage, value_reply

LIBRARY = """
pools{ one = { options = { %s }, backends = { %s } } }
routes{ default = %s }
"""

FUNCTION = """
function mcp_config_pools()
    return mcp.pool({ %s }, { %s })
end

function mcp_config_routes(pool)
    local all = mcp.funcgen_new()
    local to = all:new_handle(pool)
    all:ready({ n = "all", f = function(rctx)
        return function(req) return rctx:enqueue_and_wait(req, to) end
    end })
    mcp.attach(mcp.CMD_ANY_STORAGE, all)
end
"""


def library(ports, options="", route='route_direct{ child = "one" }') -> str:
    return LIBRARY % (options, ", ".join('"127.0.0.1:%d"' % port for port in ports), route)


def function(ports, options="") -> str:
    return FUNCTION % (", ".join('mcp.backend("b%d", "127.0.0.1", %d)' % (port, port) for port in ports), options)


@pytest.fixture
def start(tmp_path, io, cleanup):
    """Starts kvferry with a script; `is_library`: with one for the route library."""
    def begin(text, is_library=False, **more):
        folder = tmp_path / ("kvferry%d" % len(list(tmp_path.iterdir())))
        folder.mkdir()
        server = ScriptedKvferry(folder, text, io, library=is_library, **more)
        cleanup.add(server.stop)
        return server
    return begin


def fake(cleanup, serve):
    backend = FakeBackend(serve)
    cleanup.add(backend.stop)
    return backend


def serve_until_died(answer):
    """Answers the version, and requests with what `answer` makes of them; None: closes."""
    def serve(connection):
        while True:
            request = connection.read_request()
            reply = b"VERSION 1.6.45\r\n" if request == b"version\r\n" else answer(request)
            if reply is None:
                return
            connection.send(reply)
    return serve


def requests(backend) -> list:
    return [request for connection in backend.connections for request in connection.seen if request != b"version\r\n"]


@pytest.mark.parametrize("options", ["", "iothread = true"])
def test_a_backend_is_asked_once_by_native_routes_and_for_each_key_by_functions(start, cleanup, options):
    backend = fake(cleanup, serve_until_died(answer_get))
    wanted = b"".join(b"VALUE %s 0 10\r\nvalue-of-%s\r\n" % (key, key) for key in (b"a", b"b", b"c")) + b"END\r\n"
    for text, is_library, form in (
            (library([backend.port], options), True, [b"get a b c\r\n"]),
            (function([backend.port], options), False, [b"get a\r\n", b"get b\r\n", b"get c\r\n"]),
            (function([backend.port], options + (", " if options else "") + "wide_gets = true"), False, [b"get a b c\r\n"])):
        before = len(requests(backend))
        # Whatever worker a client comes to: with iothread one of them has the connection.
        server = start(text, is_library, workers=2)
        for _ in range(4):
            with Wire(server.port()) as client:
                client.ask(b"get a b c\r\n", wanted)
        assert requests(backend)[before:] == 4 * form
        assert server.stats("proxy")["cmd_get"] == "12"
        assert server.stats()["proxy_conn_requests"] == "12"


@pytest.mark.parametrize("options", ["", "iothread = true"])
def test_keys_of_a_backend_that_dies_in_its_answer_have_the_failure_in_their_place(start, cleanup, options):
    def half(request):
        keys = request.split()[1:]
        return answer_get(b"get " + keys[0])[:-len(b"END\r\n")] + b"VALUE %s 0 100\r\nhalf" % keys[1] if len(keys) > 1 else None

    def serve(connection):
        while True:
            request = connection.read_request()
            if request == b"version\r\n":
                connection.send(b"VERSION 1.6.45\r\n")
                continue
            connection.send(half(request))
            return
    backend = fake(cleanup, serve)
    server = start(library([backend.port], options), True, workers=2)
    with Wire(server.port()) as client:
        client.ask(b"get a b c\r\nmn\r\n", b"VALUE a 0 10\r\nvalue-of-a\r\n" + 2 * b"SERVER_ERROR backend failure\r\n" + b"END\r\nMN\r\n")


def test_error_lines_of_a_backend_stand_for_each_of_its_keys(start, cleanup):
    busy = fake(cleanup, serve_until_died(lambda request: b"SERVER_ERROR busy\r\n"))
    well = fake(cleanup, serve_until_died(answer_get))
    text = """
pools{ busy = { backends = { "127.0.0.1:%d" } }, well = { backends = { "127.0.0.1:%d" } } }
routes{ map = { b = route_direct{ child = "busy" }, w = route_direct{ child = "well" } } }
""" % (busy.port, well.port)
    server = start(text, True)
    with Wire(server.port()) as client:
        client.ask(b"get b/1 w/2 b/3 w/4\r\n",
                   b"SERVER_ERROR busy\r\nVALUE w/2 0 12\r\nvalue-of-w/2\r\nSERVER_ERROR busy\r\n"
                   b"VALUE w/4 0 12\r\nvalue-of-w/4\r\nEND\r\n")
        # A key without a route has its line too.
        client.ask(b"get w/2 x/1\r\n", b"VALUE w/2 0 12\r\nvalue-of-w/2\r\nSERVER_ERROR lua start failure\r\nEND\r\n")
    assert requests(busy) == [b"get b/1 b/3\r\n"]
    assert requests(well) == [b"get w/2 w/4\r\n", b"get w/2\r\n"]


def test_whatever_the_form_clients_see_the_same(start, tmp_path, cleanup):
    """Random gets with hits, misses, duplicates and values of all sizes, against what the servers hold."""
    memcacheds = []
    for _ in range(3):
        memcacheds.append(Memcached(tmp_path))
        cleanup.add(memcacheds[-1].stop)
    ports = [each.port for each in memcacheds]
    rng = random.Random(7)
    servers = [start(library(ports), True, workers=2), start(function(ports), workers=2), start(function(ports, "iothread = true"), workers=2),
               start(library(ports, "wide_gets = false"), True), start(function(ports, "wide_gets = true"))]
    values = {}
    with Wire(servers[0].port()) as client:
        for number in range(60):
            key = b"key:%d" % number
            size = rng.choice([0, 1, 10, 100, 1000, 5000, 70000, 300000])
            values[key] = bytes(rng.randrange(256) for _ in range(min(size, 1000))) * (size // 1000 if size > 1000 else 1)
            client.ask(b"set %s %d 0 %d\r\n%s\r\n" % (key, number, len(values[key]), values[key]), b"STORED\r\n")
    for _ in range(12):
        batch = []
        for _ in range(5):
            keys = [b"key:%d" % rng.randrange(90) for _ in range(rng.choice([2, 3, 10, 40]))]
            found = b"".join(b"VALUE %s %s %d\r\n%s\r\n" % (key, key[4:], len(values[key]), values[key]) for key in keys if key in values)
            batch.append((rng.choice([b"get ", b"get  ", b"gat 0 "]) + rng.choice([b" ", b"  "]).join(keys) + b"\r\n", found + b"END\r\n"))
        for server in servers:
            with Wire(server.port()) as client:
                client.send(b"".join(request for request, _ in batch))
                for _, reply in batch:
                    client.expect(reply)
    for server in servers:
        wait_for(lambda server=server: server.stats()["proxy_req_active"] == "0", 5, "no request is under way")
        assert server.stats("proxy")["buffer_memory_used"] == "0"


def test_what_native_routes_hold_is_counted_and_limited(start, cleanup):
    def serve(connection):
        while True:
            request = connection.read_request()
            if request == b"version\r\n":
                connection.send(b"VERSION 1.6.45\r\n")
            elif request.startswith(b"set go"):
                connection.send(len(connection.seen[1:]) * b"STORED\r\n")  # Answers all at once.
    backend = fake(cleanup, serve)
    text = "settings{ buffer_memory_limit = 8 }\n" + library([backend.port])
    server = start(text, True)
    value = b"v" * 10000
    with Wire(server.port()) as client:
        client.send(b"set k1 0 0 10000\r\n%s\r\n" % value)
        wait_for(lambda: server.stats("proxy")["buffer_memory_used"] == "10000", 5, "the value is counted")
        with Wire(server.port()) as other:
            other.ask(b"set k2 0 0 1\r\nx\r\n", b"SERVER_ERROR out of memory\r\n")
            # Gets have no value to keep.
            other.send(b"get go\r\n")
        assert server.stats("proxy")["buffer_memory_limit"] == "8192"
        server.reload_and_wait("settings{ buffer_memory_limit = 0 }\n" + library([backend.port]))
        with Wire(server.port()) as other:
            other.send(b"set go 0 0 1\r\nx\r\n")
            client.expect(b"STORED\r\n")
    wait_for(lambda: server.stats("proxy")["buffer_memory_used"] == "0", 5, "nothing is held any more")


def test_functions_below_native_routes_are_counted(start, cleanup):
    backend = fake(cleanup, serve_until_died(answer_get))
    text = """
register_route_handlers{ "mine" }
pools{ one = { backends = { "127.0.0.1:%d" } } }
routes{ default = %%s }
""" % backend.port
    handlers = """
function route_mine_conf(args) return args end
function route_mine_start(args, ctx, fgen)
    local to = fgen:new_handle(args.child)
    fgen:ready({ n = "mine", f = function(rctx)
        return function(req) return rctx:enqueue_and_wait(req, to) end
    end })
end
"""
    server = start([handlers, text % 'route_direct{ child = route_mine{ child = "one" } }'], True)
    assert server.stats("proxyfuncs")["funcs_mine"] == "1"
    assert server.reload_and_wait(text % 'route_mine{ child = route_direct{ child = route_mine{ child = "one" } } }')
    assert server.stats("proxyfuncs")["funcs_mine"] == "2"
    assert server.reload_and_wait(text % 'route_direct{ child = "one" }')
    assert server.stats("proxyfuncs").get("funcs_mine", "0") == "0"


LOCAL = """
function mcp_config_pools()
    return true
end

function mcp_config_routes()
    local all = mcp.funcgen_new()
    local cache = all:new_handle(mcp.internal_handler)
    all:ready({ n = "all", f = function(rctx)
        return function(req) return %s end
    end })
    mcp.attach(mcp.CMD_ANY_STORAGE, all)
end
"""


@pytest.mark.parametrize("run", ["mcp.internal(req)", "rctx:enqueue_and_wait(req, cache)"])
def test_writes_behind_a_wide_get_of_the_local_cache_do_not_change_what_it_brings(start, run):
    server = start(LOCAL % run)
    value, count = b"v" * 900_000, 18
    with Wire(server.port(), receive_buffer=4096) as client:
        for index in range(count):
            client.ask(storage("set", "wide%d" % index, value), b"STORED\r\n")
        last = "wide%d" % (count - 1)
        client.send(b"get" + b"".join(b" wide%d" % index for index in range(count)) + b"\r\n" + storage("set", last, b"new"))
        time.sleep(0.2)
        client.expect(b"".join(value_reply("wide%d" % index, value) for index in range(count)) + b"END\r\nSTORED\r\n")
        client.ask(b"get %s\r\n" % last.encode(), value_reply(last, b"new") + b"END\r\n")
