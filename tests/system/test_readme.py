"""The commands of README.md, as they stand there.

They use fixed ports, so they run in a network namespace of their own, where nothing else listens. Where the kernel does
not let us make one, they are skipped.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
sys.path.insert(0, str(ROOT / "tools"))

from check_docs import document_block  # noqa: E402

# Who is not root needs a user namespace as well. They stay who they are in it, as memcached behaves differently for root.
AS_USER = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
ENTER = ["unshare", "--net", *AS_USER, "--pid", "--fork", "--kill-child"]
LOOPBACK_UP = (
    "import fcntl, os, socket, struct, sys\n"
    "probe = socket.socket()\n"
    "up = struct.pack('16sh14s', b'lo', 1, b'')\n"
    "fcntl.ioctl(probe, 0x8914, up)\n"  # SIOCSIFFLAGS, IFF_UP
    "probe.close()\n"
    "os.execvp(sys.argv[1], sys.argv[1:])\n")


def enter(*command):
    return [*ENTER, "/usr/bin/python3", "-c", LOOPBACK_UP, *command]


@pytest.fixture(scope="module", autouse=True)
def needs():
    if os.environ.get("KVFERRY_BUILD", "release") != "release":
        pytest.skip("README.md runs the release build")
    if not (ROOT / "build" / "release" / "kvferry").exists():
        pytest.skip("no release build; the commands would build one")
    if shutil.which("nc") is None:
        pytest.skip("no nc")
    refused = subprocess.run(enter("true"), capture_output=True, text=True, timeout=60)
    if refused.returncode != 0:
        pytest.skip("no network namespace: " + refused.stderr.strip())


def run_script(script: str, seconds: float = 120) -> str:
    """Runs a script in a fresh namespace; what it started there ends with it."""
    child = subprocess.Popen(enter("bash", "-c", script), cwd=ROOT, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        output, _ = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        pytest.fail("the commands did not end:\n" + output)
    assert child.returncode == 0, output
    return output


def wait_port(port: int) -> str:
    return "for _ in $(seq 300); do nc -z 127.0.0.1 %d && break; sleep 0.1; done\n" % port


def documented_answer() -> str:
    """The block without a language that follows the client's command in README.md."""
    return re.search(r"nc 127\.0\.0\.1 11211\n```\n\n```\n(.*?)```", README.read_text(), re.DOTALL)[1]


def test_the_quick_start_answers_what_it_says():
    begin = time.monotonic()
    output = run_script("(%s) >build/readme-quick-start.log 2>&1 &\n" % document_block(README, "quick-start")
                        + wait_port(11211)
                        + document_block(README, "quick-start-client"))
    assert output.replace("\r\n", "\n") == documented_answer()
    assert time.monotonic() - begin < 60, "with everything built, ./run starts within seconds"


def test_the_proxy_of_the_example_stores_and_reads():
    commands = document_block(README, "proxy")
    output = run_script("(%s) >build/readme-proxy.log 2>&1 &\n" % commands
                        + wait_port(11212) + wait_port(11213) + wait_port(22121)
                        + "printf 'set a 0 0 1\\r\\nx\\r\\nget a\\r\\nquit\\r\\n' | nc 127.0.0.1 22121\n")
    assert output.splitlines() == ["STORED", "VALUE a 0 1", "x", "END"]


def test_check_and_explain_answer():
    output = run_script("set -e\n" + document_block(README, "explain"))
    assert "user:42" in output and "user:43" in output
    assert "alpha" in output or "beta" in output
