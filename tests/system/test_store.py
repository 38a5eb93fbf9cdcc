"""With no pool at all: the embedded store, spoken to as a memcached."""

import os
import random
import subprocess
import time

import pytest

from support import dialogues
from support.kvferry import program, running, store
from support.load import assert_clean, run_load
from support.process import IS_SANITIZED, Process, is_listening
from support.wire import Wire, storage, value_reply

DEFAULT_PORT = 11211


@pytest.fixture(scope="module")
def server(io, tmp_path_factory):
    with running(tmp_path_factory.mktemp("store-" + io), io, 0) as embedded:
        yield embedded


@pytest.fixture
def client(server):
    with Wire(server.port()) as connection:
        yield connection


def stats_of(client, what: bytes = b"") -> dict:
    client.send(b"stats" + (b" " + what if what else b"") + b"\r\n")
    found = {}
    while True:
        line = client.receive_line()
        if line == b"END\r\n":
            return found
        assert line.startswith(b"STAT "), line
        word, name, value = line.rstrip(b"\r\n").split(b" ", 2)
        assert word == b"STAT"
        found[name.decode()] = value.decode()


@pytest.mark.parametrize("dialogue", dialogues.ALL, ids=lambda each: each.name)
def test_dialogue_step_by_step(client, dialogue):
    client.send(dialogue.clear)
    for request, reply in dialogue.steps:
        client.ask(request, reply)
    client.expect_in_step()


@pytest.mark.parametrize("dialogue", dialogues.ALL, ids=lambda each: each.name)
def test_dialogue_in_one_write(client, dialogue):
    client.ask(dialogue.request, dialogue.reply)
    client.expect_in_step()


def test_byte_by_byte(client):
    table = [dialogue for dialogue in dialogues.CLASSIC if dialogue.steady and dialogue.name != "binary value"]
    for dialogue in table:
        for position in range(len(dialogue.request)):
            client.send(dialogue.request[position:position + 1])
        client.expect(dialogue.reply)
    client.expect_in_step()


@pytest.mark.parametrize("size", [0, 1, 65535, 65536, 65537, 500_000, 1_000_000])
def test_values_of_any_size(client, size):
    value = random.Random(size).randbytes(size)
    client.ask(storage("set", "size", value, 9), b"STORED\r\n")
    client.ask(b"get size\r\n", value_reply("size", value, 9) + b"END\r\n")


def test_value_over_the_limit_is_swallowed_and_the_old_one_removed(client):
    client.ask(storage("set", "huge", b"old"), b"STORED\r\n")
    client.ask(storage("set", "huge", b"h" * (1 << 20)) + b"get huge\r\n", b"SERVER_ERROR object too large for cache\r\nEND\r\n")
    client.expect_in_step()


@pytest.mark.parametrize("command", ["get", "gat 0", "mg"])
@pytest.mark.parametrize("part", [5_000, 900_000])
def test_writes_behind_a_wide_get_do_not_change_what_it_brings(server, command, part):
    """The client does not read while the reply is made: most keys are looked up only when it does."""
    count = 16_000_000 // part
    with Wire(server.port(), receive_buffer=4096) as connection:
        value = b"v" * part
        for index in range(count):
            connection.ask(storage("set", "wide%d" % index, value), b"STORED\r\n")
        last = "wide%d" % (count - 1)
        if command == "mg":
            reads = b"".join(b"mg wide%d v\r\n" % index for index in range(count))
            reply = (b"VA %d\r\n%s\r\n" % (part, value)) * count
        else:
            reads = command.encode() + b"".join(b" wide%d" % index for index in range(count)) + b"\r\n"
            reply = b"".join(value_reply("wide%d" % index, value) for index in range(count)) + b"END\r\n"
        connection.send(reads + storage("set", last, b"new") + b"get %s\r\n" % last.encode())
        time.sleep(0.2)
        connection.expect(reply + b"STORED\r\n" + value_reply(last, b"new") + b"END\r\n")
        connection.expect_in_step()


@pytest.mark.parametrize("command, tail", [("add", ""), ("replace", ""), ("append", ""), ("cas", "5")])
@pytest.mark.parametrize("more", [-10, 1])
def test_value_over_the_limit_leaves_the_old_one_to_others_than_set(client, command, tail, more):
    client.ask(storage("set", "huge", b"old"), b"STORED\r\n")
    client.ask(storage(command, "huge", b"h" * ((1 << 20) + more), tail=tail), b"SERVER_ERROR object too large for cache\r\n")
    client.ask(b"get huge\r\n", value_reply("huge", b"old") + b"END\r\n")


@pytest.mark.parametrize("request_bytes, reply", [
    (b"get\r\n", b"CLIENT_ERROR bad command line format\r\n"),
    (b"\r\n", b"CLIENT_ERROR bad command line format\r\n"),
    # The bytes behind the announced length are read as a command, here an empty one.
    (b"set a 0 0 2\r\nabcd\r\n", b"CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR bad command line format\r\n"),
])
def test_error_texts_of_a_server(client, request_bytes, reply):
    client.ask(request_bytes, reply)
    client.expect_in_step()


def test_cas_numbers_grow_and_decide(client):
    client.ask(storage("set", "c", b"1"), b"STORED\r\n")
    client.send(b"gets c\r\n")
    number = int(client.receive_line().split()[4])
    client.expect(b"1\r\nEND\r\n")
    client.ask(storage("cas", "c", b"2", tail=str(number)), b"STORED\r\n")
    client.ask(storage("cas", "c", b"3", tail=str(number)), b"EXISTS\r\n")
    client.send(b"gets c\r\n")
    assert int(client.receive_line().split()[4]) > number
    client.expect(b"2\r\nEND\r\n")


def test_expiry(client):
    client.ask(storage("set", "soon", b"x", ttl=1), b"STORED\r\n")
    client.ask(storage("set", "past", b"x", ttl=int(time.time()) - 10), b"STORED\r\n")
    client.ask(storage("set", "future", b"x", ttl=int(time.time()) + 100), b"STORED\r\n")
    client.ask(b"get past\r\n", b"END\r\n")
    client.ask(b"get future\r\n", value_reply("future", b"x") + b"END\r\n")
    time.sleep(2.1)
    client.ask(b"get soon\r\n", b"END\r\n")


def test_flush_all(client):
    client.ask(storage("set", "f", b"x"), b"STORED\r\n")
    time.sleep(1.1)  # Items of the same second may survive.
    client.ask(b"flush_all\r\n", b"OK\r\n")
    client.ask(b"get f\r\n", b"END\r\n")
    client.ask(storage("set", "g", b"x") + b"flush_all 0 noreply\r\nmn\r\n", b"STORED\r\nMN\r\n")
    client.ask(b"flush_all x\r\n", b"CLIENT_ERROR invalid exptime argument\r\n")


def test_verbosity_and_version(client):
    client.ask(b"verbosity 1\r\n", b"OK\r\n")
    client.ask(b"verbosity\r\n", b"CLIENT_ERROR bad command line format\r\n")
    assert client.ask_line(b"version\r\n").startswith(b"VERSION ")


def test_stats_count(client, server):
    before = stats_of(client)
    for name in ("pid", "uptime", "time", "version", "pointer_size", "curr_connections", "total_connections", "cmd_get", "cmd_set",
                 "get_hits", "get_misses", "curr_items", "total_items", "bytes", "limit_maxbytes", "evictions", "threads"):
        assert name in before, name
    assert before["pid"] == str(server.process.pid)
    client.ask(storage("set", "counted", b"x"), b"STORED\r\n")
    client.ask(b"get counted nothing\r\n", value_reply("counted", b"x") + b"END\r\n")
    after = stats_of(client)
    for name, more in (("cmd_set", 1), ("get_hits", 1), ("get_misses", 1), ("cmd_get", 2), ("total_items", 1)):
        assert int(after[name]) == int(before[name]) + more, name
    assert stats_of(client, b"settings")
    client.ask(b"stats nonsense\r\n", b"ERROR\r\n")
    client.ask(b"stats reset\r\n", b"RESET\r\n")
    assert int(stats_of(client)["cmd_set"]) == 0


def test_memory_limit_evicts_and_keeps_what_is_in_use(kvferry):
    """Four times as much as fits: no error, memory bounded, the newest and the busy keys are there."""
    limit_mb = 32
    server = kvferry(store(memory="%dmb" % limit_mb))
    with Wire(server.port(), seconds=20) as client:
        client.ask(storage("set", "busy", b"b" * 1000), b"STORED\r\n")
        count = 4 * limit_mb * 1024
        for start in range(0, count, 1024):
            client.send(b"".join(storage("set", "item-%d" % number, b"v" * 1000, tail="noreply") for number in range(start, start + 1024)))
            client.ask(b"get busy\r\n", value_reply("busy", b"b" * 1000) + b"END\r\n")
        client.ask(b"get item-%d\r\n" % (count - 1), value_reply("item-%d" % (count - 1), b"v" * 1000) + b"END\r\n")
        client.ask(b"get item-0\r\n", b"END\r\n")
        stats = stats_of(client)
        assert int(stats["evictions"]) > count // 2
        assert int(stats["limit_maxbytes"]) == limit_mb << 20
        assert int(stats["bytes"]) <= limit_mb << 20
    if not IS_SANITIZED:  # Sanitizers keep what was freed, and add memory of their own.
        assert server.process.rss_kb() < (limit_mb + 40) * 1024


def test_load_on_all_workers(server):
    assert_clean(run_load(server.port(), op="fill", keys=5000))
    for op in ("mix", "mget"):
        result = run_load(server.port(), op=op, keys=5000, seconds=1, warmup=0, depth=16, verify=True)
        assert_clean(result)
        assert result["misses"] == 0


def test_memccapable(server):
    done = subprocess.run(["memccapable", "-h", "127.0.0.1", "-p", str(server.port()), "-a"], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 0 and "[FAIL]" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_no_configuration_serves_the_default_port(io, tmp_path):
    if is_listening(DEFAULT_PORT):
        pytest.skip("something of this machine listens on port %d" % DEFAULT_PORT)
    server = Process([program(), "--io", io], tmp_path / "log", env=dict(os.environ), cwd=tmp_path)
    try:
        server.wait_listening(DEFAULT_PORT)
        with Wire(DEFAULT_PORT) as client:
            client.ask(b"set a 0 0 1\r\nx\r\nget a\r\n", b"STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n")
        assert server.terminate() == 0, server.output()
    finally:
        server.kill()
