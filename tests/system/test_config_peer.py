"""kvferry and a real nutcracker agree on which files are valid, except where docs/configuration.md says otherwise."""

import shutil
import subprocess

import pytest

from support import kvferry as kvferry_support

NUTCRACKER = shutil.which("nutcracker", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")

LISTEN = "  listen: 127.0.0.1:22121\n"
SERVERS = "  servers:\n   - 127.0.0.1:11211:1\n"


def pool(extra="", listen=LISTEN, servers=SERVERS, name="a"):
    return "%s:\n%s%s%s" % (name, listen, extra, servers)


def with_server(text):
    return pool(servers="  servers:\n   - %s\n" % text)


AGREED = {
    "minimal": pool(),
    "comments": "# c\n\n" + pool() + "# end\n",
    "quoted pool name": pool(name="'my pool'"),
    "quoted value": pool("  hash: \"md5\"\n"),
    "no servers": "a:\n" + LISTEN,
    "empty servers": "a:\n" + LISTEN + "  servers:\n",
    "no listen": "a:\n" + SERVERS,
    "empty file": "",
    "only a comment": "# only\n",
    "empty pool": "a:\n",
    "pool is text": "a: b\n",
    "a list": "- a\n",
    "pool twice": pool() + pool(listen="  listen: 127.0.0.1:22122\n"),
    "address twice": pool() + pool(name="b"),
    "two pools": pool() + pool(name="b", listen="  listen: 127.0.0.1:22122\n"),
    "key twice": pool("  timeout: 1\n  timeout: 2\n"),
    "unknown key": pool("  colour: blue\n"),
    "no value": pool("  timeout:\n"),
    "tab": "a:\n\tlisten: 127.0.0.1:22121\n" + SERVERS,
    "broken yaml": "a: [\n",
    "listen without a port": pool(listen="  listen: localhost\n"),
    "listen is a port": pool(listen="  listen: 22121\n"),
    "listen on port 0": pool(listen="  listen: 127.0.0.1:0\n"),
    "listen on port 65536": pool(listen="  listen: 127.0.0.1:65536\n"),
    "listen by name": pool(listen="  listen: localhost:22121\n"),
    "listen on IPv6": pool(listen="  listen: ::1:22121\n"),
    "listen on a path": pool(listen="  listen: /tmp/kvferry-peer.sock\n"),
    "listen with a mode": pool(listen="  listen: /tmp/kvferry-peer.sock 0666\n"),
    "mode without a zero": pool(listen="  listen: /tmp/kvferry-peer.sock 666\n"),
    "mode too large": pool(listen="  listen: /tmp/kvferry-peer.sock 1777\n"),
    "timeout 0": pool("  timeout: 0\n"),
    "timeout negative": pool("  timeout: -1\n"),
    "timeout with a sign": pool("  timeout: +400\n"),
    "timeout with a leading zero": pool("  timeout: 0400\n"),
    "timeout is a word": pool("  timeout: soon\n"),
    "bool yes": pool("  preconnect: yes\n"),
    "bool True": pool("  preconnect: True\n"),
    "bool true": pool("  preconnect: true\n"),
    "hash in capitals": pool("  hash: MD5\n"),
    "distribution unknown": pool("  distribution: round_robin\n"),
    "tag of two bytes": pool("  hash_tag: \"{}\"\n"),
    "tag of equal bytes": pool("  hash_tag: \"$$\"\n"),
    "tag of one byte": pool("  hash_tag: \"{\"\n"),
    "tag of three bytes": pool("  hash_tag: \"{}}\"\n"),
    "tag without quotes": pool("  hash_tag: {}\n"),
    "empty tag": pool("  hash_tag: \"\"\n"),
    "server_connections 0": pool("  server_connections: 0\n"),
    "server_connections 8": pool("  server_connections: 8\n"),
    "client_connections": pool("  client_connections: 10\n"),
    "redis": pool("  redis: true\n"),
    "redis with a password": pool("  redis: true\n  redis_auth: x\n"),
    "redis with a database": pool("  redis: true\n  redis_db: 3\n"),
    "redis_auth without redis": pool("  redis_auth: x\n"),
    "redis_db without redis": pool("  redis_db: 1\n"),
    "sentinels": pool("  sentinels:\n   - 127.0.0.1:26379:1\n"),
    "server with a name": with_server("127.0.0.1:11211:1 one"),
    "server with two names": with_server("127.0.0.1:11211:1 one two"),
    "server with two blanks": with_server("127.0.0.1:11211:1  one"),
    "server without a weight": with_server("127.0.0.1:11211"),
    "server with weight 0": with_server("127.0.0.1:11211:0"),
    "server with a negative weight": with_server("127.0.0.1:11211:-1"),
    "server with weight 01": with_server("127.0.0.1:11211:01"),
    "server with weight 2^31": with_server("127.0.0.1:11211:2147483648"),
    "server with weight 2^31-1": with_server("127.0.0.1:11211:2147483647"),
    "server on port 0": with_server("127.0.0.1:0:1"),
    "server by name": with_server("some-host.invalid:11211:1"),
    "server on IPv6": with_server("::1:11211:1"),
    "server in brackets": with_server("\"[::1]:11211:1\""),
    "server on a path": with_server("/tmp/x:1"),
    "server on a path with a name": with_server("/tmp/x:1 n"),
    "server on a path with a port": with_server("/tmp/x:11:1 n"),
    "server on a relative path": with_server("tmp/x:1 n"),
    "servers as one text": pool(servers="  servers: 127.0.0.1:11211:1\n"),
    "server name twice": with_server("127.0.0.1:11211:1 a\n   - 127.0.0.1:11212:1 a"),
    "server address twice": with_server("127.0.0.1:11211:1\n   - 127.0.0.1:11211:2"),
    "one address under two names": with_server("127.0.0.1:11211:1 x\n   - 127.0.0.1:11211:2 y"),
    "name equal to an address": with_server("127.0.0.1:11211:1\n   - 127.0.0.1:11212:2 127.0.0.1"),
}

# Ours is wider: what nutcracker refuses and we read.
WIDER = {
    "flow style": "a:\n" + LISTEN + "  servers: [127.0.0.1:11211:1]\n",
    "anchors": "a:\n" + LISTEN + "  servers: &s\n   - 127.0.0.1:11211:1\n",
    "document marker": "---\n" + pool(),
    "IPv6 in brackets": pool(listen="  listen: \"[::1]:22121\"\n"),
    "our hashes": pool("  hash: murmur3\n"),
    "our keys": pool("  connect_timeout: 500ms\n"),
    "time with a unit": pool("  timeout: 400ms\n"),
    # nutcracker looks the name up; we read only.
    "listen on a name that does not exist": pool(listen="  listen: nosuch.invalid:22121\n"),
}

# Ours is stricter: what nutcracker reads and then wraps, ignores or trips over.
STRICTER = {
    "backlog 0": pool("  backlog: 0\n"),
    "backlog too large": pool("  backlog: 100000\n"),
    "server_retry_timeout 0": pool("  server_retry_timeout: 0\n"),
    "server_failure_limit 0": pool("  server_failure_limit: 0\n"),
    "server_connections 65": pool("  server_connections: 65\n"),
    "timeout beyond a day": pool("  timeout: 99999999\n"),
    "weight that wraps": with_server("127.0.0.1:11211:99999999999"),
    "server without a host": with_server(":11211:1"),
    "mode that is not octal": pool(listen="  listen: /tmp/kvferry-peer.sock 0888\n"),
}


def nutcracker_accepts(file):
    return subprocess.run([NUTCRACKER, "-t", "-c", file], capture_output=True, timeout=60).returncode == 0


def kvferry_accepts(file):
    done = subprocess.run([kvferry_support.program(), "check", file], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    verdict = "ok" if done.returncode == 0 else "invalid"
    assert "configuration file '%s' syntax is %s\n" % (file, verdict) in done.stderr
    return done.returncode == 0


@pytest.fixture
def write(tmp_path):
    def write_text(text):
        file = tmp_path / "peer.yml"
        file.write_text(text)
        return str(file)
    return write_text


@pytest.fixture(autouse=True, scope="module")
def needs_nutcracker():
    if NUTCRACKER is None:
        pytest.skip("nutcracker is not installed")


@pytest.mark.parametrize("name", AGREED)
def test_agrees(name, write):
    file = write(AGREED[name])
    assert kvferry_accepts(file) == nutcracker_accepts(file)


@pytest.mark.parametrize("name", WIDER)
def test_is_wider_on_purpose(name, write):
    file = write(WIDER[name])
    assert kvferry_accepts(file)
    assert not nutcracker_accepts(file)


@pytest.mark.parametrize("name", STRICTER)
def test_is_stricter_on_purpose(name, write):
    file = write(STRICTER[name])
    assert not kvferry_accepts(file)
    assert nutcracker_accepts(file)
