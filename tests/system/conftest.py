"""Fixtures of the system tests: the real program, real servers, real sockets.

KVFERRY_BINARY  the program (build/release/kvferry)
KVFERRY_LOAD    the load generator (compiled into build/tools when not given)
KVFERRY_IO      engines to test, separated by commas (epoll,uring)
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import kvferry as kvferry_support  # noqa: E402
from support.fake_backend import FakeBackend  # noqa: E402
from support.load import Load  # noqa: E402
from support.memcached import Memcached  # noqa: E402
from support.redis import RedisServer, RedisWire  # noqa: E402
from support.wire import Wire  # noqa: E402


def pytest_generate_tests(metafunc):
    if "io" in metafunc.fixturenames:
        engines = os.environ.get("KVFERRY_IO", "epoll,uring").split(",")
        metafunc.parametrize("io", engines, indirect=True, scope="module")


@pytest.fixture(scope="module")
def io(request):
    """The I/O engine of a test. Only a kernel that refuses io_uring is a reason to skip."""
    refusal = kvferry_support.uring_refusal() if request.param == "uring" else ""
    if refusal:
        pytest.skip("the kernel refuses io_uring (%s)" % refusal)
    return request.param


class Cleanup:
    """Things that end in reverse order, all of them, whatever the first ones raise."""

    def __init__(self):
        self._ends = []

    def add(self, end):
        self._ends.append(end)

    def run(self):
        failures = []
        for end in reversed(self._ends):
            try:
                end()
            except Exception as failure:  # pylint: disable=broad-except
                failures.append(failure)
        if failures:
            raise failures[0]


@pytest.fixture
def cleanup():
    ends = Cleanup()
    yield ends
    ends.run()


@pytest.fixture
def memcached(tmp_path, cleanup):
    """memcached(*args) starts a server that ends with the test."""
    def start(*args, **options):
        server = Memcached(tmp_path, *args, **options)
        cleanup.add(server.stop)
        return server
    return start


@pytest.fixture
def redis_server(tmp_path, cleanup):
    """redis_server(*options) starts a server that ends with the test."""
    def start(*options, **more):
        server = RedisServer(tmp_path, *options, **more)
        cleanup.add(server.stop)
        return server
    return start


@pytest.fixture
def fake_backend(cleanup):
    """fake_backend(serve) starts a server in this process."""
    def start(serve):
        backend = FakeBackend(serve)
        cleanup.add(backend.stop)
        return backend
    return start


@pytest.fixture
def kvferry(tmp_path, cleanup, io):
    """kvferry(config, *args) starts the program on the engine of the test; it must end cleanly."""
    count = 0

    def start(config, *args, **options):
        nonlocal count
        count += 1
        folder = tmp_path / ("kvferry%d" % count)
        folder.mkdir()
        server = kvferry_support.Kvferry(folder, config, io, *args, **options)
        cleanup.add(server.stop)
        return server
    return start


@pytest.fixture
def scripted(tmp_path, cleanup, io):
    """scripted(script, *args) starts `kvferry memcached` with Lua routes on the engine of the test; it must end cleanly."""
    count = 0

    def start(script, *args, **options):
        nonlocal count
        count += 1
        folder = tmp_path / ("scripted%d" % count)
        folder.mkdir()
        server = kvferry_support.ScriptedKvferry(folder, script, io, *args, **options)
        cleanup.add(server.stop)
        return server
    return start


@pytest.fixture
def wire(cleanup):
    """wire(port) connects a raw client."""
    def connect(port, **options):
        client = Wire(port, **options)
        cleanup.add(client.close)
        return client
    return connect


@pytest.fixture
def redis_wire(cleanup):
    """redis_wire(port, *login) connects a raw client of Redis."""
    def connect(port, *login, **options):
        client = RedisWire(port, *login, **options)
        cleanup.add(client.close)
        return client
    return connect


@pytest.fixture
def load(cleanup):
    """load(port, ...) starts load that runs beside the test."""
    def start(port, **options):
        running = Load(port, **options)
        cleanup.add(running.kill)
        return running
    return start
