"""Clients of Redis on the embedded store: replies as recorded from redis-server, the same keys for memcached's clients, and protocol
errors as a real server words them."""

import re
import time

import pytest

from support.kvferry import pool, store
from support.redis import bulk, recorded_replies, request, words_of
from support.wire import difference, shorten

AUTO = store("auto")
# Listeners that also understand inline requests are for Redis alone.
ONLY = """only:
  dialect: kvferry
  protocol: store
  listen:
   - { address: 127.0.0.1:0, protocol: redis }
"""
TTL_REPLY = re.compile(rb":(\d+)\r\n")
CLOSE_SECONDS = 3.0


def start_only(kvferry):
    """A store for clients of Redis alone; gives its port."""
    return kvferry(ONLY).port()


def is_as_recorded(line: str, got: bytes, wanted: bytes) -> bool:
    """The store ends items at whole seconds, rounded up (src/redis/README.md): a TTL may be one more."""
    if got == wanted:
        return True
    ours, theirs = TTL_REPLY.fullmatch(got), TTL_REPLY.fullmatch(wanted)
    return bool(line.lower().startswith("ttl ") and ours and theirs and int(ours[1]) == int(theirs[1]) + 1)


def check(pairs, replies):
    wrong = [(line, wanted, got) for (line, wanted), got in zip(pairs, replies) if not is_as_recorded(line, got, wanted)]
    assert not wrong, "%d differ: %s" % (len(wrong), "\n".join("%s: wanted %r, got %r" % each for each in wrong[:10]))
    assert len(pairs) > 250


@pytest.mark.parametrize("version", [2, 3])
class TestRecordedReplies:
    def test_one_by_one(self, kvferry, redis_wire, version):
        client = redis_wire(kvferry(AUTO).port(), version=version)
        pairs = recorded_replies("replies.txt", version)
        check(pairs, [client.command(*words_of(line)) for line, _ in pairs])
        client.expect_in_step()

    def test_byte_by_byte(self, kvferry, redis_wire, version):
        client = redis_wire(kvferry(AUTO).port(), version=version)
        pairs = recorded_replies("replies.txt", version)
        replies = []
        for line, _ in pairs:
            for byte in request(*words_of(line)):
                client.send(bytes([byte]))
            replies.append(client.receive_reply())
        check(pairs, replies)
        client.expect_in_step()

    def test_pipelined(self, kvferry, redis_wire, version):
        client = redis_wire(kvferry(AUTO).port(), version=version)
        pairs = recorded_replies("replies.txt", version)
        client.send(b"".join(request(*words_of(line)) for line, _ in pairs))
        check(pairs, [client.receive_reply() for _ in pairs])
        client.expect_in_step()

    def test_inline(self, kvferry, redis_wire, version):
        client = redis_wire(start_only(kvferry), version=version)
        pairs = recorded_replies("replies.txt", version)
        client.send(b"".join(line.encode() + b"\r\n" for line, _ in pairs))
        check(pairs, [client.receive_reply() for _ in pairs])
        client.expect_in_step()


def test_both_kinds_of_clients_see_the_same_keys(kvferry, redis_wire, wire):
    port = kvferry(AUTO).port()
    redis, memcached = redis_wire(port), wire(port)
    redis.ask(request("SET", "from:redis", "one\r\ntwo"), b"+OK\r\n")
    memcached.ask(b"get from:redis\r\n", b"VALUE from:redis 0 8\r\none\r\ntwo\r\nEND\r\n")
    memcached.ask(b"set from:memcached 5 100 3\r\nabc\r\n", b"STORED\r\n")
    redis.ask(request("GET", "from:memcached"), bulk(b"abc"))
    assert 95 < redis.value("TTL", "from:memcached") <= 101
    memcached.ask(b"set n 0 0 1\r\n5\r\n", b"STORED\r\n")
    redis.ask(request("INCRBY", "n", 10), b":15\r\n")
    memcached.ask(b"incr n 1\r\n", b"16\r\n")
    redis.ask(request("APPEND", "n", "!"), b":3\r\n")
    memcached.ask(b"append n 0 0 1\r\n?\r\n", b"STORED\r\n")
    redis.ask(request("MGET", "n", "nothing"), b"*2\r\n" + bulk(b"16!?") + b"$-1\r\n")
    redis.ask(request("DEL", "n"), b":1\r\n")
    memcached.ask(b"get n\r\n", b"END\r\n")
    memcached.ask(b"delete from:redis\r\n", b"DELETED\r\n")
    redis.ask(request("EXISTS", "from:redis", "from:memcached"), b":1\r\n")
    redis.ask(request("EXPIRE", "from:memcached", -1), b":1\r\n")
    memcached.ask(b"get from:memcached\r\n", b"END\r\n")
    redis.ask(request("FLUSHALL"), b"+OK\r\n")
    memcached.expect_in_step()


def test_a_key_ends_at_its_time(kvferry, redis_wire):
    client = redis_wire(kvferry(AUTO).port())
    client.ask(request("SET", "k", "v", "PX", 300), b"+OK\r\n")
    client.ask(request("GET", "k"), bulk(b"v"))
    end = time.monotonic() + 4
    while client.command("GET", "k") != b"$-1\r\n":
        assert time.monotonic() < end, "still there"
        time.sleep(0.05)


# What a server says to bytes that are no requests, and closes. Each is sent to both; section by section as the request parser reads them.
BROKEN = {
    "count that is no number": b"*x\r\n",
    "count with a blank": b"* 1\r\n",
    "count with a plus": b"*+1\r\n",
    "count beyond all": b"*2147483648\r\n",
    "count beyond 64 bits": b"*99999999999999999999\r\n",
    "element that is a number": b"*1\r\n:1\r\n",
    "element that is an array": b"*1\r\n*1\r\n",
    "element that is a word": b"*1\r\nPING\r\n",
    "second element": b"*2\r\n$4\r\nECHO\r\n+x\r\n",
    "length that is no number": b"*1\r\n$x\r\n",
    "length below zero": b"*1\r\n$-1\r\n",
    "length that is empty": b"*1\r\n$\r\n",
    "length above the limit": b"*1\r\n$536870913\r\n",
    "count line without end": b"*" + b"1" * 65_600,
    "length line without end": b"*1\r\n$" + b"1" * 65_600,
}
BROKEN_INLINE = {
    "unbalanced quotes": b'SET a "b\r\n',
    "unbalanced single quotes": b"SET a 'b\r\n",
    "bytes behind a quote": b'SET a "b"c\r\n',
    "inline without end": b"x" * 65_600,
}
# Bytes that are odd, and served.
ODD = {
    "empty array": b"*0\r\n",
    "array below zero": b"*-1\r\n",
    "much below zero": b"*-10\r\n",
    "empty bulk": b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    "nothing but an empty name": b"*1\r\n$0\r\n\r\n",
}
ODD_INLINE = {
    "empty line": b"\r\n\r\n",
    "no CR": b"PING\nECHO a\n",
    "blanks and tabs": b"  ECHO \t x  \r\n",
    "escapes": b'ECHO "\\n\\r\\t\\b\\a\\\\\\"\\x00\\xfF\\q"\r\n',
    "single quotes": b"ECHO 'it\\'s \\n'\r\n",
    "empty word": b'ECHO ""\r\n',
    "RESP3 set": b"~1\r\n$4\r\nPING\r\n",
    "RESP3 map": b"%1\r\n",
}
BEFORE = request("PING") + request("ECHO", "before")
BEFORE_REPLY = b"+PONG\r\n" + bulk(b"before")
AFTER = request("ECHO", "after")


def splits(data: bytes):
    """Ways to cut the bytes in two: all places of what is short, some of what is long."""
    places = range(1, len(data)) if len(data) < 100 else (1, 2, 5, 100, len(data) // 2, len(data) - 1)
    return [(data[:place], data[place:]) for place in places]


def send_cut(client, parts):
    try:
        for part in parts:
            client.send(part)
            time.sleep(0.001)
    except OSError:
        pass  # It has heard enough.


def answer_to(connect, port: int, parts, ends: bool) -> bytes:
    """All that is said to the parts, up to the close, or up to the answer that follows them."""
    client = connect(port, seconds=CLOSE_SECONDS)
    send_cut(client, parts)
    if ends:
        try:
            return client.receive_all()
        except ConnectionResetError:
            return client.unread
    client.send(AFTER)
    end = time.monotonic() + CLOSE_SECONDS
    while bulk(b"after") not in client.unread and client._receive(end):  # pylint: disable=protected-access
        pass
    return client.unread


def compare(connect, theirs: int, ours: int, data: bytes, ends: bool):
    wanted = answer_to(connect, theirs, [BEFORE + data], ends)
    assert wanted.startswith(BEFORE_REPLY)
    for parts in [(BEFORE + data, b"")] + [(BEFORE + head, tail) for head, tail in splits(data)]:
        got = answer_to(connect, ours, [part for part in parts if part], ends)
        assert got == wanted, "cut %s: %s" % (shorten(parts[1]), difference(wanted, got))


class TestBytesThatAreNoRequests:
    @pytest.fixture
    def pair(self, kvferry, redis_server):
        return redis_server().port, start_only(kvferry)

    @pytest.mark.parametrize("name", BROKEN | BROKEN_INLINE)
    def test_is_told_and_closed_as_by_a_server(self, pair, redis_wire, name):
        compare(redis_wire, *pair, (BROKEN | BROKEN_INLINE)[name], True)

    @pytest.mark.parametrize("name", ODD | ODD_INLINE)
    def test_is_answered_as_by_a_server(self, pair, redis_wire, name):
        compare(redis_wire, *pair, (ODD | ODD_INLINE)[name], False)

    @pytest.mark.parametrize("name", BROKEN)
    def test_is_told_where_memcached_is_spoken_too(self, kvferry, redis_server, redis_wire, name):
        compare(redis_wire, redis_server().port, kvferry(AUTO).port(), BROKEN[name], True)

    def test_a_body_that_does_not_end_where_it_says_is_an_error(self, pair, redis_wire):
        # Stricter than a server, which skips two bytes unseen.
        theirs, ours = pair
        data = b"*2\r\n$4\r\nECHO\r\n$1\r\nxyz"
        assert answer_to(redis_wire, theirs, [data], False) == bulk(b"x") + bulk(b"after")
        for parts in splits(data):
            assert answer_to(redis_wire, ours, parts, True) == b"-ERR Protocol error: expected CRLF after bulk\r\n"

    def test_a_web_browser_is_shown_the_door(self, pair, redis_wire):
        for line in (b"POST / HTTP/1.1\r\n", b"Host: localhost\r\n"):
            for port in pair:
                assert answer_to(redis_wire, port, [line], True) == b""

    @pytest.mark.parametrize("data", [b"*11\r\n", b"*2\r\n$4\r\nAUTH\r\n$16385\r\n"])
    def test_limits_are_low_before_a_client_has_logged_in(self, kvferry, redis_server, redis_wire, data):
        server = redis_server("--requirepass", "secret")
        proxy = kvferry(pool("main", [server.port], protocol="redis", redis_auth="secret"))
        wanted = answer_to(redis_wire, server.port, [data], True)
        assert wanted.startswith(b"-ERR Protocol error: unauthenticated ")
        assert answer_to(redis_wire, proxy.port(), [data], True) == wanted
