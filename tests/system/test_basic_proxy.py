"""Every command through a pool over two memcached servers, byte for byte, in every arrangement of bytes."""

import random
import time

import pytest

from support import dialogues
from support.kvferry import pool, running
from support.memcached import Memcached
from support.wire import Wire, storage, value_reply

PAUSE_SECONDS = 0.0007  # Between the pieces of a request, so that the server reads them apart.


def names(table):
    return [dialogue.name for dialogue in table]


@pytest.fixture(scope="module")
def proxy(io, tmp_path_factory):
    """A pool over two servers, shared by the tests of this file."""
    with running(tmp_path_factory.mktemp("basic-" + io), io, 2) as server:
        yield server


@pytest.fixture
def client(proxy):
    with Wire(proxy.port()) as connection:
        yield connection


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    server = Memcached(tmp_path_factory.mktemp("plain"))
    yield server
    server.stop()


# The tables themselves, against what they describe.

@pytest.mark.parametrize("dialogue", [each for each in dialogues.ALL if not each.not_direct], ids=lambda each: each.name)
def test_dialogue_holds_for_memcached(plain, dialogue):
    with Wire(plain.port) as connection:
        connection.send(dialogue.clear)
        for request, reply in dialogue.steps:
            connection.ask(request, reply)
        connection.expect_in_step()


# Step by step, then pipelined.

@pytest.mark.parametrize("dialogue", dialogues.ALL, ids=names(dialogues.ALL))
def test_dialogue_step_by_step(client, dialogue):
    client.send(dialogue.clear)
    for request, reply in dialogue.steps:
        client.ask(request, reply)
    client.expect_in_step()


@pytest.mark.parametrize("dialogue", dialogues.ALL, ids=names(dialogues.ALL))
def test_dialogue_in_one_write(client, dialogue):
    client.ask(dialogue.request, dialogue.reply)
    client.expect_in_step()


@pytest.mark.parametrize("seed", range(5))
def test_pipelines_of_any_mix_keep_their_order(client, seed):
    """The whole table in random order, many times, in one stream of pieces of random size."""
    chance = random.Random(seed)
    order = [dialogue for dialogue in dialogues.ALL if dialogue.steady] * 4
    chance.shuffle(order)
    request = b"".join(dialogue.request for dialogue in order)
    while request:
        size = chance.choice([1, 7, 100, 1000, 20000])
        client.send(request[:size])
        request = request[size:]
    for dialogue in order:
        client.expect(dialogue.reply)
    client.expect_in_step()


# Cut anywhere.

def wide_request():
    """Most commands once, in few bytes."""
    chosen = ("get", "append", "incr", "noreply", "ms", "ma", "mg vivify", "unknown", "delete")
    table = [dialogue for dialogue in dialogues.ALL if dialogue.name in chosen]
    return (b"".join(dialogue.request for dialogue in table) + b"mn\r\n",
            b"".join(dialogue.reply for dialogue in table) + b"MN\r\n")


def test_cut_in_two_at_every_place(proxy):
    request, reply = wide_request()
    with Wire(proxy.port()) as connection:
        for cut in range(1, len(request)):
            connection.send(request[:cut])
            time.sleep(PAUSE_SECONDS)
            connection.send(request[cut:])
            connection.expect(reply)


def test_byte_by_byte(client):
    request, reply = wide_request()
    for position in range(len(request)):
        client.send(request[position:position + 1])
        time.sleep(PAUSE_SECONDS)
    client.expect(reply)
    client.expect_in_step()


# Several keys.

@pytest.mark.parametrize("count", [1, 2, 3, 10, 100, 1000])
def test_multi_key_get_answers_in_the_order_of_the_request(client, count):
    """Every third key is a miss, some keys stand twice."""
    keys = ["many-%d-%d" % (count, number) for number in range(count)]
    values = {key: ("v" * (number % 50)).encode() + key.encode() for number, key in enumerate(keys) if number % 3}
    client.send(b"".join(storage("set", key, value, number, tail="noreply") for number, (key, value) in enumerate(values.items())))
    flags = {key: number for number, key in enumerate(values)}
    client.expect_in_step()
    asked = keys + keys[:count // 4]
    random.Random(count).shuffle(asked)
    hits = b"".join(value_reply(key, values[key], flags[key]) for key in asked if key in values)
    client.ask(("get %s\r\n" % " ".join(asked)).encode(), hits + b"END\r\n")
    client.ask(("gat 0 %s\r\n" % " ".join(asked)).encode(), hits + b"END\r\n")
    client.expect_in_step()


def test_blanks_of_a_gat_line_do_not_reach_a_backend(client):
    """memcached closes a connection on a line of gat of over 2048 bytes that it has not got whole."""
    client.ask(storage("set", "blank", b"v"), b"STORED\r\n")
    client.ask(b"gat 0 " + b" " * 300_000 + b"blank\r\n", value_reply("blank", b"v") + b"END\r\n")
    client.ask(b"gat" + b" " * 300_000 + b"0 blank blank\r\n", 2 * value_reply("blank", b"v") + b"END\r\n")
    client.expect_in_step()


def test_both_backends_have_keys(proxy, client):
    for number in range(100):
        client.ask(storage("set", "spread-%d" % (number * number * 7919), b"x"), b"STORED\r\n")
    for backend in proxy.backends:
        with Wire(backend.port) as direct:
            keys = " ".join("spread-%d" % (number * number * 7919) for number in range(100))
            direct.send(("get %s\r\nmn\r\n" % keys).encode())
            lines = 0
            while direct.receive_line() != b"MN\r\n":
                lines += 1
            assert lines > 2 * 15, "a backend has next to nothing"


def test_get_line_of_9000_keys(client):
    keys = ["wide%05d" % number for number in range(9000)]
    client.ask(storage("set", keys[0], b"first") + storage("set", keys[-1], b"last"), b"STORED\r\nSTORED\r\n")
    client.ask(("get %s\r\n" % " ".join(keys)).encode(),
               value_reply(keys[0], b"first") + value_reply(keys[-1], b"last") + b"END\r\n")
    client.expect_in_step()


def test_pipelined_multi_gets_do_not_mix(client):
    keys = ["mix-%d" % number for number in range(64)]
    for key in keys:
        client.ask(storage("set", key, key.encode() * 10), b"STORED\r\n")
    chance = random.Random(11)
    request, reply = b"", b""
    for _ in range(500):
        asked = [chance.choice(keys) for _ in range(chance.randint(1, 20))]
        request += ("get %s\r\n" % " ".join(asked)).encode()
        reply += b"".join(value_reply(key, key.encode() * 10) for key in asked) + b"END\r\n"
    client.ask(request, reply)


# Sizes.

@pytest.mark.parametrize("size", [0, 1, 1000, 16383, 16384, 65535, 65536, 65537, 200_000, 1_000_000])
def test_values_of_any_size_and_any_bytes(client, size):
    value = random.Random(size).randbytes(size)
    key = "size-%d" % size
    client.ask(storage("set", key, value, 5), b"STORED\r\n")
    client.ask(("get %s\r\n" % key).encode(), value_reply(key, value, 5) + b"END\r\n")
    client.ask(("mg %s v\r\n" % key).encode(), b"VA %d\r\n%s\r\n" % (size, value))
    client.expect_in_step()


def test_big_values_in_pieces_of_any_size(client):
    value = random.Random(3).randbytes(300_000)
    request = storage("set", "pieces", value)
    position = 0
    for size in (1, 10, 5, 65_500, 1, 65_536, 100_000, 300_000):
        client.send(request[position:position + size])
        position += size
        time.sleep(0.005)
    client.expect(b"STORED\r\n")
    client.ask(b"get pieces\r\n", value_reply("pieces", value) + b"END\r\n")


def test_multi_key_get_with_big_values(client):
    values = {"big-%d" % number: random.Random(number).randbytes(100_000 + number) for number in range(20)}
    for key, value in values.items():
        client.ask(storage("set", key, value), b"STORED\r\n")
    client.ask(("get %s\r\n" % " ".join(values)).encode(),
               b"".join(value_reply(key, value) for key, value in values.items()) + b"END\r\n")
    client.expect_in_step()


def test_value_too_large_for_the_backend_keeps_the_connection(client):
    """The backend's own words come back, and the pipeline behind stays in step."""
    client.ask(storage("set", "small", b"x"), b"STORED\r\n")
    request = storage("set", "huge", b"h" * 1_100_000) + b"get small\r\n"
    client.ask(request, b"SERVER_ERROR object too large for cache\r\n" + value_reply("small", b"x") + b"END\r\n")
    client.expect_in_step()


# Limits and bad lines.

@pytest.mark.parametrize("size, reply", [(249, b"STORED\r\n"), (250, b"STORED\r\n"), (251, b"CLIENT_ERROR key too long\r\n")])
def test_key_length(client, size, reply):
    client.ask(storage("set", "k" * size, b"value"), reply)
    client.expect_in_step()


def test_long_key_in_a_get(client):
    client.ask(b"get %s\r\n" % (b"k" * 251), b"CLIENT_ERROR key too long\r\n")
    client.expect_in_step()


def test_line_too_long_keeps_the_connection(client):
    client.ask(b"touch x %s\r\n" % (b"1" * 3000), b"CLIENT_ERROR line too long\r\n")
    client.expect_in_step()


@pytest.mark.parametrize("line", [b"\r\n", b"\n", b" \r\n", b"set\r\n", b"set a\r\n", b"set a 0 0\r\n", b"set a 0 0 -1\r\n", b"set a 0 0 x\r\n",
                                  b"incr a\r\n", b"touch a\r\n", b"delete\r\n", b"gat\r\n", b"gat 0\r\n", b"mg\r\n", b"ms a\r\n",
                                  b"ms a x\r\n", b"cas a 0 0\r\n", b"\0\r\n", b"get\t\r\n"])
def test_bad_line_gets_one_error_and_keeps_the_connection(client, line):
    reply = client.ask_line(line)
    assert reply.startswith((b"ERROR", b"CLIENT_ERROR ")), reply
    client.expect_in_step()


@pytest.mark.parametrize("request_bytes, reply", [
    (b"get\r\n", b"CLIENT_ERROR parsing request\r\n"),
    (b"\r\n", b"CLIENT_ERROR parsing request\r\n"),
    # The bytes behind the announced length are read as a command, here an empty one.
    (b"set a 0 0 2\r\nabcd\r\n", b"CLIENT_ERROR bad data chunk\r\nCLIENT_ERROR parsing request\r\n"),
])
def test_error_texts_of_a_proxy(client, request_bytes, reply):
    client.ask(request_bytes, reply)
    client.expect_in_step()


# Lines of which a memcached reads the value as commands: each would shift the replies on the shared connection to it.
TRAPS = [b"set %s x 0 5", b"set %s 0 x 5", b"set %s -1 0 5", b"set %s 4294967296 0 5", b"set %s 0 99999999999 5", b"set %s 0 0 5 a b c d",
         b"set %s 0 0 5x", b"set %s 0 0 5 x", b"cas %s 0 0 5", b"cas %s 0 0 5 x", b"cas %s 0 0 5 -1", b"add %s 0 0 5 noreply noreply",
         b"ms %s 5 Tx", b"ms %s 5 Fx", b"ms %s 5 MZ", b"ms %s 5 Cx", b"ms %s 5 T1 T2", b"ms %s 5 !", b"ms %s 5 " + b"I " * 30,
         b"ms %s 5 b", b"ms %s 5x", b"ms %s S5", b"set %s\0x 0 0 5", b"ms %s\0 5"]


@pytest.mark.parametrize("line", TRAPS, ids=lambda line: line.decode()[:30])
def test_a_malformed_storage_line_does_not_shift_the_replies_behind_it(client, line):
    """For many keys, so that both connections to backends carry it, and requests of others on the same connection."""
    keys = [b"trap-%d" % (number * number * 7919) for number in range(8)]
    for key in keys:
        client.ask(storage("set", key.decode(), key * 3), b"STORED\r\n")
    hits = b"".join(value_reply(key.decode(), key * 3) + b"END\r\n" for key in keys)
    for number in range(20):
        client.send(line % (b"victim-%d" % (number * number * 7919)) + b"\r\nget x\r\nmn\r\n" + b"".join(b"get %s\r\n" % key for key in keys))
        lines = 0
        while client.receive_line() != b"MN\r\n":
            lines += 1
        assert lines <= 2, "more replies than requests"
        client.expect(hits)
    client.expect_in_step()


def test_version_and_quit(client):
    assert client.ask_line(b"version\r\n").startswith(b"VERSION ")
    client.send(b"mn\r\nquit\r\nmn\r\n")
    client.expect_closed(b"MN\r\n")


# Many clients.

def test_clients_on_all_workers_see_the_same_data(proxy):
    clients = [Wire(proxy.port()) for _ in range(32)]
    try:
        for number, each in enumerate(clients):
            each.ask(storage("set", "seen-%d" % number, b"%d" % number), b"STORED\r\n")
        for each in clients:
            reply = b"".join(value_reply("seen-%d" % number, b"%d" % number) for number in range(32))
            each.ask(b"get %s\r\n" % b" ".join(b"seen-%d" % number for number in range(32)), reply + b"END\r\n")
    finally:
        for each in clients:
            each.close()


def test_flags_of_nutcracker_that_do_nothing_are_named_in_the_log(kvferry):
    started = kvferry(pool("main", ["127.0.0.1:1:1"]), "-s", "22222", "-i", "30000", "-a", "0.0.0.0")
    started.wait_log(r'no effect.* flags="-s -i -a"')
