"""The program under test."""

import contextlib
import ctypes
import errno
import os
import re
import signal
import subprocess
from pathlib import Path

from support.memcached import Memcached
from support.ports import free_port
from support.process import Process, START_SECONDS, is_listening, wait_for
from support.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
LISTENING = re.compile(r"listening\b.*?\baddress=\"?127\.0\.0\.1:(\d+)\"?(?:.*?\b(?:pool|routes)=\"?([\w.-]+)\"?)?")
SANITIZER_REPORTS = ("ERROR: AddressSanitizer", "ERROR: LeakSanitizer", "WARNING: ThreadSanitizer",
                     "runtime error:", "check failed")
IO_URING_SETUP = 425  # The number of the system call, the same on all architectures.
WITHOUT_URING = Path(__file__).with_name("without_uring.py")


def program() -> Path:
    """KVFERRY_BINARY, or the release build. Absolute, since some tests start it in other folders."""
    return Path(os.environ.get("KVFERRY_BINARY") or ROOT / "build" / "release" / "kvferry").absolute()


def uring_refusal() -> str:
    """Why the kernel gives us no io_uring; empty when it does."""
    parameters = ctypes.create_string_buffer(120)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(IO_URING_SETUP, 4, parameters)
    if descriptor < 0:
        return "io_uring_setup: %s" % errno.errorcode.get(ctypes.get_errno(), "failed")
    os.close(descriptor)
    return ""


def pool(name: str, servers, port: int = 0, **keys) -> str:
    """The text of one pool of our dialect. `servers` are ports, or texts for the list."""
    lines = ["%s:" % name, "  dialect: kvferry", "  listen: 127.0.0.1:%d" % port]
    lines += ["  %s: %s" % (key, _yaml(value)) for key, value in keys.items()]
    lines += ["  servers:"]
    lines += ["   - %s" % ("127.0.0.1:%d:1" % server if isinstance(server, int) else server) for server in servers]
    return "\n".join(lines) + "\n"


def one_worker(config: str) -> str:
    """The same with a single worker, so that all clients share the connections to the backends."""
    return "kvferry:\n  workers: 1\n" + config


def store(name: str = "cache", port: int = 0, memory: str = "") -> str:
    """The text of a listener on the embedded store."""
    text = "%s:\n  dialect: kvferry\n  protocol: store\n  listen: 127.0.0.1:%d\n" % (name, port)
    return text + ("kvferry:\n  store: { memory: %s }\n" % memory if memory else "")


def _yaml(value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Kvferry:
    """A running kvferry with a configuration file of its own."""

    def __init__(self, folder: Path, config: str, io: str, *args, ports=(), descriptors=None, cpu=None):
        assert program().exists(), "no program at %s: build it, or set KVFERRY_BINARY" % program()
        self.folder = Path(folder)
        self.file = self.folder / "kvferry.yml"
        self.write(config)
        self._expected = self._listeners_of(config)
        argv = [program(), "-c", self.file, "--io", io, *args]
        self.process = Process(argv, self.folder / "kvferry.log", descriptors=descriptors, cpu=cpu)
        try:
            for port in ports:
                self.process.wait_listening(port)
            wait_for(self._has_started, START_SECONDS, "kvferry logs its listeners")
        except BaseException:
            self.process.kill()
            raise

    @staticmethod
    def _listeners_of(config: str) -> int:
        return len(re.findall(r"^\s+(?:- \{)?listen: 127\.0\.0\.1:0(?:$|,)", config, re.MULTILINE))

    def _has_started(self) -> bool:
        assert self.process.is_alive(), "kvferry ended at once:\n%s" % self.log()[-3000:]
        # The admin server logs that it listens before anything else does.
        return "configuration applied" in self.log() and len(self.listeners()) >= self._expected

    def write(self, config: str):
        """Replaces the file whole, as editors and deployment tools do."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(config)
        fresh.rename(self.file)

    def log(self) -> str:
        return self.process.output()

    def listeners(self):
        """Pairs of pool name and port, in the order of the log."""
        return [(name, int(port)) for port, name in LISTENING.findall(self.log())]

    def port(self, name=None) -> int:
        """The port that the listener of a pool was bound to, latest first; the only one without a name."""
        ports = [port for owner, port in self.listeners() if name in (None, owner)]
        assert ports, "no listener of %s in the log:\n%s" % (name, self.log()[-2000:])
        return ports[-1]

    def reload(self, config=None):
        if config is not None:
            self.write(config)
        self.process.child.send_signal(signal.SIGHUP)

    def wait_log(self, pattern: str, seconds: float = 5.0):
        return wait_for(lambda: re.search(pattern, self.log()), seconds, "log has %r" % pattern)

    def wait_port(self, port: int, listening: bool = True, seconds: float = 5.0):
        wait_for(lambda: is_listening(port) == listening, seconds,
                 "port %d is %s" % (port, "open" if listening else "closed"))

    def check_log(self):
        """No sanitizer found anything."""
        log = self.log()
        for mark in SANITIZER_REPORTS:
            assert mark not in log, log[log.index(mark) - 200:][:6000]

    def stop(self):
        """A clean end: SIGTERM, status 0, nothing found by sanitizers."""
        status = self.process.terminate()
        self.check_log()
        assert status == 0, "exit status %d\n%s" % (status, self.log()[-3000:])


class ScriptedKvferry(Kvferry):
    """A running `kvferry memcached` whose routes come from Lua files.

    `script` is the text of one file, or a list of them; it may be replaced by write() and taken over by reload(). With
    `library` the last is a file for the route library, others hold handlers for it. `listen` are texts for -l.
    """

    def __init__(self, folder: Path, script, io: str, *args, listen=("127.0.0.1:0",), workers: int = 1, proxy_arg: str = "",
                 library: bool = False, env=None):
        # pylint: disable=super-init-not-called
        assert program().exists(), "no program at %s: build it, or set KVFERRY_BINARY" % program()
        self.folder = Path(folder)
        scripts = [script] if isinstance(script, str) else script
        self.files = [self.folder / ("routes%d.lua" % (number + 1)) for number in range(len(scripts))]
        self.file = self.files[-1]
        for file, text in zip(self.files, scripts):
            file.write_text(text)
        self._expected = len(listen)
        options = "proxy_config=" + ":".join(map(str, ["routelib"] + self.files[:-1] if library else self.files))
        if library:
            options += ",proxy_arg=%s" % self.file
        elif proxy_arg:
            options += ",proxy_arg=" + proxy_arg
        options += ",proxy_uring" if io == "uring" else ",io=%s" % io
        argv = [program(), "memcached", "-U", "0", "-t", workers, "-o", options, *args]
        for each in listen:
            argv += ["-l", each]
        self.process = Process(argv, self.folder / "kvferry.log", env={**os.environ, **(env or {})})
        try:
            wait_for(self._has_started, START_SECONDS, "kvferry logs its listeners")
            assert "io=%s" % {"uring": "io_uring"}.get(io, io) in self.log(), self.log()[:1000]
        except BaseException:
            self.process.kill()
            raise

    def stats(self, what: str = "") -> dict:
        """The figures of `stats` or `stats WHAT`."""
        with Wire(self.port()) as client:
            client.send(b"stats" + (b" " + what.encode() if what else b"") + b"\r\n")
            lines = iter(client.receive_line, b"END\r\n")
            return dict(line.decode().rstrip().split(" ", 2)[1:] for line in lines)

    def reload_and_wait(self, script=None) -> bool:
        """Returns when the load that it asks for has ended: True when it ended well."""
        with Wire(self.port()) as watcher:
            watcher.ask(b"watch proxyevents\r\n", b"OK\r\n")
            self.reload(script)
            while True:
                line = watcher.receive_line()
                if b"type=proxy_conf status=done" in line:
                    return True
                if b"type=proxy_conf status=failed" in line:
                    return False


@contextlib.contextmanager
def running(folder: Path, io: str, backends: int):
    """A pool over so many memcached servers, or an embedded store when there are none; for a whole test module."""
    with contextlib.ExitStack() as ends:
        servers = []
        for _ in range(backends):
            servers.append(Memcached(folder))
            ends.callback(servers[-1].stop)
        config = pool("main", [each.port for each in servers]) if servers else store()
        server = Kvferry(folder, config, io)
        server.backends = servers
        ends.callback(server.stop)
        yield server


class StoreServer:
    """A running `kvferry memcached`: the embedded store in the place of a memcached, with its options."""

    def __init__(self, folder: Path, io: str, *args):
        self.port = free_port()
        user = ("-u", "root") if os.geteuid() == 0 else ()
        argv = [program(), "memcached", "-l", "127.0.0.1:%d" % self.port, "-U", "0", "-o", "io=" + io, *user, *args]
        self.process = Process(argv, Path(folder) / ("store-%d.log" % self.port))
        try:
            self.process.wait_listening(self.port)
        except BaseException:
            self.process.kill()
            raise

    def stop(self):
        """A clean end, nothing found by sanitizers."""
        status, log = self.process.terminate(), self.process.output()
        assert status == 0 and not any(mark in log for mark in SANITIZER_REPORTS), log[-6000:]


@contextlib.contextmanager
def running_store(folder: Path, io: str, *args):
    server = StoreServer(folder, io, *args)
    try:
        yield server
        server.stop()
    finally:
        server.process.kill()


def run(*args, stdin: str = "", seconds: float = 20):
    """A call of the program that ends by itself."""
    return subprocess.run([str(program()), *map(str, args)], input=stdin, capture_output=True, text=True,
                          timeout=seconds, check=False)
