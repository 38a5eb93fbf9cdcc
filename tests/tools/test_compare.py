"""bench/compare ends what it has started, however it ends itself."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A load generator that says that it measures, and then never ends.
LOAD = """#!/bin/sh
case "$*" in *"--op fill"*) exit 0;; esac
echo mark
exec sleep 600
"""
# In place of the programs under test: they listen, and that is all. The port is the argument behind -p, or in the file
# behind -c.
SERVER = """#!%s
import re, socket, sys, time
words = sys.argv[1:]
port = words[words.index("-p") + 1] if "-p" in words else re.search(r"listen: [0-9.]+:(\\d+)", open(words[words.index("-c") + 1]).read()).group(1)
listener = socket.create_server(("127.0.0.1", int(port)))
time.sleep(600)
""" % sys.executable
# One that does not even listen.
DEAF = "#!/bin/sh\nexec sleep 600\n"


def children_of(pid: int) -> list:
    """All processes below `pid`."""
    listed = subprocess.run(["ps", "-e", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(child): int(parent) for child, parent in (line.split() for line in listed.splitlines())}
    found, before = {pid}, set()
    while found != before:
        before = set(found)
        found |= {child for child, parent in parents.items() if parent in before}
    return sorted(found - {pid})


def is_running(pid: int) -> bool:
    try:
        return Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def make_program(path: Path, text: str):
    path.write_text(text)
    path.chmod(0o755)


def start(folder: Path, proxy: str) -> subprocess.Popen:
    make_program(folder / "load", LOAD)
    make_program(folder / "kvferry", proxy)
    make_program(folder / "memcached", SERVER)
    return subprocess.Popen(
        [sys.executable, str(ROOT / "bench" / "compare"), "speed", "--binary", str(folder / "kvferry"), "--load", str(folder / "load"),
         "--no-nutcracker", "--ops", "get", "--out", str(folder / "out.csv")],
        env={**os.environ, "PATH": "%s:%s" % (folder, os.environ["PATH"]), "TMPDIR": str(folder)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("proxy, count", [(SERVER, 4), (DEAF, 3)], ids=["load under way", "server not up yet"])
def test_ends_its_children_when_it_is_ended(tmp_path, proxy, count, number):
    compare = start(tmp_path, proxy)
    children = []
    try:
        # Two memcached and the proxy; then the load, which makes no children of its own.
        wait_until(lambda: len(children_of(compare.pid)) == count)
        time.sleep(0.2)
        children = children_of(compare.pid)
        assert len(children) == count
        compare.send_signal(number)
        assert compare.wait(20) != 0
        wait_until(lambda: not any(map(is_running, children)))
        assert list(tmp_path.glob("kvferry-compare.*")) == []
    finally:
        for pid in [compare.pid, *children]:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)
        compare.wait()
