"""Client libraries and tools for Redis with their default options, on the embedded store and through a pool of two servers."""

import asyncio
import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
import redis
import redis.asyncio

from support.kvferry import Kvferry, pool, store
from support.redis import RedisServer

SCRIPTS = Path(__file__).resolve().parent / "clients"
PROGRAM_SECONDS = 50
ITEMS = 300
BIG_BYTES = 900_000  # Below the largest item of the embedded store.


@contextlib.contextmanager
def running(folder: Path, io: str, kind: str):
    """A pool over two servers or an embedded store; gives the port."""
    with contextlib.ExitStack() as ends:
        config = store()
        if kind == "pool":
            servers = [RedisServer(folder), RedisServer(folder)]
            for server in servers:
                ends.callback(server.stop)
            # A busy machine must not look like a dead server.
            config = pool("main", [server.port for server in servers], protocol="redis", timeout=30000)
        proxy = Kvferry(folder, config, io)
        ends.callback(proxy.stop)
        yield proxy.port()


@pytest.fixture(scope="module", params=["pool", "store"])
def target(request, io, tmp_path_factory):
    """The kind of what is served, and its port."""
    with running(tmp_path_factory.mktemp("redis-%s-%s" % (request.param, io)), io, request.param) as port:
        yield request.param, port


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    server = RedisServer(tmp_path_factory.mktemp("plain"))
    yield "pool", server.port
    server.stop()


# redis-py.

def use_redis_py(kind, port):
    client = redis.Redis(port=port, client_name="py")
    assert client.ping() and client.flushall()
    assert client.set("py:a", "first", ex=60) and client.get("py:a") == b"first" and 0 < client.ttl("py:a") <= 61
    assert client.set("py:a", "x", nx=True) is None and client.getset("py:a", "second") == b"first"
    assert client.incr("py:n", 5) == 5 and client.decr("py:n") == 4 and client.incrbyfloat("py:n", 0.5) == 4.5
    many = {"py:%d" % number: "value %d" % number for number in range(ITEMS)}
    assert client.mset(many)
    assert client.mget([*many, "py:none"]) == [value.encode() for value in many.values()] + [None]
    with client.pipeline(transaction=False) as pipeline:
        for name in many:
            pipeline.get(name)
            pipeline.append(name, "!")
        replies = pipeline.execute()
    assert replies[::2] == [value.encode() for value in many.values()] and all(isinstance(each, int) for each in replies[1::2])
    with client.pipeline(transaction=False) as pipeline:
        replies = pipeline.set("py:bad", "x").incr("py:bad").get("py:bad").execute(raise_on_error=False)
    assert replies[0] and isinstance(replies[1], redis.ResponseError) and replies[2] == b"x"
    assert {name.decode() for name in client.scan_iter("py:[0-9]*", count=50)} == set(many)
    assert client.dbsize() == ITEMS + 3
    big = b"\0\r\n" * (BIG_BYTES // 3)
    assert client.set("py:big", big) and client.get("py:big") == big and client.getrange("py:big", 0, 2) == b"\0\r\n"
    assert client.exists("py:a", "py:n", "py:none") == 2 and client.delete(*many) == ITEMS and client.unlink("py:a") == 1
    assert client.type("py:n") == b"string" and client.expire("py:n", 100) and client.persist("py:n")
    assert client.client_getname() in ("py", b"py") and client.info()["redis_version"] and client.config_get("maxmemory")
    with pytest.raises(redis.ResponseError):
        client.execute_command("NOSUCHCOMMAND")
    if kind == "pool":
        assert client.hset("py:h", mapping={"a": 1, "b": 2}) == 2 and client.hgetall("py:h") == {b"a": b"1", b"b": b"2"}
        assert client.zadd("py:z", {"m": 1.5}) == 1 and client.zrange("py:z", 0, -1, withscores=True) in ([(b"m", 1.5)], [[b"m", 1.5]])
        assert client.rpush("py:l", 1, 2, 3) == 3 and client.lrange("py:l", 0, -1) == [b"1", b"2", b"3"]
        assert client.sadd("py:s", 1, 2) == 2 and client.smembers("py:s") == {b"1", b"2"}
        assert client.xadd("py:x", {"f": "v"}) and len(client.xrange("py:x")) == 1
        assert client.eval("return redis.call('get', KEYS[1])", 1, "py:n") == b"4.5"
    client.close()


def test_redis_py(target):
    use_redis_py(*target)


async def use_redis_py_asyncio(port):
    client = redis.asyncio.Redis(port=port)
    await client.flushall()
    await asyncio.gather(*(client.set("aio:%d" % number, number) for number in range(ITEMS)))
    assert await asyncio.gather(*(client.get("aio:%d" % number) for number in range(ITEMS))) == [b"%d" % number for number in range(ITEMS)]
    async with client.pipeline(transaction=False) as pipeline:
        for number in range(ITEMS):
            pipeline.incr("aio:%d" % number)
        assert await pipeline.execute() == [number + 1 for number in range(ITEMS)]
    assert len([name async for name in client.scan_iter("aio:*")]) == ITEMS
    await client.close()
    await client.connection_pool.disconnect()


def test_redis_py_asyncio(target):
    asyncio.run(use_redis_py_asyncio(target[1]))


# redis-cli and redis-benchmark.

def cli(port, *args, stdin=None):
    done = subprocess.run(["redis-cli", "-p", str(port), *map(str, args)], input=stdin, capture_output=True, timeout=PROGRAM_SECONDS, check=False)
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


def use_redis_cli(port, *version):
    assert cli(port, *version, "PING") == b"PONG\n"
    assert cli(port, *version, "FLUSHALL") == b"OK\n"
    assert cli(port, *version, "SET", "cli:a", "two words") == b"OK\n"
    assert cli(port, *version, "GET", "cli:a") == b"two words\n"
    assert cli(port, *version, "GET", "cli:none") == b"\n"
    assert cli(port, *version, "MGET", "cli:a", "cli:none") == b"two words\n\n"
    assert cli(port, *version, stdin=b"set cli:b 1\nincr cli:b\nappend cli:b xyz\nget cli:b\n") == b"OK\n2\n4\n2xyz\n"
    assert sorted(cli(port, *version, "--scan", "--pattern", "cli:*").split()) == [b"cli:a", b"cli:b"]
    big = b"b" * BIG_BYTES
    assert cli(port, *version, "-x", "SET", "cli:big", stdin=big) == b"OK\n"
    assert cli(port, *version, "GET", "cli:big") == big + b"\n"
    assert b"redis_version:" in cli(port, *version, "INFO", "server")
    # Mass insertion sends raw requests and ends with an ECHO.
    raw = b"".join(b"*3\r\n$3\r\nSET\r\n$%d\r\npipe:%d\r\n$1\r\nx\r\n" % (len("pipe:%d" % number), number) for number in range(1000))
    assert b"errors: 0, replies: 1000" in cli(port, "--pipe", stdin=raw)
    assert b"COMMAND" in cli(port, *version, "COMMAND", "DOCS", "command").upper()


@pytest.mark.parametrize("version", [[], ["-3"]], ids=["2", "3"])
def test_redis_cli(target, version):
    use_redis_cli(target[1], *version)


def use_redis_benchmark(port, tests, *options):
    done = subprocess.run(["redis-benchmark", "-p", str(port), "-n", "5000", "-r", "1000", "-q", "--csv", "-t", tests, *options],
                          capture_output=True, timeout=PROGRAM_SECONDS, check=False)
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0 and "Error" not in output and "WARNING" not in output, output
    for name in tests.upper().split(","):
        assert '"%s' % name.split("_")[0] in output.upper(), output


def test_redis_benchmark(target):
    kind, port = target
    tests = "ping_inline,ping_mbulk,set,get,incr,mset" if kind == "pool" else "ping_mbulk,set,get,incr,mset"
    use_redis_benchmark(port, tests)
    use_redis_benchmark(port, "set,get,incr,mset", "-P", "16")
    use_redis_benchmark(port, "set,get", "-3")
    if kind == "pool":
        use_redis_benchmark(port, "lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100")


# Clients in other languages: scripts that end with status 0 when every answer was right.

def use_script(*argv):
    done = subprocess.run([str(word) for word in argv], cwd=SCRIPTS, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


PROGRAMS = {"phpredis.php": "php", "predis.php": "php", "redis.rb": "ruby", "ioredis.js": "node", "iovalkey.js": "node", "node_redis.js": "node"}


def program_of(script):
    if PROGRAMS[script] == "node":
        assert (SCRIPTS / "node_modules").exists(), "run `npm ci` in tests/system/clients"
    return PROGRAMS[script]


@pytest.mark.parametrize("script", PROGRAMS)
def test_clients_in_other_languages(target, script):
    use_script(program_of(script), script, target[1], target[0])


@pytest.fixture(scope="module")
def hiredis(tmp_path_factory):
    """The C program, compiled."""
    program = tmp_path_factory.mktemp("hiredis") / "hiredis"
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "no C compiler"
    done = subprocess.run([compiler, "-std=gnu11", "-O1", "-Wall", "-Werror", "-o", program, SCRIPTS / "hiredis.c", "-lhiredis"],
                          capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return program


def test_hiredis(target, hiredis):
    use_script(hiredis, target[1])


# The same against a redis-server: what fails here is a mistake of the test.

def test_these_tests_pass_on_a_server(plain, hiredis):
    use_redis_py(*plain)
    asyncio.run(use_redis_py_asyncio(plain[1]))
    use_redis_cli(plain[1])
    use_redis_cli(plain[1], "-3")
    for script in PROGRAMS:
        use_script(program_of(script), script, plain[1], plain[0])
    use_script(hiredis, plain[1])
