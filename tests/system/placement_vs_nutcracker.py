#!/usr/bin/env python3
"""Compares `kvferry explain` with a running nutcracker, key by key.

One nutcracker runs a pool for every list below, over fake servers that answer a get with their own number.
Each pool gets 10,000 random keys through its listener, and the same keys go through `kvferry explain --tsv` with
the same file. Any difference is a key that would be lost by changing proxies.

By itself: placement_vs_nutcracker.py [SEED]. KVFERRY_BINARY names the program.
"""

import asyncio
import random
import shutil
import socket
import sys
import tempfile
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.kvferry import run  # noqa: E402
from support.ports import free_port  # noqa: E402
from support.process import Process  # noqa: E402

KEY_COUNT = 10000
BATCH_KEYS = 500
KEY_BYTES_MAX = 60
CLIENT_SECONDS = 30.0
EXPLAIN_SECONDS = 60.0
# What memcached's text protocol allows in a key.
KEY_ALPHABET = [byte for byte in range(0x21, 0x100) if byte != 0x7f]
PLAIN_ALPHABET = b"abcdefghijklmnopqrstuvwxyz0123456789:._-"


class Pool:
    """How a pool of the comparison is made; `servers` is filled with (entry, number of the fake server)."""

    def __init__(self, name, hash_name, distribution, count, *, tag="", weights=False, names=False, kind="port"):
        self.name = name
        self.hash_name = hash_name
        self.distribution = distribution
        self.count = count
        self.tag = tag
        self.weights = weights
        self.names = names
        self.kind = kind  # port, standard (port 11211 of other addresses) or unix.
        self.port = 0
        self.servers = []

    def text(self) -> str:
        lines = ["%s:" % self.name, "  listen: 127.0.0.1:%d" % self.port, "  hash: %s" % self.hash_name,
                 "  distribution: %s" % self.distribution, "  timeout: 10000"]
        if self.tag:
            lines.append('  hash_tag: "%s"' % self.tag)
        lines.append("  servers:")
        lines += ["   - %s" % entry for entry, _ in self.servers]
        return "\n".join(lines) + "\n"


def make_pools():
    """Every hash of twemproxy at least once, both distributions, and what changes the sort and the points."""
    return [
        Pool("two", "fnv1a_64", "ketama", 2),
        Pool("named", "murmur", "ketama", 17, names=True),
        Pool("weights", "md5", "ketama", 9, weights=True, names=True),
        Pool("sixty", "crc32a", "ketama", 60),
        Pool("sixty_weights", "fnv1_32", "ketama", 60, weights=True),
        Pool("tags", "one_at_a_time", "ketama", 5, tag="{}", names=True),
        Pool("same_tags", "fnv1_64", "modula", 8, tag="$$"),
        Pool("modula", "jenkins", "modula", 6),
        Pool("modula_weights", "hsieh", "modula", 12, weights=True, names=True),
        Pool("standard_port", "crc16", "ketama", 4, kind="standard"),
        Pool("sockets", "fnv1a_32", "ketama", 4, kind="unix"),
        Pool("sockets_modula", "crc32", "modula", 5, kind="unix", weights=True),
    ]


class FakeServer(asyncio.Protocol):
    """Answers `get KEY` with its number as the value."""

    def __init__(self, number: int):
        self._number = b"%d" % number
        self._rest = b""
        self._transport = None

    def connection_made(self, transport):
        self._transport = transport

    def data_received(self, data):
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        replies = []
        for line in lines:
            command, key = line.split(b" ")[:2]
            assert command == b"get", line
            replies.append(b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(self._number), self._number))
        self._transport.write(b"".join(replies))


class FakeServers:
    """All fake servers in one thread with an event loop of its own."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._servers = []
        self.count = 0

    def start(self, listener) -> int:
        """Serves on a listening socket; gives the number that the server answers."""
        number = self.count
        self.count += 1

        async def serve():
            make = self._loop.create_unix_server if listener.family == socket.AF_UNIX else self._loop.create_server
            return await make(lambda: FakeServer(number), sock=listener)
        self._servers.append(asyncio.run_coroutine_threadsafe(serve(), self._loop).result(CLIENT_SECONDS))
        return number

    def stop(self):
        for server in self._servers:
            self._loop.call_soon_threadsafe(server.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLIENT_SECONDS)


def listen_on_standard_port(chosen):
    """Port 11211 of a loopback address that nobody else uses; with it the label has no port."""
    for _ in range(50):
        host = "127.%d.%d.%d" % (chosen.randrange(64, 128), chosen.randrange(256), chosen.randrange(1, 255))
        try:
            return socket.create_server((host, 11211)), "%s:11211" % host
        except OSError:
            continue
    raise RuntimeError("port 11211 is taken on every loopback address")


def open_listener(pool, folder, chosen, index):
    """A listening socket of a fake server and its address in the file."""
    if pool.kind == "unix":
        path = "%s/%s%s.sock" % (folder, pool.name, "x" * (index % 3) + str(index))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        return listener, path
    if pool.kind == "standard":
        return listen_on_standard_port(chosen)
    listener = socket.create_server(("127.0.0.1", 0))
    return listener, "127.0.0.1:%d" % listener.getsockname()[1]


def fill_pool(pool, folder, chosen, fakes):
    for index in range(pool.count):
        listener, address = open_listener(pool, folder, chosen, index)
        weight = chosen.choice([1, 1, 2, 3, 10, 47]) if pool.weights else 1
        # Names of several lengths, so that the sort by length shows.
        name = " %s%d" % ("n" * chosen.randrange(1, 6), index) if pool.names else ""
        pool.servers.append(("%s:%d%s" % (address, weight, name), fakes.start(listener)))
    pool.port = free_port()


def make_key(chosen, tag) -> bytes:
    alphabet = chosen.choice([PLAIN_ALPHABET, KEY_ALPHABET])
    key = bytearray(chosen.choice(alphabet) for _ in range(chosen.randrange(1, KEY_BYTES_MAX)))
    if tag and chosen.random() < 0.8:
        # Both characters somewhere, in order most of the time: pairs, empty pairs, unclosed ones.
        for character in chosen.choice([tag, tag, tag, tag[::-1], tag[:1], tag * 2]).encode():
            key.insert(chosen.randrange(len(key) + 1), character)
    return bytes(key)


def ask_nutcracker(port: int, keys):
    """The number of the server that each key reached."""
    numbers = []
    with socket.create_connection(("127.0.0.1", port), CLIENT_SECONDS) as client:
        stream = client.makefile("rb")
        for begin in range(0, len(keys), BATCH_KEYS):
            batch = keys[begin:begin + BATCH_KEYS]
            client.sendall(b"".join(b"get %s\r\n" % key for key in batch))
            for key in batch:
                head = stream.readline()
                assert head.startswith(b"VALUE %s " % key), (head, key)
                numbers.append(int(stream.readline()))
                assert stream.readline() == b"END\r\n"
    return numbers


def ask_kvferry(file: Path, pool, keys):
    """The index of the server in the file that `kvferry explain` names for each key."""
    result = run("explain", "-c", file, "--pool", pool.name, "--hex", "--tsv", "-",
                 stdin="".join(key.hex() + "\n" for key in keys), seconds=EXPLAIN_SECONDS)
    assert result.returncode == 0, result.stderr
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[0] for row in rows] == [key.hex() for key in keys]
    return [int(row[3]) for row in rows]


class Comparison:
    """A running nutcracker with all pools, its fake servers, and the file that both proxies read."""

    def __init__(self, folder: Path, seed: int):
        assert shutil.which("nutcracker"), "nutcracker is not installed"
        self.seed = seed
        self._chosen = random.Random(seed)
        self._fakes = FakeServers()
        self.pools = {pool.name: pool for pool in make_pools()}
        for pool in self.pools.values():
            fill_pool(pool, folder, self._chosen, self._fakes)
        self.file = Path(folder) / "nutcracker.yml"
        self.file.write_text("\n".join(pool.text() for pool in self.pools.values()))
        self._process = Process(
            ["nutcracker", "-c", self.file, "-a", "127.0.0.1", "-s", free_port(), "-p", Path(folder) / "nutcracker.pid"],
            Path(folder) / "nutcracker.log")
        try:
            for pool in self.pools.values():
                self._process.wait_listening(pool.port)
        except BaseException:
            self.stop()
            raise

    def differences(self, name: str):
        """Keys that the two place differently, with both indexes, and how many servers were reached."""
        pool = self.pools[name]
        keys = [make_key(self._chosen, pool.tag) for _ in range(KEY_COUNT)]
        index_of = {number: index for index, (_, number) in enumerate(pool.servers)}
        theirs = [index_of[number] for number in ask_nutcracker(pool.port, keys)]
        ours = ask_kvferry(self.file, pool, keys)
        found = [(key, one, other) for key, one, other in zip(keys, theirs, ours) if one != other]
        return found, len(set(theirs))

    def stop(self):
        self._process.kill()
        self._fakes.stop()


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.randrange(1 << 32)
    print("seed %d" % seed)
    failed = False
    with tempfile.TemporaryDirectory(prefix="kvf") as folder:
        comparison = Comparison(Path(folder), seed)
        try:
            for name in comparison.pools:
                found, reached = comparison.differences(name)
                print("%-16s %d keys, %d servers reached, %d differences" % (name, KEY_COUNT, reached, len(found)))
                for row in found[:5]:
                    print("    key %r: nutcracker %d, kvferry %d" % row)
                failed = failed or bool(found)
        finally:
            comparison.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
