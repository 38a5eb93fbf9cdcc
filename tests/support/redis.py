"""Real Redis servers, and what clients of them send and receive as bytes."""

import csv
import shutil
from pathlib import Path

import pytest

from support.ports import free_port
from support.process import Process, is_listening, wait_for
from support.wire import Wire, pattern_of

DATA = Path(__file__).resolve().parents[1] / "data" / "redis"
COMMANDS = Path(__file__).resolve().parents[2] / "src" / "protocol" / "redis_commands" / "commands.csv"
AGGREGATES = {b"*": 1, b"~": 1, b">": 1, b"%": 2}
COUNTED = b"$=!"  # Types whose bytes are counted.


class RedisServer:
    """A redis-server on a port of its own, which it keeps over restarts. It keeps nothing on disk.

    `options` are those of its configuration, `--requirepass x` as ("--requirepass", "x").
    """

    def __init__(self, folder: Path, *options, port=None):
        if shutil.which("redis-server") is None:
            pytest.fail("redis-server is not installed")
        self.port = port or free_port()
        self._folder = Path(folder)
        self._options = [str(option) for option in options]
        self._log = self._folder / ("redis-%d.log" % self.port)
        self.process = None
        self.start()

    @property
    def address(self) -> str:
        return "127.0.0.1:%d" % self.port

    def start(self):
        argv = ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", self._folder]
        self.process = Process(argv + self._options, self._log)
        self.process.wait_listening(self.port)

    def freeze(self):
        self.process.freeze()

    def thaw(self):
        self.process.thaw()

    def kill(self):
        self.process.kill()
        wait_for(lambda: not is_listening(self.port), 5, "port %d is closed" % self.port)

    def restart(self):
        """Comes back empty on the same port."""
        self.process.kill()
        self.start()

    def stop(self):
        self.process.kill()

    def client(self, *login, **options) -> "RedisWire":
        """A connection past the proxy."""
        return RedisWire(self.port, *login, **options)


def request(*words) -> bytes:
    """An array of bulk strings. Words are bytes, texts or numbers."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def bulk(data: bytes) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(data), data)


class RedisWire(Wire):
    """A raw client of Redis. `login` is sent as AUTH."""

    def __init__(self, port: int, *login, version: int = 2, **options):
        super().__init__(port, **options)
        if login:
            self.ask(request("AUTH", *login), b"+OK\r\n")
        if version != 2:
            assert self.command("HELLO", version)[:1] == b"%"

    def receive_reply(self) -> bytes:
        """The bytes of the next reply, whatever its type."""
        parts, left = [], 1
        while left:
            left -= 1
            line = self.receive_line()
            parts.append(line)
            kind, rest = line[:1], line[1:-2]
            if kind in AGGREGATES:
                left += max(int(rest), 0) * AGGREGATES[kind]
            elif kind in COUNTED and int(rest) >= 0:
                parts.append(self.receive(int(rest) + 2))
        return b"".join(parts)

    def command(self, *words) -> bytes:
        """One command, and the bytes of its reply."""
        self.send(request(*words))
        return self.receive_reply()

    def value(self, *words):
        """One command, and the value of its reply."""
        return value_of(self.command(*words))

    def expect_in_step(self):
        """Nothing is left over: the next reply is the one to our next request."""
        self.ask(request("ECHO", "in step"), bulk(b"in step"))

    def is_reply(self, template: bytes) -> bool:
        return pattern_of(template).fullmatch(self.receive_reply()) is not None


class ReplyError(Exception):
    """An error as the value of a reply."""


def value_of(reply: bytes):
    """The value of one whole reply: bytes, a number, None, a list, a dictionary; errors are ReplyError, not raised."""
    value, rest = _read_value(reply)
    assert rest == b"", rest
    return value


def _read_value(data: bytes):
    line, _, rest = data.partition(b"\r\n")
    kind, text = line[:1], line[1:]
    if kind == b"-":
        return ReplyError(text.decode(errors="replace")), rest
    if kind == b":":
        return int(text), rest
    if kind in COUNTED:
        size = int(text)
        return (None, rest) if size < 0 else (rest[:size], rest[size + 2:])
    if kind in AGGREGATES:
        if int(text) < 0:
            return None, rest
        items = []
        for _ in range(int(text) * AGGREGATES[kind]):
            item, rest = _read_value(rest)
            items.append(item)
        return (dict(zip(items[::2], items[1::2])) if kind == b"%" else items), rest
    return (None if kind == b"_" else text), rest


ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "b": b"\b", "a": b"\a"}


def words_of(line: str):
    """The words of an inline request, decoded as a server does."""
    words, place = [], 0
    while True:
        while place < len(line) and line[place] == " ":
            place += 1
        if place == len(line):
            return words
        word, place = (_read_quoted if line[place] == '"' else _read_plain)(line, place)
        words.append(word)


def _read_plain(line: str, place: int):
    end = line.find(" ", place)
    end = len(line) if end < 0 else end
    word = line[place:end]
    assert '"' not in word and "'" not in word, "not known here: %s" % line
    return word.encode(), end


def _read_quoted(line: str, place: int):
    word, place = b"", place + 1
    while line[place] != '"':
        if line[place:place + 2] == "\\x":
            word += bytes.fromhex(line[place + 2:place + 4])
            place += 4
        elif line[place] == "\\":
            word += ESCAPES.get(line[place + 1], line[place + 1].encode())
            place += 2
        else:
            word += line[place].encode()
            place += 1
    return word, place + 1


def recorded_replies(name: str, version: int):
    """Pairs of a request's line and the reply that a server gave to it, as tests/data/redis/record.py wrote them."""
    pairs = []
    for line in (DATA / name).read_text().splitlines():
        if line.startswith("> "):
            pairs.append((line[2:], b""))
        elif line.startswith("2 ") or (line.startswith("3 ") and version == 3):
            pairs[-1] = (pairs[-1][0], words_of(line[2:])[0])
    return pairs


def command_rows():
    """The rows of the table of commands, as dictionaries."""
    with COMMANDS.open(newline="") as file:
        return list(csv.DictReader(file))
