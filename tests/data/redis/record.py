#!/usr/bin/env python3
"""Records what redis-server answers, in both versions of the protocol.

Usage: tests/data/redis/record.py (needs redis-server)

replies.txt          of the embedded store's commands, asked for in requests.txt
command_replies.txt  of COMMAND, and to requests that no server runs, asked for in command_requests.txt
commands.txt         what COMMAND INFO and DOCS tell of each command, and the errors about too few and too many arguments

A line of the requests stands before its replies: "2" the one of RESP2, "3" that of RESP3 where it is another.
"""

import io
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


def record_replies(port: int, requests_name: str, replies_name: str) -> None:
    requests = [line.rstrip("\n") for line in (HERE / requests_name).open() if line.strip() and not line.startswith("#")]
    old, new = (answers(port, version, requests) for version in (2, 3))
    with (HERE / replies_name).open("w") as out:
        out.write("# Recorded from redis-server 7.0.15 by record.py.\n")
        for request, two, three in zip(requests, old, new):
            out.write("> %s\n2 %s\n" % (request, quoted(two)))
            if two != three:
                out.write("3 %s\n" % quoted(three))
    print("%s: %d requests" % (replies_name, len(requests)))


def value_of(reply: bytes):
    """The value of a reply of RESP3: a number, a text, None, a list, or a dictionary of a map."""
    stream = io.BytesIO(reply)

    def read():
        line = stream.readline()
        kind, rest = line[:1], line[1:-2].decode()
        if kind == b"$":
            return stream.read(int(rest) + 2)[:-2].decode()
        if kind == b"_":
            return None
        if kind == b"%":
            return {read(): read() for _ in range(int(rest))}
        if kind in b"*~":
            return [read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest
    return read()


def key_spec_text(spec: dict) -> str:
    """As in commands.csv."""
    begin, find = spec["begin_search"], spec["find_keys"]
    words = [begin["type"], *begin["spec"].values(), find["type"]]
    if find["type"] == "range":
        words += [find["spec"][name] for name in ("lastkey", "keystep", "limit")]
    elif find["type"] == "keynum":
        words += [find["spec"][name] for name in ("keynumidx", "firstkey", "keystep")]
    return " ".join(map(str, words + spec["flags"]))


def count_errors(port: int, name: str, arity: int) -> list:
    """What is said to one argument too few, and to one too many; no command runs."""
    words = name.split("|")
    errors = []
    for count in (abs(arity) - 1, arity + 1):
        if count >= len(words) and (count < abs(arity) or arity > 0):
            request = " ".join(words + ["x"] * (count - len(words)))
            errors.append(answers(port, 2, [request])[0].decode().rstrip())
        else:
            errors.append("-")
    return errors


def record_commands(port: int) -> None:
    infos, docs = (value_of(reply) for reply in answers(port, 3, ["command", "command docs"]))
    rows = []

    def add(info: list, doc: dict) -> None:
        name, arity, flags, first, last, step, categories, tips, key_specs, parts = info
        rows.append([name, arity, " ".join(flags), " ".join(categories), first, last, step, "; ".join(map(key_spec_text, key_specs)),
                     " ".join(tips), doc["group"], doc["since"], " ".join(doc.get("doc_flags", []))] + count_errors(port, name, arity))
        for part in parts:
            add(part, doc["subcommands"][part[0]])
    for info in infos:
        add(info, docs[info[0]])
    with (HERE / "commands.txt").open("w") as out:
        out.write("# Recorded from redis-server 7.0.15 by record.py.\n")
        for row in sorted(rows, key=lambda row: row[0].split("|")):
            out.write(",".join(map(str, row)) + "\n")
    print("commands.txt: %d commands" % len(rows))


def main() -> int:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder],
                                  stdout=subprocess.DEVNULL)
        try:
            time.sleep(1)
            record_replies(port, "requests.txt", "replies.txt")
            record_replies(port, "command_requests.txt", "command_replies.txt")
            record_commands(port)
        finally:
            server.terminate()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
