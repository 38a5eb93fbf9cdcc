"""Backends that lie about lengths, answer garbage, stop in the middle, or answer when nobody asked."""

import threading

import pytest

from support.fake_backend import answer_get, serve_gets
from support.kvferry import one_worker, pool
from support.process import wait_for
from support.wire import Wire

TIMEOUT_MS = 300


def start(kvferry, backend, **keys):
    options = {"timeout": TIMEOUT_MS, "server_retry_timeout": 100, "server_failure_limit": 1000}
    options.update(keys)
    return kvferry(one_worker(pool("main", [backend.port], **options)))


def is_right(client, key: bytes) -> bool:
    """Asks for one key: the right value, or an error. Anything else fails the test."""
    line = client.ask_line(b"get %s\r\n" % key)
    if line.startswith(b"SERVER_ERROR"):
        return False
    expected = answer_get(b"get " + key)
    rest = client.receive(len(expected) - len(line))
    assert line + rest == expected
    return True


LIES = {
    "length too small": b"VALUE k 0 2\r\nvalue\r\nEND\r\n",
    "length too large": b"VALUE k 0 50\r\nvalue\r\nEND\r\n",
    "length negative": b"VALUE k 0 -1\r\nvalue\r\nEND\r\n",
    "length huge": b"VALUE k 0 99999999999999999999\r\nvalue\r\nEND\r\n",
    "length over 64 bits": b"VALUE k 0 18446744073709551617\r\nv\r\nEND\r\n",
    "length missing": b"VALUE k 0\r\nvalue\r\nEND\r\n",
    "no terminator": b"VALUE k 0 5\r\nvalueXXEND\r\n",
    "garbage": b"\0\1\2 complete nonsense\r\n",
    "line without end": b"V" * 5000,
    "binary protocol": bytes([0x81, 0x0B]) + bytes(22),
    "redis": b"-ERR unknown command\r\n",
    "answer to a set": b"STORED\r\n",
    "meta answer": b"HD\r\n",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_a_lying_reply_is_an_error_for_its_request_only(kvferry, fake_backend, lie):
    """The first connection lies once; every later answer, to anyone, is right."""
    def serve(connection):
        if connection.index > 0:
            serve_gets(connection)
        while True:
            request = connection.read_request()
            if b" k" in request:
                connection.send(lie)
                # Stays open: the proxy has to find out by itself, or by its timeout.
            else:
                connection.send(answer_get(request) if request.startswith(b"get") else b"MN\r\n")

    backend = fake_backend(serve)
    proxy = start(kvferry, backend)
    with Wire(proxy.port()) as victim, Wire(proxy.port()) as other:
        assert is_right(other, b"before")
        victim.send(b"get k\r\nget after\r\n")
        assert victim.receive_line().startswith(b"SERVER_ERROR ")
        # The request behind was written to the same connection, so it may fail with it; it may not be wrong.
        line = victim.receive_line()
        if not line.startswith(b"SERVER_ERROR "):
            expected = answer_get(b"get after")
            assert line + victim.receive(len(expected) - len(line)) == expected
        victim.expect_silence(0.05)
        wait_for(lambda: is_right(other, b"other"), 3, "the backend is used again")
        for number in range(30):
            assert is_right(other, b"fine-%d" % number)
    assert not backend.failures


@pytest.mark.parametrize("size", [10, 100, 70_000, 500_000])
def test_a_backend_that_closes_in_the_middle_of_a_value(kvferry, fake_backend, size):
    """Nobody gets a value that is shorter than announced and looks whole."""
    value = b"v" * size

    def serve(connection):
        while True:
            request = connection.read_request()
            if b" torn" in request:
                connection.send(b"VALUE torn 0 %d\r\n" % size + value[:size // 2])
                return
            connection.send(answer_get(request))

    backend = fake_backend(serve)
    proxy = start(kvferry, backend)
    with Wire(proxy.port()) as client:
        client.send(b"get fine\r\nget torn\r\nmn\r\n")
        client.expect(answer_get(b"get fine"))
        answer = client.receive_line()
        if answer.startswith(b"VALUE"):
            # Streamed already: the only honest end is to close the connection before the value is complete.
            rest = client.receive_all()
            assert len(rest) <= size // 2 and b"END" not in rest
        else:
            assert answer.startswith(b"SERVER_ERROR "), answer
            client.expect(b"MN\r\n")
    with Wire(proxy.port()) as client:
        wait_for(lambda: is_right(client, b"later"), 3, "the backend is used again")


def test_late_answers_are_dropped_with_their_connection(kvferry, fake_backend):
    """The first answer of each connection comes long after the timeout, together with the next."""
    release = threading.Event()

    def serve(connection):
        if connection.index > 0:
            serve_gets(connection)
        request = connection.read_request()
        release.wait(5)
        connection.send(answer_get(request))
        serve_gets(connection)

    backend = fake_backend(serve)
    proxy = start(kvferry, backend)
    with Wire(proxy.port()) as client:
        assert client.ask_line(b"get late\r\n").startswith(b"SERVER_ERROR ")
        release.set()
        wait_for(lambda: is_right(client, b"next"), 3, "the backend is used again")
        for number in range(50):
            assert is_right(client, b"key-%d" % number)


def test_bytes_that_nobody_asked_for_do_not_answer_the_next_request(kvferry, fake_backend):
    def serve(connection):
        while True:
            request = connection.read_request()
            # In one piece, so that it is there before the next request can be written.
            unasked = b"VALUE next 0 5\r\nwrong\r\nEND\r\n" if b"trigger" in request else b""
            connection.send(answer_get(request) + unasked)

    backend = fake_backend(serve)
    proxy = start(kvferry, backend)
    with Wire(proxy.port()) as client:
        for _ in range(10):
            is_right(client, b"trigger")
            wait_for(lambda: is_right(client, b"next"), 3, "a right answer")


def test_answers_byte_by_byte(kvferry, fake_backend):
    def serve(connection):
        while True:
            for byte in answer_get(connection.read_request()):
                connection.send(bytes([byte]))

    backend = fake_backend(serve)
    proxy = start(kvferry, backend, timeout=3000)
    with Wire(proxy.port()) as client:
        client.ask(b"get a b c\r\nget d\r\n", answer_get(b"get a b c") + answer_get(b"get d"))


def test_error_lines_of_a_backend_come_back_as_it_said_them(kvferry, fake_backend):
    """And the connection to it stays in step behind them."""
    errors = [b"SERVER_ERROR out of memory storing object\r\n", b"CLIENT_ERROR bad data chunk\r\n", b"ERROR\r\n"]

    def serve(connection):
        while True:
            request = connection.read_request()
            number = request.split()[1] if request.startswith(b"touch") else b""
            connection.send(errors[int(number)] if number else answer_get(request))

    backend = fake_backend(serve)
    proxy = start(kvferry, backend)
    with Wire(proxy.port()) as client:
        for number, error in enumerate(errors):
            client.ask(b"touch %d 0\r\n" % number, error)
            wait_for(lambda: is_right(client, b"between"), 3, "a right answer")


def test_one_failed_part_of_a_multi_get_is_one_error_line(kvferry, fake_backend):
    """on_partial: error is the default: one SERVER_ERROR line for the whole, and no value before it."""
    def serve_never(connection):
        while True:
            connection.read_request()

    healthy, silent = fake_backend(serve_gets), fake_backend(serve_never)
    proxy = kvferry(pool("main", [healthy.port, silent.port], timeout=TIMEOUT_MS))
    keys = b" ".join(b"part-%d" % (number * number * 7919) for number in range(50))
    with Wire(proxy.port()) as client:
        assert client.ask_line(b"get %s\r\n" % keys).startswith(b"SERVER_ERROR ")
        client.expect_in_step()


@pytest.mark.parametrize("rule", ["element", "null"])
def test_other_rules_for_a_failed_part(kvferry, fake_backend, rule):
    def serve_never(connection):
        while True:
            connection.read_request()

    healthy, silent = fake_backend(serve_gets), fake_backend(serve_never)
    proxy = kvferry(pool("main", [healthy.port, silent.port], timeout=TIMEOUT_MS, on_partial=rule))
    keys = [b"part-%d" % (number * number * 7919) for number in range(50)]
    with Wire(proxy.port()) as client:
        client.send(b"get %s\r\n" % b" ".join(keys))
        hits, errors = 0, 0
        while True:
            line = client.receive_line()
            if line == b"END\r\n":
                break
            if line.startswith(b"SERVER_ERROR"):
                errors += 1
            else:
                key = line.split()[1]
                assert client.receive(len(key) + 11) == b"value-of-" + key + b"\r\n"
                hits += 1
        assert 0 < hits < 50
        assert errors == (50 - hits if rule == "element" else 0)
        client.expect_in_step()
