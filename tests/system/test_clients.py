"""Client libraries and tools that people use, through a pool and on the embedded store, unchanged."""

import shutil
import subprocess
from pathlib import Path

import memcache
import pylibmc
import pymemcache
import pytest

from support.kvferry import running
from support.memcached import Memcached

SCRIPTS = Path(__file__).resolve().parent / "clients"
PROGRAM_SECONDS = 25


@pytest.fixture(scope="module", params=["pool", "store"])
def port(request, io, tmp_path_factory):
    """The port of a pool over two servers, then of an embedded store."""
    folder = tmp_path_factory.mktemp("clients-%s-%s" % (request.param, io))
    with running(folder, io, 2 if request.param == "pool" else 0) as server:
        yield server.port()


@pytest.fixture(scope="module")
def plain_port(tmp_path_factory):
    server = Memcached(tmp_path_factory.mktemp("plain"))
    yield server.port
    server.stop()


# pymemcache: its storage commands say noreply unless told otherwise.

def use_pymemcache(port):
    quiet = pymemcache.Client(("127.0.0.1", port), timeout=5)
    for number in range(300):
        quiet.set("py:%d" % number, b"value %d" % number)
    quiet.set_many({"pym:%d" % number: b"x" * number for number in range(100)})
    assert all(quiet.get("py:%d" % number) == b"value %d" % number for number in range(300))
    found = quiet.get_many(["pym:%d" % number for number in range(100)] + ["py:nothing"])
    assert found == {"pym:%d" % number: b"x" * number for number in range(100)}
    quiet.delete("py:0")
    quiet.delete_many(["py:1", "py:2"])
    quiet.append("py:3", b"!")
    quiet.touch("py:3", 100)
    assert quiet.get_many(["py:0", "py:1", "py:2", "py:3"]) == {"py:3": b"value 3!"}
    loud = pymemcache.Client(("127.0.0.1", port), timeout=5, default_noreply=False)
    assert loud.set("py:n", b"5") and loud.incr("py:n", 10) == 15 and loud.decr("py:n", 5) == 10
    assert loud.add("py:n", b"1") is False and loud.replace("py:none", b"1") is False
    value, number = loud.gets("py:n")
    assert value == b"10" and loud.cas("py:n", b"11", number) is True and loud.cas("py:n", b"12", number) is False
    with pytest.raises(pymemcache.exceptions.MemcacheServerError):
        loud.set("py:huge", b"h" * (1 << 20))
    assert loud.get("py:n") == b"11"
    assert loud.gets_many(["py:n"]).keys() == {"py:n"}
    assert loud.version()
    loud.quit()


def test_pymemcache(port):
    use_pymemcache(port)


# pylibmc: libmemcached underneath, text protocol.

def use_pylibmc(port):
    client = pylibmc.Client(["127.0.0.1:%d" % port], binary=False, behaviors={"cas": True, "tcp_nodelay": True, "verify_keys": True})
    assert client.set("lib:a", "first", time=60) and client.get("lib:a") == "first"
    assert client.add("lib:a", "x") is False and client.replace("lib:a", "second")
    value, number = client.gets("lib:a")
    assert value == "second" and client.cas("lib:a", "third", number) and not client.cas("lib:a", "fourth", number)
    assert client.set("lib:n", 5) and client.incr("lib:n", 10) == 15 and client.decr("lib:n", 5) == 10
    client.set("lib:bytes", b"b")
    assert client.append("lib:bytes", b"c") and client.prepend("lib:bytes", b"a") and client.get("lib:bytes") == b"abc"
    many = {"lib:%d" % number: "value %d" % number for number in range(500)}
    assert client.set_multi(many) == []
    assert client.get_multi(list(many) + ["lib:nothing"]) == many
    assert client.delete_multi(["lib:1", "lib:2"]) and client.get("lib:1") is None
    assert client.set("lib:big", b"\0\r\n" * 200_000) and client.get("lib:big") == b"\0\r\n" * 200_000
    assert client.delete("lib:a") and not client.delete("lib:a")
    assert client.get_stats()
    client.disconnect_all()


def test_pylibmc(port):
    use_pylibmc(port)


# python-memcached: the oldest of them.

def use_python_memcached(port):
    client = memcache.Client(["127.0.0.1:%d" % port], socket_timeout=5)
    assert client.set("old:a", "first") and client.get("old:a") == "first"
    assert not client.add("old:a", "x") and client.replace("old:a", "second")
    assert client.set("old:n", 5) and client.incr("old:n", 10) == 15 and client.decr("old:n", 5) == 10
    many = {"old:%d" % number: {"number": number} for number in range(100)}
    assert client.set_multi(many) == [] and client.get_multi(many) == many
    assert client.gets("old:a") == "second" and client.cas("old:a", "third")
    assert client.touch("old:a", 100) and client.delete("old:a") and client.get("old:a") is None
    client.disconnect_all()


def test_python_memcached(port):
    use_python_memcached(port)


# The tools of libmemcached.

def tool(name, port, *args):
    program = shutil.which(name)
    assert program, "%s is not installed (libmemcached-tools)" % name
    done = subprocess.run([program, "--servers=127.0.0.1:%d" % port, *map(str, args)], capture_output=True, timeout=PROGRAM_SECONDS,
                          check=False)
    assert done.returncode == 0, (name, done.stdout, done.stderr)
    return done.stdout


def use_tools(port, folder):
    files = []
    for number in range(5):
        files.append(folder / ("tool%d.bin" % number))
        files[-1].write_bytes(bytes(range(256)) * (number * 100 + 1))
    tool("memccp", port, *files)
    for path in files:
        assert tool("memccat", port, path.name).rstrip(b"\n") == path.read_bytes().rstrip(b"\n")
    tool("memctouch", port, "--expire=100", files[0].name)
    tool("memcexist", port, files[0].name)
    tool("memcrm", port, files[0].name)
    done = subprocess.run(["memccat", "--servers=127.0.0.1:%d" % port, files[0].name], capture_output=True, timeout=PROGRAM_SECONDS,
                          check=False)
    assert files[0].read_bytes()[:100] not in done.stdout
    assert b"pid" in tool("memcstat", port)
    tool("memcping", port)


def test_libmemcached_tools(port, tmp_path):
    use_tools(port, tmp_path)


def test_memcslap_runs_to_its_end(port):
    for kind in ("get", "set", "mget"):
        output = tool("memcslap", port, "--concurrency=8", "--execute-number=500", "--initial-load=500", "--test=" + kind)
        assert b"Took" in output or b"Seconds" in output or output, kind


# Node.js.

def use_node(script, port):
    assert (SCRIPTS / "node_modules").exists(), "run `npm ci` in tests/system/clients"
    done = subprocess.run(["node", script, str(port)], cwd=SCRIPTS, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", ["memcached.js", "memcache_client.js"])
def test_node_clients(port, script):
    use_node(script, port)


# PHP, with the extension that talks through libmemcached.

def use_php(port):
    done = subprocess.run(["php", SCRIPTS / "memcached.php", str(port)], capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    assert done.returncode == 0 and not done.stdout, done.stdout + done.stderr


def test_php_memcached(port):
    use_php(port)


# The same against memcached itself: what fails here is a mistake of the test.

def test_these_tests_pass_on_memcached(plain_port, tmp_path):
    use_pymemcache(plain_port)
    use_pylibmc(plain_port)
    use_python_memcached(plain_port)
    use_tools(plain_port, tmp_path)
    test_memcslap_runs_to_its_end(plain_port)
    use_node("memcached.js", plain_port)
    use_node("memcache_client.js", plain_port)
    use_php(plain_port)
