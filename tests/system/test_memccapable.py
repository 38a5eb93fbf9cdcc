"""The conformance program of libmemcached through a pool over one real memcached.

Of its 27 text cases a pool here passes 25, and all 27 where the listener allows the commands of administrators. What
nutcracker 0.5.0 does was measured over memcached 1.6.18, and the last line that it got before it closed the connection
was seen on the wire:

    case                        nutcracker  kvferry        why the others fail
    ascii version               -           pass           nutcracker closes on `version foo bar`; here that is an ERROR line
    ascii quit                  -           pass           nutcracker closes on `quit foo bar`; here that is an ERROR line
    ascii verbosity             -           pass           nutcracker does not know the command; here the proxy answers for itself
    ascii set, set noreply      -           pass           as version, which they call to see that no reply is left over
    ascii get                   -           pass           nutcracker closes on `get` without a key
    ascii gets                  -           pass           the same
    ascii mget                  pass        pass
    ascii flush                 -           administrators it empties every server of the pool for all clients
    ascii flush noreply         -           administrators the same
    ascii add, add noreply      -           pass           as version
    ascii replace, .. noreply   -           pass           as version
    ascii cas, cas noreply      -           pass           as version
    ascii delete, .. noreply    -           pass           nutcracker closes on `delete` without a key
    ascii incr                  pass        pass
    ascii incr noreply          -           pass           as version
    ascii decr                  pass        pass
    ascii decr noreply          -           pass           as version
    ascii append                pass        pass
    ascii append noreply        -           pass           as version
    ascii prepend               pass        pass
    ascii prepend noreply       -           pass           as version
    ascii stat                  -           pass           nutcracker does not know the command; here the proxy answers for itself

Of its 27 binary cases a pool here passes 25, and all 27 where the listener allows the commands of administrators; nutcracker
speaks no binary protocol at all:

    binary flush, flushq        -           administrators they empty every server of the pool for all clients
    all others                  -           pass

Run in one go (`-b`) without that permission more of them fail, since the two are also how the program gets rid of the keys of
its other cases: here each case begins with an empty server.

memcached's own proxy has to be compiled in, which Debian's package does not do, so it was not measured. It answers version
and quit for itself and passes all commands of keys on, all of which pass here; flush_all is none of its commands.
"""

import re
import subprocess

import pytest

from support.kvferry import pool
from support.nutcracker import Nutcracker
from support.wire import Wire

# Refused, with an error line, unless the listener says `admin: true`. Everything else must pass.
FOR_ADMINISTRATORS = ["ascii flush", "ascii flush noreply"]
BINARY_FOR_ADMINISTRATORS = ["binary flush", "binary flushq"]
# Column nutcracker of the table above. A newer one may pass more.
NUTCRACKER_PASSES = {"ascii mget", "ascii incr", "ascii decr", "ascii append", "ascii prepend"}


def cases_of(port: int, protocol: str = "ascii") -> list:
    """Names of the cases of a protocol, by running them all against a server that knows every command."""
    done = subprocess.run(["memccapable", "-h", "127.0.0.1", "-p", str(port), "-" + protocol[0]], capture_output=True, text=True,
                          timeout=60, check=False)
    names = re.findall(r"^(%s .*?)\s+\[\w+\]$" % protocol, done.stdout + done.stderr, re.MULTILINE)
    assert len(names) > 15 and done.returncode == 0, done.stdout + done.stderr
    return names


def run_case(port: int, name: str) -> subprocess.CompletedProcess:
    return subprocess.run(["memccapable", "-h", "127.0.0.1", "-p", str(port), "-T", name, "-t", "2", "-v"], capture_output=True,
                          text=True, timeout=30, check=False)


def passes(port: int, name: str) -> bool:
    # A name that it does not know runs nothing and ends well, without the word.
    done = run_case(port, name)
    return done.returncode == 0 and "[pass]" in done.stdout + done.stderr


def said_of(port: int, names: list) -> str:
    """For the message of a failed test: what the program has against these cases."""
    return "\n".join(run_case(port, name).stderr for name in names)


@pytest.fixture
def names(memcached):
    return cases_of(memcached().port)  # A server of its own: the cases leave their keys behind.


def test_cases_of_keys_pass_through_a_pool(memcached, kvferry, names):
    port = kvferry(pool("main", [memcached().port])).port()
    failed = [name for name in names if not passes(port, name)]
    assert failed == FOR_ADMINISTRATORS, said_of(port, failed)


@pytest.mark.parametrize("is_administrator", [False, True], ids=["clients", "administrators"])
def test_binary_cases_pass_through_a_pool(memcached, kvferry, is_administrator):
    names = cases_of(memcached().port, "binary")
    backend = memcached()
    config = pool("main", [backend.port])
    if is_administrator:
        config = config.replace("listen: 127.0.0.1:0", "listen: [ { address: 127.0.0.1:0, admin: true } ]")
    server = kvferry(config)
    server.wait_log(r"listening address=127\.0\.0\.1:\d+ pool=main")
    failed = []
    with Wire(backend.port) as direct:
        for name in names:
            direct.ask(b"flush_all\r\n", b"OK\r\n")
            if not passes(server.port(), name):
                failed.append(name)
    assert failed == ([] if is_administrator else BINARY_FOR_ADMINISTRATORS), said_of(server.port(), failed)


def test_all_cases_pass_through_a_listener_for_administrators(memcached, kvferry, names):
    config = pool("main", [memcached().port]).replace("listen: 127.0.0.1:0", "listen: [ { address: 127.0.0.1:0, admin: true } ]")
    server = kvferry(config)
    server.wait_log(r"listening address=127\.0\.0\.1:\d+ pool=main")
    port = server.port()
    failed = [name for name in names if not passes(port, name)]
    assert failed == [], said_of(port, failed)


def test_what_passes_through_nutcracker_passes_here(tmp_path, memcached, kvferry, cleanup, names):
    theirs = Nutcracker(tmp_path, [memcached().port])
    cleanup.add(theirs.stop)
    port = kvferry(pool("main", [memcached().port])).port()
    passed = [name for name in names if passes(theirs.port, name)]
    # Against a nutcracker that fails for another reason, and against a table that is no longer true.
    assert NUTCRACKER_PASSES <= set(passed)
    failed = [name for name in passed if not passes(port, name)]
    assert failed == [], said_of(port, failed)
