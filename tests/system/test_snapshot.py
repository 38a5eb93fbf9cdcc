"""Warm starts: what lives in the embedded store at a clean end is there again after the next start."""

import os
import resource
import signal
import subprocess
import threading
import time

import pytest
from support.kvferry import Kvferry, ScriptedKvferry, program
from support.process import wait_for
from support.wire import storage, value_reply


def config(path, more: str = "", store: str = "") -> str:
    return ("kvferry:\n  workers: 2\n  store: {memory: 256mb, item_size_max: 16mb, snapshot: \"%s\"%s}\n%s"
            "cache:\n  protocol: store\n  listen: 127.0.0.1:0\n" % (path, store, more))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "items.snap"


@pytest.fixture(name="kvferry")
def fixture_kvferry(tmp_path, cleanup, io):
    """As elsewhere, but each test ends its servers as it likes; those that are left are killed."""
    count = 0

    def start(text, kind=Kvferry, *args):
        nonlocal count
        count += 1
        folder = tmp_path / ("kvferry%d" % count)
        folder.mkdir()
        server = kind(folder, text, io, *args)
        cleanup.add(server.check_log)
        cleanup.add(server.process.kill)
        return server
    return start


def end(server, status: int = 0):
    assert server.process.terminate() == status, server.log()
    server.check_log()


def refused(text: str, tmp_path) -> str:
    """What the program says when it does not start."""
    file = tmp_path / "refused.yml"
    file.write_text(text)
    done = subprocess.run([program(), "-c", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr


def fill(client, count: int = 200):
    for number in range(count):
        client.send(storage("set", "k%d" % number, b"value-%d" % number, flags=number, ttl=3000 if number % 2 else 0, tail="noreply"))
    client.expect_in_step()


def check(client, count: int = 200):
    for number in range(count):
        client.ask(b"get k%d\r\n" % number, value_reply("k%d" % number, b"value-%d" % number, number) + b"END\r\n")


def test_a_restart_keeps_items(kvferry, wire, path):
    large = bytes(range(256)) * 20_000
    first = kvferry(config(path))
    client = wire(first.port(), seconds=20)
    fill(client)
    client.ask(storage("set", "large", large), b"STORED\r\n")
    client.ask(b"ms short 1 T2\r\nx\r\nms stale 3 T1000 F5\r\nold\r\nmd stale I T900\r\n", b"HD\r\nHD\r\nHD\r\n")
    client.ask(b"ms AAEC/w== 1 b\r\ny\r\n", b"HD\r\n")
    client.ask(storage("set", "gone", b"x") + b"delete gone\r\n", b"STORED\r\nDELETED\r\n")
    cas = client.ask_line(b"mg k1 c\r\n").split()[1]
    end(first)
    assert "snapshot written" in first.log()
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    time.sleep(2.1)

    second = kvferry(config(path))
    assert second.log().index("snapshot read") < second.log().index("listening")
    client = wire(second.port(), seconds=20)
    check(client)
    client.ask(b"get large\r\n", value_reply("large", large) + b"END\r\n")
    client.ask(b"get gone short\r\n", b"END\r\n")
    client.ask(b"mg k1 c t\r\n", b"HD %s t{n}\r\n" % cas)
    client.ask(b"mg k2 t\r\n", b"HD t-1\r\n")
    assert 2900 < int(client.ask_line(b"mg k1 t\r\n").split()[1][1:]) < 2999
    client.ask(b"mg AAEC/w== b k v\r\n", b"VA 1 kAAEC/w== b\r\ny\r\n")
    # The word to recache is still to be given away, once.
    client.ask(b"mg stale v f\r\n", b"VA 3 f5 X W\r\nold\r\n")
    client.ask(b"mg stale v f\r\n", b"VA 3 f5 Z X\r\nold\r\n")
    # New CAS uniques are above all that clients may know.
    new = client.ask_line(b"ms fresh 1 c\r\nx\r\n").split()[1]
    assert int(new[1:]) > int(cas[1:])
    assert not path.exists() and path.with_suffix(".snap.read").exists()


def test_a_killed_server_leaves_the_old_file_which_is_not_read_again(kvferry, wire, path):
    first = kvferry(config(path))
    fill(wire(first.port()))
    end(first)
    second = kvferry(config(path))
    client = wire(second.port())
    check(client)
    client.ask(storage("set", "k1", b"changed"), b"STORED\r\n")
    second.process.kill()
    # Items of before the change are no good without it; but whoever wants them can have them.
    read = path.with_suffix(".snap.read")
    third = kvferry(config(path))
    wire(third.port()).ask(b"get k1 k2\r\n", b"END\r\n")
    third.process.kill()
    read.rename(path)
    check(wire(kvferry(config(path)).port()))


def damage_cut(data):
    return data[:len(data) // 2]


def damage_bit(data):
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


def damage_version(data):
    return data[:8] + b"\x07" + data[9:]


@pytest.mark.parametrize("damage, message", [
    (damage_cut, "the snapshot is cut off"), (damage_bit, "byte 48: block 0 is damaged: its checksum does not fit"),
    (damage_version, "byte 8: the snapshot has version 7; this program reads version 1"),
    (lambda data: b"#!/bin/sh\n" * 100, "byte 0: this is no snapshot of kvferry, which begins with KVFSNAP"),
    (lambda data: data + b"x", "there are bytes behind the end of the snapshot"),
    (lambda data: b"", "byte 0: the snapshot is cut off: it has 0 bytes and no end")])
def test_what_cannot_be_read_is_refused_or_left_out(damage, message, kvferry, wire, path, tmp_path):
    first = kvferry(config(path))
    fill(wire(first.port()))
    end(first)
    path.write_bytes(damage(path.read_bytes()))
    kept = path.read_bytes()
    said = refused(config(path), tmp_path)
    assert "snapshot %s: " % path in said and message in said
    assert path.read_bytes() == kept
    empty = kvferry(config(path, store=", on_bad_snapshot: start_empty"))
    assert "starts without its snapshot" in empty.log() and message in empty.log()
    client = wire(empty.port())
    client.ask(b"get k1 k2 k150\r\n", b"END\r\n")
    client.ask(storage("set", "n", b"new"), b"STORED\r\n")
    end(empty)
    wire(kvferry(config(path)).port()).ask(b"get n k1\r\n", value_reply("n", b"new") + b"END\r\n")


def test_places_that_cannot_be_used_are_refused_at_the_start(tmp_path):
    assert "cannot be made: No such file or directory" in refused(config(tmp_path / "none" / "s"), tmp_path)
    assert "is no plain file" in refused(config(tmp_path), tmp_path)
    if os.geteuid() != 0:
        folder = tmp_path / "locked"
        folder.mkdir(mode=0o500)
        assert "Permission denied" in refused(config(folder / "s"), tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_permission_denied(tmp_path, path):
    """As another user, for whom permissions hold."""
    path.write_bytes(b"x")
    path.chmod(0o600)
    tmp_path.chmod(0o777)
    for folder in list(tmp_path.parents)[:3]:
        folder.chmod(folder.stat().st_mode | 0o011)
    file = tmp_path / "p.yml"
    file.write_text(config(path))
    file.chmod(0o644)

    def become():
        os.setgid(65534)
        os.setuid(65534)

    try:
        done = subprocess.run([program(), "-c", file], capture_output=True, text=True, timeout=60, preexec_fn=become, check=False)
    except PermissionError:
        pytest.skip("the program is where nobody may run it")
    assert done.returncode == 1 and "cannot be opened: Permission denied" in done.stdout + done.stderr


def test_a_disk_that_is_full_leaves_the_old_file(kvferry, wire, path):
    first = kvferry(config(path))
    fill(wire(first.port()))
    end(first)
    kept = path.read_bytes()
    path.with_suffix(".kept").write_bytes(kept)
    second = kvferry(config(path))
    client = wire(second.port(), seconds=20)
    for number in range(10):
        client.ask(storage("set", "big%d" % number, b"x" * 1_000_000), b"STORED\r\n")
    path.with_suffix(".kept").rename(path)
    resource.prlimit(second.process.child.pid, resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
    end(second, status=1)
    assert "no snapshot was written" in second.log() and "File too large" in second.log()
    assert path.read_bytes() == kept
    assert not path.with_suffix(".snap.new").exists()


def test_a_full_file_system(kvferry, wire, tmp_path, cleanup):
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    cleanup.add(lambda: subprocess.run(["umount", folder], check=True))
    server = kvferry(config(folder / "s"))
    client = wire(server.port(), seconds=20)
    for number in range(5):
        client.ask(storage("set", "big%d" % number, b"x" * 1_000_000), b"STORED\r\n")
    end(server, status=1)
    assert "No space left on device" in server.log()
    assert list(folder.iterdir()) == []


def test_the_end_waits_for_a_snapshot_only_so_long(kvferry, wire, path):
    server = kvferry(config(path, store=", snapshot_timeout: 1ms"))
    client = wire(server.port(), seconds=60)
    for number in range(100):
        client.send(storage("set", "k%d" % number, b"x" * 1_000_000, tail="noreply"))
    for number in range(20_000):
        client.send(storage("set", "s%d" % number, b"x", tail="noreply"))
    client.expect_in_step()
    end(server, status=1)
    assert "writing took longer than snapshot_timeout" in server.log()
    assert not path.exists() and not path.with_suffix(".snap.new").exists()


def test_the_start_waits_for_a_snapshot_only_so_long(kvferry, wire, path):
    first = kvferry(config(path))
    client = wire(first.port(), seconds=60)
    for number in range(100):
        client.send(storage("set", "k%d" % number, b"x" * 1_000_000, tail="noreply"))
    client.expect_in_step()
    end(first)
    second = kvferry(config(path, store=", snapshot_timeout: 1ms"))
    assert "snapshot read in part: snapshot_timeout was over" in second.log()
    wire(second.port()).expect_in_step()


def test_killed_while_it_writes(kvferry, wire, path):
    """Whenever that is, the file of before is whole, or the new one is."""
    first = kvferry(config(path))
    fill(wire(first.port()))
    end(first)
    kept = path.read_bytes()
    for wait in (0.0, 0.005, 0.02, 0.05, 0.1):
        path.write_bytes(kept)
        server = kvferry(config(path))
        client = wire(server.port(), seconds=60)
        for number in range(60):
            client.send(storage("set", "b%d" % number, b"x" * 1_000_000, tail="noreply"))
        client.expect_in_step()
        path.write_bytes(kept)
        server.process.child.send_signal(signal.SIGTERM)
        try:
            wait_for(path.with_suffix(".snap.new").exists, 5, "it writes")
        except AssertionError:
            pass  # It was quicker than we looked.
        time.sleep(wait)
        server.process.kill()
        data = path.read_bytes()
        assert data == kept or len(data) > 60_000_000
        after = kvferry(config(path))
        client = wire(after.port(), seconds=20)
        check(client)
        after.process.kill()


def test_a_smaller_store_reads_what_fits(kvferry, wire, path):
    first = kvferry(config(path))
    client = wire(first.port(), seconds=60)
    for number in range(40_000):
        client.send(storage("set", "k%d" % number, b"v" * 1000, tail="noreply"))
    client.expect_in_step()
    end(first)
    text = config(path).replace("256mb", "8mb").replace("16mb", "100kb")
    second = kvferry(text)
    client = wire(second.port())
    client.send(b"stats\r\n")
    stats = dict(line.rstrip().split(b" ", 2)[1:] for line in iter(client.receive_line, b"END\r\n"))
    assert 2000 < int(stats[b"curr_items"]) < 8000
    assert int(stats[b"bytes"]) < 8 << 20


def test_copies_of_near_caches_stay_out(kvferry, memcached, wire, path):
    server = memcached()
    text = config(path, more="  routes:\n    - {name: r, listen: 127.0.0.1:0, default: {nearcache: {child: a, ttl: 1h}}}\n")
    text += "a: {protocol: memcache, servers: [\"127.0.0.1:%d\"]}\n" % server.port
    first = kvferry(text)
    client = wire(first.port("r"))
    client.ask(storage("set", "k", b"v"), b"STORED\r\n")
    client.ask(b"get k\r\n", value_reply("k", b"v") + b"END\r\n")
    wire(first.port("store")).ask(storage("set", "own", b"o"), b"STORED\r\n")
    end(first)
    wire(server.port).ask(b"delete k\r\n", b"DELETED\r\n")
    second = kvferry(text)
    wire(second.port("r")).ask(b"get k\r\n", b"END\r\n")
    wire(second.port("store")).ask(b"get own\r\n", value_reply("own", b"o") + b"END\r\n")
    assert " items=1 " in second.log() or "items=\"1\"" in second.log(), second.log()


def test_memcacheds_option_and_signal(kvferry, wire, path):
    """`-e`, which ends at SIGUSR1 too, and begins anew when it cannot use what is there."""
    script = "function mcp_config_pools() return {} end\nfunction mcp_config_routes() end\n"
    first = kvferry(script, ScriptedKvferry, "-e", path)
    fill(wire(first.port()))
    first.process.child.send_signal(signal.SIGUSR1)
    assert first.process.child.wait(20) == 0
    second = kvferry(script, ScriptedKvferry, "-e", path)
    check(wire(second.port()))
    end(second)
    path.write_bytes(path.read_bytes()[:-5])
    third = kvferry(script, ScriptedKvferry, "-e", path)
    assert "starts without its snapshot" in third.log()
    wire(third.port()).ask(b"get k1\r\n", b"END\r\n")


def test_writes_until_the_end_are_in_the_snapshot(kvferry, wire, path):
    """Whatever was answered before the end is there after it."""
    first = kvferry(config(path))
    client, answered = wire(first.port()), []

    def write():
        number = 0
        try:
            while True:
                client.ask(storage("set", "w%d" % number, b"x"), b"STORED\r\n")
                answered.append(number)
                number += 1
        except (AssertionError, OSError):
            pass

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(0.5)
    end(first)
    writer.join()
    client = wire(kvferry(config(path)).port())
    assert answered
    for number in answered:
        client.ask(b"get w%d\r\n" % number, value_reply("w%d" % number, b"x") + b"END\r\n")
