"""The conformance program of libmemcached through a pool over one real memcached.

Cases that need a command of the whole server, not of a key, cannot pass a proxy: nutcracker closes the connection on
them. Here they are answered with an error line, and the connection stays.
"""

import re
import subprocess

import pytest

from support.kvferry import pool

# What a pool does not do, and why. Everything else must pass.
NOT_FOR_A_POOL = {
    "ascii flush": "flush_all is a command of a whole server; it would empty all backends for all clients",
    "ascii flush noreply": "the same",
    "ascii stat": "answered by the proxy about itself; allowed to pass, not required",
    "ascii verbosity": "answered by the proxy about itself; allowed to pass, not required",
}


def cases_of(port: int) -> list:
    """Names of the ASCII cases, by running them all against a server that knows every command."""
    done = subprocess.run(["memccapable", "-h", "127.0.0.1", "-p", str(port), "-a"], capture_output=True, text=True, timeout=60,
                          check=False)
    names = re.findall(r"^(ascii .*?)\s+\[\w+\]$", done.stdout + done.stderr, re.MULTILINE)
    assert len(names) > 15 and done.returncode == 0, done.stdout + done.stderr
    return names


def run_case(port: int, name: str) -> subprocess.CompletedProcess:
    return subprocess.run(["memccapable", "-h", "127.0.0.1", "-p", str(port), "-T", name, "-t", "2"], capture_output=True, text=True,
                          timeout=30, check=False)


def passes(port: int, name: str) -> bool:
    done = run_case(port, name)
    return done.returncode == 0 and "[pass]" in done.stdout + done.stderr


@pytest.mark.parametrize("count", [1])
def test_ascii_cases_through_a_pool(memcached, kvferry, count):
    backends = [memcached() for _ in range(count)]
    names = cases_of(memcached().port)  # Another server: the cases leave their keys behind.
    proxy = kvferry(pool("main", [each.port for each in backends]))
    failed = [name for name in names if not passes(proxy.port(), name) and name not in NOT_FOR_A_POOL]
    assert failed == [], run_case(proxy.port(), failed[0]).stderr
