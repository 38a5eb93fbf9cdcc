#!/usr/bin/env python3
"""Writes replies.txt: what redis-server answers to requests.txt, in both versions of the protocol.

Usage: tests/data/redis/record.py (needs redis-server)

A line of requests.txt stands before its replies: "2" the one of RESP2, "3" that of RESP3 where it is another.
"""

import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def read_reply(stream) -> bytes:
    line = stream.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind in b"$=!" and int(rest) >= 0:
        return line + stream.read(int(rest) + 2)
    if kind in b"*~>%":
        count = max(int(rest), 0) * (2 if kind == b"%" else 1)
        return line + b"".join(read_reply(stream) for _ in range(count))
    return line


def quoted(text: bytes) -> str:
    plain = {0x0d: "\\r", 0x0a: "\\n", 0x22: '\\"', 0x5c: "\\\\"}
    return '"%s"' % "".join(plain.get(byte) or (chr(byte) if 0x20 <= byte < 0x7f else "\\x%02x" % byte) for byte in text)


def answers(port: int, version: int, requests) -> list:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        stream = connection.makefile("rwb")

        def ask(line: str) -> bytes:
            stream.write(line.encode() + b"\r\n")
            stream.flush()
            return read_reply(stream)
        ask("hello %d" % version)
        ask("flushall")
        return [ask(request) for request in requests]


def main() -> int:
    requests = [line.rstrip("\n") for line in (HERE / "requests.txt").open() if line.strip() and not line.startswith("#")]
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                                  stdout=subprocess.DEVNULL)
        try:
            time.sleep(1)
            old, new = (answers(port, version, requests) for version in (2, 3))
        finally:
            server.terminate()
            server.wait()
    with (HERE / "replies.txt").open("w") as out:
        out.write("# Recorded from redis-server 7.0.15 by record.py.\n")
        for request, two, three in zip(requests, old, new):
            out.write("> %s\n2 %s\n" % (request, quoted(two)))
            if two != three:
                out.write("3 %s\n" % quoted(three))
    print("%d requests" % len(requests))
    return 0


if __name__ == "__main__":
    sys.exit(main())
