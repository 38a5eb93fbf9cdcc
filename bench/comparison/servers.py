"""Servers of a comparison: two memcached, nutcracker and kvferry in front of them, all on loopback, pinned to cores."""

import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUTES = Path(__file__).with_name("routes")
LOAD_SOURCES = ("load_generator.cc", "load/options.cc", "load/report.cc", "load/traffic.cc")
FIRST_PORT, PORT_COUNT = 15000, 15000  # Below the ephemeral range.
START_SECONDS = 10
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

# The same pool for both, as a file of nutcracker. kvferry gets its number of workers in addition.
POOL = """bench:
  listen: 127.0.0.1:{port}
  hash: fnv1a_64
  distribution: ketama
  preconnect: true
  auto_eject_hosts: false
  server_connections: 1
  servers:
   - 127.0.0.1:{first}:1
   - 127.0.0.1:{second}:1
"""

_ports = itertools.count(1)


def free_port() -> int:
    for _ in range(PORT_COUNT):
        port = FIRST_PORT + (os.getpid() * 173 + next(_ports)) % PORT_COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port")


class Server:
    """A process on one core."""

    def __init__(self, name, argv, core, log, port):
        self.name, self.port, self.log = name, port, log
        with open(log, "wb") as output:
            self.child = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=output,
                                          stderr=subprocess.STDOUT, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        try:
            self._wait_listening()
        except BaseException:
            self.stop()  # Nobody else knows of it yet.
            raise

    def _wait_listening(self):
        end = time.monotonic() + START_SECONDS
        while True:
            if self.child.poll() is not None:
                raise RuntimeError("%s ended at once:\n%s" % (self.name, Path(self.log).read_text(errors="replace")[-2000:]))
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.5).close()
                return
            except OSError:
                if time.monotonic() > end:
                    raise RuntimeError("%s does not listen; see %s" % (self.name, self.log)) from None
                time.sleep(0.05)

    def cpu_seconds(self) -> float:
        """From the scheduler's counters in nanoseconds, over all threads."""
        total = 0
        for task in Path("/proc/%d/task" % self.child.pid).iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:
                pass  # The thread has just ended.
        return total / 1e9

    def _status_kb(self, name) -> int:
        return int(re.search(name + r":\s+(\d+)", Path("/proc/%d/status" % self.child.pid).read_text()).group(1))

    def rss_kb(self) -> int:
        return self._status_kb("VmRSS")

    def peak_rss_kb(self) -> int:
        return self._status_kb("VmHWM")

    def reset_peak_rss(self):
        Path("/proc/%d/clear_refs" % self.child.pid).write_text("5")

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(3)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def end_with_signals():
    """Makes a signal that asks this program to end raise, so that contexts end and their servers with them."""
    def leave(number, _):
        sys.exit(128 + number)
    for number in ENDING_SIGNALS:
        signal.signal(number, leave)


class Field:
    """The servers of one comparison. Use as a context: everything ends with it."""

    def __init__(self, options):
        self.options = options
        self.folder = Path(tempfile.mkdtemp(prefix="kvferry-compare."))
        self.servers = []
        self.backends = []
        self.proxies = []
        os.sched_setaffinity(0, {options.load_core})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Asked once more, it goes on ending its servers.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING_SIGNALS}
        for server in reversed(self.servers):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        for number, handler in before.items():
            signal.signal(number, handler)

    def _start(self, name, argv, core, port) -> Server:
        server = Server(name, argv, core, self.folder / (name + ".log"), port)
        self.servers.append(server)
        return server

    def start_backends(self, megabytes=256, *more):
        user = ["-u", "root"] if os.geteuid() == 0 else []
        for number in (1, 2):
            port = free_port()
            argv = ["memcached", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "1", "-m", megabytes, "-c", "4096", *user, *more]
            self.backends.append(self._start("memcached%d" % number, argv, self.options.load_core, port))

    def start_proxies(self):
        """Nutcracker where it is installed, and kvferry with each engine asked for."""
        if self.options.nutcracker and shutil.which("nutcracker"):
            port = free_port()
            argv = ["nutcracker", "-c", self._pool_file("nutcracker", port), "-a", "127.0.0.1", "-s", free_port(), "-v", "4"]
            self.proxies.append(self._start("nutcracker", argv, self.options.proxy_core, port))
        elif self.options.nutcracker:
            print("nutcracker is not installed; kvferry is measured alone", file=sys.stderr)
        for engine in self.options.io.split(","):
            name, port = "kvferry-" + engine, free_port()
            file = self._pool_file(name, port, "kvferry:\n  workers: 1\n")
            argv = [self.options.binary, "-c", file, "--io", engine]
            self.proxies.append(self._start(name, argv, self.options.proxy_core, port))

    def start_scripts(self, names):
        """Routes of Lua over the same backends, each a kvferry of its own with the first engine asked for."""
        user = ["-u", "root"] if os.geteuid() == 0 else []
        for name in names:
            text = (ROUTES / (name + ".lua")).read_text()
            file = self.folder / (name + ".lua")
            file.write_text(text.replace("@first@", str(self.backends[0].port)).replace("@second@", str(self.backends[1].port)))
            library = "routelib,proxy_arg=" if name == "native" else ""
            port = free_port()
            argv = [self.options.binary, "memcached", "-l", "127.0.0.1:%d" % port, "-U", "0", "-t", "1", *user,
                    "-o", "io=%s,proxy_config=%s%s" % (self.options.io.split(",")[0], library, file)]
            self.proxies.append(self._start("route-" + name, argv, self.options.proxy_core, port))

    def start_stores(self, megabytes):
        """memcached, and kvferry in its place with each engine asked for: one thread and the same memory."""
        user = ["-u", "root"] if os.geteuid() == 0 else []
        common = ["-U", "0", "-t", "1", "-m", megabytes, "-c", "4096", *user]
        port = free_port()
        self.proxies.append(self._start("memcached", ["memcached", "-l", "127.0.0.1", "-p", port, *common], self.options.proxy_core, port))
        for engine in self.options.io.split(","):
            port = free_port()
            argv = [self.options.binary, "memcached", "-l", "127.0.0.1:%d" % port, "-o", "io=" + engine, *common]
            self.proxies.append(self._start("kvferry-" + engine, argv, self.options.proxy_core, port))

    def _pool_file(self, name, port, head="") -> Path:
        file = self.folder / (name + ".yml")
        file.write_text(head + POOL.format(port=port, first=self.backends[0].port, second=self.backends[1].port))
        return file


def built_tool(name, sources, headers) -> Path:
    """A tool of this folder that needs nothing but the compiler: as it was built, or built now when a source is newer."""
    bench = ROOT / "bench"
    newest = max(path.stat().st_mtime for path in [*(bench / source for source in sources), *bench.glob(headers)])
    built = ROOT / "build" / "tools" / name
    if not built.exists() or built.stat().st_mtime < newest:
        built.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["g++", "-std=c++20", "-O2", "-iquote", str(bench), "-o", str(built)]
                       + [str(bench / source) for source in sources], check=True)
    return built


def load_generator(given) -> Path:
    """The one given, one that a build has made, or one compiled now."""
    return Path(given) if given else built_tool("kvferry-load", LOAD_SOURCES, "load/*.h")
