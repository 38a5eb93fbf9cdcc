"""Each configuration in examples/lua does what its comment says, against real memcached servers.

The files name ports from 11300 on; a test replaces each of them by a free one, where a memcached runs.
"""

import re
import time
from pathlib import Path

import pytest

from support.ports import free_port
from support.process import wait_for

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "lua"
PORT = re.compile(r"\b113\d\d\b")
TIMELY_SECONDS = 1.0  # What a client may wait that must not notice a broken server.


class Example:
    """An example that runs, with its backends."""

    def __init__(self, script, servers, server, connect):
        self.script = script
        self.servers = servers  # By the port that the file names.
        self.server = server
        self._connect = connect

    def client(self, **options):
        return self._connect(self.server.port(), **options)

    def direct(self, port, **options):
        """A client of one backend."""
        return self._connect(self.servers[port].port, **options)

    def freeze(self, port):
        """Returns when the server has stopped: the signal takes a moment, in which it would still answer."""
        server = self.servers[port]
        server.freeze()
        tasks = Path("/proc/%d/task" % server.process.pid)
        wait_for(lambda: all(") T " in file.read_text() for file in tasks.glob("*/stat")), 5, "the server stands still")

    def counter(self, name) -> int:
        return int(self.server.stats("proxy")["user_" + name])

    def wait_counter(self, name, value):
        wait_for(lambda: self.counter(name) >= value, 5, "user_%s is %d" % (name, value))


@pytest.fixture
def example(scripted, memcached, wire):
    """example(name) starts examples/lua/NAME.lua with a memcached for each port in it."""
    servers = {}

    def start(name, *args, **options):
        text = (EXAMPLES / (name + ".lua")).read_text()
        for port in sorted(set(map(int, PORT.findall(text)))):
            if port not in servers:
                servers[port] = memcached(port=free_port())
        script = PORT.sub(lambda found: str(servers[int(found[0])].port), text)
        return Example(script, servers, scripted(script, *args, **options), wire)
    return start


def holder(example, ports, key: bytes):
    """The one of `ports` whose server has the key; None when none has it."""
    found = [port for port in ports if example.direct(port).ask_line(b"mg %s\r\n" % key) == b"HD\r\n"]
    assert len(found) <= 1, found
    return found[0] if found else None


def test_prefix_router(example):
    run = example("prefix_router", workers=2)
    client = run.client()
    for number in range(20):
        for prefix in (b"users/", b"pages/", b"other/", b""):
            client.ask(b"set %skey%d 0 0 1\r\nx\r\n" % (prefix, number), b"STORED\r\n")
    everywhere = (11311, 11312, 11321, 11322, 11331)
    homes = {prefix: {holder(run, everywhere, b"%skey%d" % (prefix, number)) for number in range(20)}
             for prefix in (b"users/", b"pages/", b"other/", b"")}
    assert homes == {b"users/": {11311, 11312}, b"pages/": {11321, 11322}, b"other/": {11331}, b"": {11331}}
    client.ask(b"get users/key1 pages/key1 key1 users/none\r\n",
               b"VALUE users/key1 0 1\r\nx\r\nVALUE pages/key1 0 1\r\nx\r\nVALUE key1 0 1\r\nx\r\nEND\r\n")


def test_zone_failover(example):
    run = example("zone_failover", proxy_arg="west")
    client = run.client()
    client.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n")
    near = holder(run, (11321, 11322), b"k")
    assert near
    # The copy in the other zone arrives in the background.
    far = wait_for(lambda: holder(run, (11311, 11312), b"k"), 5, "the write reaches the other zone")
    run.direct(near).ask(b"set k 0 0 4\r\nnear\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 0 4\r\nnear\r\nEND\r\n")
    client.ask(b"get nothing\r\n", b"END\r\n")
    assert run.counter("failovers") == 0, "a miss is an answer"

    run.freeze(near)
    begin = time.monotonic()
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n")
    assert 0.15 < time.monotonic() - begin < TIMELY_SECONDS
    run.wait_counter("failovers", 1)
    run.servers[near].thaw()

    run.servers[near].kill()
    client.ask(b"mg k v\r\n", b"VA 1\r\nx\r\n")
    client.ask(b"set k 0 0 3\r\nnew\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 0 3\r\nnew\r\nEND\r\n")
    assert run.counter("failovers") >= 4
    run.direct(far).ask(b"get k\r\n", b"VALUE k 0 3\r\nnew\r\nEND\r\n")

    run.servers[near].restart()

    def is_back():
        client.send(b"set k 0 0 4\r\nback\r\n")
        client.expect(b"STORED\r\n")
        return run.direct(near).ask_line(b"mg k\r\n") == b"HD\r\n"
    wait_for(is_back, 5, "the own zone is used again")

    run.servers[near].kill()
    run.servers[far].kill()
    client.ask(b"get k\r\n", b"SERVER_ERROR backend failure\r\n")


def test_replicate_all(example):
    run = example("replicate_all")
    client = run.client()
    client.ask(b"set k 5 0 1\r\nx\r\n", b"STORED\r\n")
    first, second = holder(run, (11311, 11312), b"k"), holder(run, (11321, 11322), b"k")
    assert first and second, "both pools have the copy when the client is answered"
    client.ask(b"incr k 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n")
    run.servers[first].kill()
    client.ask(b"get k\r\n", b"VALUE k 5 1\r\nx\r\nEND\r\n")
    client.ask(b"set k 0 0 1\r\ny\r\n", b"SERVER_ERROR backend failure\r\n")
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\ny\r\nEND\r\n")
    run.servers[first].restart()
    wait_for(lambda: (client.send(b"set k 0 0 1\r\nz\r\n"), client.receive_line())[1] == b"STORED\r\n", 5, "writes work again")
    assert holder(run, (11311, 11312), b"k") == first
    client.ask(b"delete k\r\n", b"DELETED\r\n")
    assert holder(run, (11311, 11312, 11321, 11322), b"k") is None


def test_fastest_of(example):
    run = example("fastest_of")
    client = run.client()
    client.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n")
    for port in run.servers:
        wait_for(lambda: run.direct(port).ask_line(b"mg k\r\n") == b"HD\r\n", 5, "each copy is written")
    for frozen in run.servers:
        run.freeze(frozen)
        begin = time.monotonic()
        client.ask(b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n")
        client.ask(b"set other 0 0 1\r\ny\r\n", b"STORED\r\n")
        assert time.monotonic() - begin < TIMELY_SECONDS
        run.servers[frozen].thaw()
    # One copy is enough; without any it is a miss.
    run.direct(11311).ask(b"delete k\r\n", b"DELETED\r\n")
    run.direct(11321).ask(b"delete k\r\n", b"DELETED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n")
    run.direct(11331).ask(b"delete k\r\n", b"DELETED\r\n")
    client.ask(b"get k\r\nmg k v\r\n", b"END\r\nEN\r\n")
    run.servers[11311].kill()
    run.servers[11321].kill()
    wait_for(lambda: (client.send(b"set k 0 0 1\r\nx\r\n"), client.receive_line())[1] == b"STORED\r\n", 5,
             "the best answer of a write with one copy left")


def test_gutter(example):
    run = example("gutter")
    client = run.client()
    client.ask(b"set k 7 3600 1\r\nx\r\n", b"STORED\r\n")
    home = holder(run, (11311, 11312), b"k")
    assert holder(run, (11321,), b"k") is None
    run.servers[home].kill()
    client.ask(b"get k\r\n", b"END\r\n")
    client.ask(b"set k 7 3600 1\r\ny\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 7 1\r\ny\r\nEND\r\n")
    gutter = run.direct(11321)
    assert int(gutter.ask_line(b"mg k t\r\n").split(b"t")[1]) in (9, 10)
    client.ask(b"ms k 3 T3600 F7\r\nabc\r\n", b"HD\r\n")
    assert int(gutter.ask_line(b"mg k t\r\n").split(b"t")[1]) in (9, 10)
    gutter.ask(b"touch k 0\r\n", b"TOUCHED\r\n")
    client.ask(b"touch k 3600\r\n", b"TOUCHED\r\n")
    assert int(gutter.ask_line(b"mg k t\r\n").split(b"t")[1]) in (9, 10)
    client.ask(b"gat 3600 k\r\n", b"VALUE k 7 3\r\nabc\r\nEND\r\n")
    assert int(gutter.ask_line(b"mg k t\r\n").split(b"t")[1]) in (9, 10)

    run.servers[home].restart()
    wait_for(lambda: (client.send(b"set k 0 3600 1\r\nz\r\n"), client.expect(b"STORED\r\n"),
                      holder(run, (home,), b"k"))[2], 5, "the main pool is used again")
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\nz\r\nEND\r\n")
    # An error line of a server is an answer; the gutter is not asked.
    client.ask(b"incr k 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n")
    client.expect_in_step()


def test_warm_up(example):
    run = example("warm_up")
    client, old = run.client(), run.direct(11321)
    old.ask(b"set k 42 3600 5\r\nvalue\r\n", b"STORED\r\n")
    old.ask(b"set always 1 0 5\r\nvalue\r\n", b"STORED\r\n")
    client.ask(b"get k always none\r\n", b"VALUE k 42 5\r\nvalue\r\nVALUE always 1 5\r\nvalue\r\nEND\r\n")
    home = holder(run, (11311, 11312), b"k")
    line = run.direct(home).ask_line(b"mg k f t s\r\n").split()
    assert line[1] == b"f42" and 3590 <= int(line[2][1:]) <= 3600 and line[3] == b"s5"
    run.direct(holder(run, (11311, 11312), b"always")).ask(b"mg always t\r\n", b"HD t-1\r\n")
    assert run.counter("warmed") == 2
    # Served by the new pool from now on.
    old.ask(b"set k 0 0 3\r\nold\r\n", b"STORED\r\n")
    client.ask(b"mg k v f\r\n", b"VA 5 f42\r\nvalue\r\n")
    assert run.counter("warmed") == 2
    # What is deleted does not come back.
    client.ask(b"delete k\r\n", b"DELETED\r\n")
    client.ask(b"get k\r\n", b"END\r\n")
    # The old pool may vanish.
    run.servers[11321].kill()
    client.ask(b"get none\r\n", b"END\r\n")
    client.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n")
    client.ask(b"gets k\r\n", b"VALUE k 0 1 {n}\r\nx\r\nEND\r\n")


def test_migrate_by_time(example):
    now = int(time.time())
    # The old pool alone answers.
    before = example("migrate_by_time", proxy_arg="switch_%d:done_%d" % (now + 1000, now + 2000))
    client, old = before.client(), before.direct(11311)
    client.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n")
    new = before.direct(holder(before, (11321, 11322), b"k"))
    new.ask(b"set k 0 0 3\r\nnew\r\n", b"STORED\r\n")
    old.ask(b"set rare 0 0 1\r\nr\r\n", b"STORED\r\n")
    client.ask(b"get k rare\r\n", b"VALUE k 0 1\r\nx\r\nVALUE rare 0 1\r\nr\r\nEND\r\n")
    # The new pool answers, the old one helps; then the new one alone.
    during = example("migrate_by_time", proxy_arg="switch_%d:done_%d" % (now - 1000, now + 2000)).client()
    during.ask(b"get k rare\r\n", b"VALUE k 0 3\r\nnew\r\nVALUE rare 0 1\r\nr\r\nEND\r\n")
    during.ask(b"set both 0 0 1\r\nb\r\n", b"STORED\r\n")
    old.ask(b"get both\r\n", b"VALUE both 0 1\r\nb\r\nEND\r\n")
    after = example("migrate_by_time", proxy_arg="switch_%d:done_%d" % (now - 2000, now - 1000)).client()
    after.ask(b"get k rare both\r\n", b"VALUE k 0 3\r\nnew\r\nVALUE both 0 1\r\nb\r\nEND\r\n")
    after.ask(b"set late 0 0 1\r\nl\r\n", b"STORED\r\n")
    old.ask(b"get late\r\n", b"END\r\n")


def test_migrate_by_time_switches_by_itself(example):
    switch = int(time.time()) + 3
    run = example("migrate_by_time", proxy_arg="switch_%d:done_%d" % (switch, switch + 1))
    client = run.client()
    client.ask(b"set k 0 0 1\r\nx\r\n", b"STORED\r\n")
    run.direct(holder(run, (11321, 11322), b"k")).ask(b"set k 0 0 1\r\nn\r\n", b"STORED\r\n")
    run.direct(11311).ask(b"set rare 0 0 1\r\nr\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n")
    assert time.time() < switch, "the machine was too slow for this test"
    wait_for(lambda: (client.send(b"mg k v\r\n"), client.expect(b"VA 1\r\n"), client.receive_line())[2] == b"n\r\n", 8,
             "reads come from the new pool")
    assert time.time() >= switch
    wait_for(lambda: client.ask_line(b"mg rare\r\n") == b"EN\r\n", 8, "the old pool is not asked any more")
    assert time.time() >= switch + 1


def test_migrate_by_time_needs_its_times(example):
    with pytest.raises(AssertionError, match="proxy_arg must say switch"):
        example("migrate_by_time")


def test_rate_limit(example):
    run = example("rate_limit", workers=2)
    clients = [run.client() for _ in range(4)]
    begin = time.monotonic()
    answers = []
    for client in clients:
        client.send(b"mg batch:k\r\n" * 10)
    for client in clients:
        answers += [client.receive_line() for _ in range(10)]
    seconds = time.monotonic() - begin
    assert set(answers) == {b"EN\r\n", b"SERVER_ERROR rate limit reached\r\n"}
    passed = answers.count(b"EN\r\n")
    assert 10 <= passed <= 10 + 10 * int(seconds + 1)
    assert run.counter("limited") == 40 - passed
    # A refused value does not shift the stream; others are not touched.
    client = clients[0]
    client.send(b"set batch:k 0 0 5\r\nvalue\r\n" * 30)
    lines = [client.receive_line() for _ in range(30)]
    assert b"SERVER_ERROR rate limit reached\r\n" in lines
    client.ask(b"mg web:k\r\n" * 200, b"EN\r\n" * 200)
    client.ask(b"mg none\r\n" * 200, b"EN\r\n" * 200)
    # Tokens come back.
    wait_for(lambda: client.ask_line(b"mg batch:none\r\n") == b"EN\r\n", 5, "the budget is refilled")


def test_shadow(example):
    run = example("shadow")
    client, shadow = run.client(), run.direct(11321)
    client.ask(b"set k 3 0 1\r\nx\r\n", b"STORED\r\n")
    wait_for(lambda: shadow.ask_line(b"mg k\r\n") == b"HD\r\n", 5, "the write is repeated")
    assert run.counter("shadow_sent") == 1 and run.counter("shadow_failed") == 0
    shadow.ask(b"delete k\r\n", b"DELETED\r\n")
    run.freeze(11321)
    begin = time.monotonic()
    client.ask(b"get k\r\n" * 20, b"VALUE k 3 1\r\nx\r\nEND\r\n" * 20)
    assert time.monotonic() - begin < TIMELY_SECONDS
    run.servers[11321].thaw()
    run.wait_counter("shadow_differs", 20)
    assert run.counter("shadow_failed") == 0
    run.freeze(11321)
    client.ask(b"get k\r\n", b"VALUE k 3 1\r\nx\r\nEND\r\n")
    run.wait_counter("shadow_failed", 1)  # It has not answered within its read timeout.
    run.servers[11321].kill()
    client.ask(b"get k\r\n" * 20, b"VALUE k 3 1\r\nx\r\nEND\r\n" * 20)
    run.wait_counter("shadow_failed", 21)
    assert run.counter("shadow_sent") == 42


def test_near_cache(example):
    run = example("near_cache", "-m", "64")
    client = run.client()
    client.ask(b"set k 9 0 1\r\nx\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 9 1\r\nx\r\nEND\r\n")
    assert run.counter("local_hits") == 0
    home = run.direct(holder(run, (11311, 11312), b"k"))
    home.ask(b"set k 0 0 3\r\nnew\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 9 1\r\nx\r\nEND\r\n")
    client.ask(b"mg k v f\r\n", b"VA 1 f9\r\nx\r\n")
    assert run.counter("local_hits") == 2
    # What asks for more goes to the server; what changes the item drops the copy.
    client.ask(b"gets k\r\n", b"VALUE k 0 3 {n}\r\nnew\r\nEND\r\n")
    client.ask(b"mg k v c\r\n", b"VA 3 c{n}\r\nnew\r\n")
    client.ask(b"append k 0 0 1\r\n!\r\n", b"STORED\r\n")
    client.ask(b"get k\r\n", b"VALUE k 0 4\r\nnew!\r\nEND\r\n")
    client.ask(b"delete k\r\n", b"DELETED\r\n")
    client.ask(b"get k\r\nmg k v\r\n", b"END\r\nEN\r\n")
    # Copies end by themselves.
    client.ask(b"set old 0 0 1\r\nx\r\n", b"STORED\r\n")
    client.ask(b"get old\r\n", b"VALUE old 0 1\r\nx\r\nEND\r\n")
    run.direct(holder(run, (11311, 11312), b"old")).ask(b"set old 0 0 1\r\ny\r\n", b"STORED\r\n")
    wait_for(lambda: (client.send(b"mg old v\r\n"), client.expect(b"VA 1\r\n"), client.receive_line())[2] == b"y\r\n", 9,
             "the copy expires")
    for server in run.servers.values():
        server.kill()
    client.ask(b"get old\r\n", b"VALUE old 0 1\r\ny\r\nEND\r\n")
    client.ask(b"get nothing\r\n", b"SERVER_ERROR backend failure\r\n")


def test_every_example_has_a_test():
    tested = {name[len("test_"):] for name in globals() if name.startswith("test_")}
    assert {file.stem for file in EXAMPLES.glob("*.lua")} <= tested
    assert len(list(EXAMPLES.glob("*.lua"))) == 10
