"""memcached's binary protocol: packets made by hand, the conformance program, and the clients that speak nothing else."""

import itertools
import re
import signal
import struct
import subprocess
import time
from pathlib import Path

import bmemcached
import pytest

from support import binary
from support.binary import BinaryClient, arith, plain, request, storage, touch
from support.kvferry import Kvferry, pool, program, running, store
from support.memcached import Memcached
from support.ports import free_port
from support.process import Process, wait_for
from support.wire import Wire

SCRIPTS = Path(__file__).resolve().parent / "clients"
PROGRAM_SECONDS = 40
ADMIN = ("listen: 127.0.0.1:0", "listen: [ { address: 127.0.0.1:0, admin: true } ]")


def admin_pool(servers) -> str:
    return pool("main", servers).replace(*ADMIN)


@pytest.fixture(scope="module", params=["store", "pool"])
def server(request, io, tmp_path_factory):  # pylint: disable=redefined-outer-name
    folder = tmp_path_factory.mktemp("binary-%s-%s" % (request.param, io))
    with running(folder, io, 2 if request.param == "pool" else 0) as each:
        each.is_pool = request.param == "pool"
        yield each


@pytest.fixture
def client(server, cleanup):
    made = BinaryClient(server.port())
    cleanup.add(made.close)
    return made


KEYS = itertools.count()


@pytest.fixture
def key():
    """A key that no other test uses."""
    return b"bin:%d" % next(KEYS)


# Every opcode.

def test_get_and_its_kin(client, key):
    made = client.ask_packet(storage("set", key, b"value", flags=7, opaque=0x01020304))
    assert (made.status, made.opaque, made.value) == (binary.OK, 0x01020304, b"") and made.cas != 0
    flags = struct.pack(">I", 7)
    for name in ("get", "getq"):
        assert client.call(name, key, opaque=9) == (binary.OPCODES[name], binary.OK, 9, made.cas, flags, b"", b"value")
    for name in ("getk", "getkq"):
        assert client.call(name, key) == (binary.OPCODES[name], binary.OK, 0, made.cas, flags, key, b"value")
    for name in ("gat", "gatq", "gatk", "gatkq"):
        found = client.ask_packet(touch(name, key, 100))
        assert found == (binary.OPCODES[name], binary.OK, 0, made.cas, flags, key if "k" in name else b"", b"value")
    touched = client.ask_packet(touch("touch", key, 100))
    assert touched == (binary.OPCODES["touch"], binary.OK, 0, made.cas, flags, b"", b"")


def test_misses(client, key):
    for name in ("get", "gat", "touch"):
        missed = client.ask_packet(request(name, key) if name == "get" else touch(name, key, 1))
        assert missed == (binary.OPCODES[name], binary.NOT_FOUND, 0, 0, b"", b"", b"Not found")
    for name in ("getk", "gatk"):
        missed = client.ask_packet(request(name, key) if name == "getk" else touch(name, key, 1))
        assert missed == (binary.OPCODES[name], binary.NOT_FOUND, 0, 0, b"", key, b"")
    assert client.collect(request("getq", key) + request("getkq", key) + touch("gatq", key, 1) + touch("gatkq", key, 1)) == []


def test_storage(client, key):
    assert client.ask_packet(storage("replace", key, b"1"))[1:] == (binary.NOT_FOUND, 0, 0, b"", b"", b"Not found")
    first = client.ask_packet(storage("add", key, b"1"))
    assert first.status == binary.OK
    assert client.ask_packet(storage("add", key, b"2"))[1:] == (binary.EXISTS, 0, 0, b"", b"", b"Data exists for key.")
    assert client.ask_packet(storage("set", key, b"3", cas=first.cas + 1000)).status == binary.EXISTS
    second = client.ask_packet(storage("set", key, b"3", cas=first.cas))
    assert second.status == binary.OK and second.cas not in (0, first.cas)
    assert client.ask_packet(storage("replace", key, b"4", cas=first.cas)).status == binary.EXISTS
    assert client.ask_packet(storage("replace", key, b"4")).status == binary.OK
    assert client.ask_packet(storage("set", key + b"none", b"4", cas=5)).status == binary.NOT_FOUND
    assert client.call("append", key, b"!").status == binary.OK
    assert client.call("prepend", key, b"?").status == binary.OK
    assert client.call("append", key, b"!", cas=first.cas).status == binary.EXISTS
    assert client.call("append", key + b"none", b"x")[1:] == (binary.NOT_STORED, 0, 0, b"", b"", b"Not stored.")
    assert client.call("get", key).value == b"?4!"
    quiet = storage("setq", key, b"5") + storage("addq", key, b"6") + storage("replaceq", key + b"no", b"7") + request("appendq", key, b"x")
    assert [(each.opcode, each.status) for each in client.collect(quiet)] == [(0x12, binary.EXISTS), (0x13, binary.NOT_FOUND)]
    assert client.call("get", key).value == b"5x"


def test_delete(client, key):
    made = client.ask_packet(storage("set", key, b"1"))
    assert client.call("delete", key, cas=made.cas + 1000).status == binary.EXISTS
    assert client.call("delete", key, cas=made.cas) == (4, binary.OK, 0, 0, b"", b"", b"")
    assert client.call("delete", key).status == binary.NOT_FOUND
    again = storage("setq", key, b"1") + request("deleteq", key) + request("deleteq", key, opaque=3)
    assert [(each.status, each.opaque) for each in client.collect(again)] == [(binary.NOT_FOUND, 3)]


def test_numbers(client, key):
    def number_of(packet):
        return struct.unpack(">Q", packet.value)[0]

    assert client.ask_packet(arith("increment", key, 5, exptime=binary.NO_CREATION)).status == binary.NOT_FOUND
    made = client.ask_packet(arith("increment", key, 5, 10))
    assert number_of(made) == 10 and made.cas != 0
    assert number_of(client.ask_packet(arith("increment", key, 5, 10))) == 15
    assert number_of(client.ask_packet(arith("decrement", key, 100))) == 0
    assert number_of(client.ask_packet(arith("increment", key, 2**64 - 1))) == 2**64 - 1
    assert number_of(client.ask_packet(arith("increment", key, 1))) == 0
    assert client.ask_packet(arith("increment", key, 1, cas=made.cas)).status == binary.EXISTS
    assert client.collect(arith("incrementq", key, 7) + arith("decrementq", key, 2)) == []
    assert client.call("get", key).value.rstrip() == b"5"
    client.ask_packet(storage("set", key, b"x"))
    failed = client.ask_packet(arith("incrementq", key))
    assert failed[1:] == (binary.NON_NUMERIC, 0, 0, b"", b"", b"Non-numeric server-side value for incr or decr")


def test_exptimes(client, key):
    for exptime, is_there in ((0, True), (100, True), (100_000_000, False), (0x7FFFFFFF, True), (0xFFFFFFFF, True)):
        client.ask_packet(storage("set", key, b"1", exptime=exptime))
        assert (client.call("get", key).status == binary.OK) == is_there, exptime
    client.ask_packet(storage("set", key, b"1"))
    client.ask_packet(touch("gat", key, 100_000_000))
    assert client.call("get", key).status == binary.NOT_FOUND


def test_noop_version_verbosity_quit(server, client, wire):
    assert client.call("noop", opaque=5) == (0x0A, binary.OK, 5, 0, b"", b"", b"")
    version = client.call("version").value
    assert wire(server.port()).ask_line(b"version\r\n") == b"VERSION %s\r\n" % version
    assert client.call("verbosity", extras=struct.pack(">I", 0)).status == binary.OK
    client.send(request("quit", opaque=4) + request("noop"))
    client.expect_closed(binary.HEADER.pack(0x81, 0x07, 0, 0, 0, 0, 0, 4, 0))
    with BinaryClient(server.port()) as other:
        other.send(request("quitq") + request("noop"))
        other.expect_closed()


def test_stats(server, client):
    assert int(client.stats()[b"pid"]) == server.process.child.pid
    assert b"maxbytes" in client.stats(b"settings") or server.is_pool
    assert client.call("stat", b"nonsense").status == binary.NOT_FOUND
    assert client.call("noop").status == binary.OK


def test_stats_count(kvferry):
    server = kvferry(store())
    with BinaryClient(server.port()) as client:
        client.collect(storage("setq", b"a", b"1") + request("getq", b"a") + request("getq", b"b") + touch("gat", b"a", 9))
        figures = client.stats()
        assert (figures[b"cmd_set"], figures[b"get_hits"], figures[b"get_misses"], figures[b"touch_hits"]) == (b"1", b"1", b"1", b"1")
        assert client.stats(b"reset") == {}
        assert client.stats()[b"cmd_set"] == b"0"


def test_flush_is_for_administrators(kvferry, memcached):
    servers = [memcached().port, memcached().port]
    for config, status in ((store(), binary.OK), (pool("main", servers), binary.UNKNOWN_COMMAND), (admin_pool(servers), binary.OK)):
        server = kvferry(config)
        server.wait_log(r"listening address=127\.0\.0\.1:\d+")
        with BinaryClient(server.port()) as client:
            client.collect(b"".join(storage("setq", b"f%d" % number, b"1") for number in range(20)))
            assert client.call("flush").status == status
            left = [client.call("get", b"f%d" % number).status for number in range(20)]
            assert left == [binary.NOT_FOUND if status == binary.OK else binary.OK] * 20
            later = client.collect(request("flushq", extras=struct.pack(">I", 1000)))
            assert [each.status for each in later] == ([] if status == binary.OK else [status])


def test_sasl_is_unknown_without_credentials(client):
    for packet in (request("sasl_list"), plain("user", "password"), request("sasl_step", b"PLAIN", b"x")):
        assert client.ask_packet(packet).status == binary.UNKNOWN_COMMAND


# Keys and values.

@pytest.mark.parametrize("odd", [b"a b", b"\0", b"line\r\nline", b"\t", b"\xff" * 250, "ü".encode(), b"k" * 250])
def test_keys_of_any_bytes(server, client, odd):
    assert client.ask_packet(storage("set", odd, b"odd value")).status == binary.OK
    found = client.call("getk", odd)
    assert (found.key, found.value) == (odd, b"odd value")
    if server.is_pool:  # The backends hold the key itself, as their own binary clients see it.
        holders = []
        for backend in server.backends:
            with BinaryClient(backend.port) as direct:
                holders.append(direct.call("get", odd).value)
        assert holders.count(b"odd value") == 1
    assert client.call("delete", odd).status == binary.OK


def test_the_longest_keys_that_a_text_line_can_hold(server, client):
    for size in (186, 187, 250):
        made = client.ask_packet(storage("set", b" " * size, b"1"))
        fits = size <= 186 or not server.is_pool
        assert made.status == (binary.OK if fits else binary.INVALID), size


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 500_000, 1_000_000])
def test_values_of_any_size(server, client, key, size, wire):
    value = (bytes(range(256)) * (size // 256 + 1))[:size]
    assert client.ask_packet(storage("set", key, value, flags=3)).status == binary.OK
    assert client.call("get", key).value == value
    text = wire(server.port())
    text.ask(b"get %s\r\n" % key, b"VALUE %s 3 %d\r\n%s\r\nEND\r\n" % (key, size, value))
    assert client.collect(storage("setq", key, value) + request("getq", key))[0].value == value


def test_a_value_over_the_limit_is_swallowed(kvferry, key):
    with BinaryClient(kvferry(store()).port()) as client:
        client.ask_packet(storage("set", key, b"old"))
        assert client.ask_packet(storage("add", key, b"v" * 2_000_000))[1:] == (binary.TOO_LARGE, 0, 0, b"", b"", b"Too large.")
        assert client.call("get", key).value == b"old"
        assert client.ask_packet(storage("setq", key, b"v" * 2_000_000)).status == binary.TOO_LARGE
        assert client.call("get", key).status == binary.NOT_FOUND


def test_text_clients_see_the_same(server, client, key, wire):
    text = wire(server.port())
    client.ask_packet(storage("set", key, b"5", flags=9))
    text.ask(b"get %s\r\n" % key, b"VALUE %s 9 1\r\n5\r\nEND\r\n" % key)
    text.ask(b"incr %s 4\r\n" % key, b"9\r\n")
    line = text.ask_line(b"gets %s\r\n" % key)
    text.expect(b"9\r\nEND\r\n")
    assert client.call("get", key).cas == int(line.split()[4])
    client.ask_packet(storage("set", key, b"7", flags=9))
    text.ask(b"cas %s 0 0 1 %s\r\n8\r\n" % (key, line.split()[4]), b"EXISTS\r\n")


# Bytes as they come.

def test_packets_cut_at_every_byte(server, key):
    packets = storage("set", key, b"cut value", flags=1) + request("getk", key) + request("noop")
    with BinaryClient(server.port()) as whole:
        whole.send(packets)
        wanted = [whole.receive_packet()._replace(cas=0) for _ in range(3)]
    with BinaryClient(server.port()) as client:
        for place in range(1, len(packets)):
            client.send(packets[:place])
            time.sleep(0.001)
            client.send(packets[place:])
            assert [client.receive_packet()._replace(cas=0) for _ in range(3)] == wanted, place


def test_single_bytes(client, key):
    for byte in storage("set", key, b"x") + request("get", key):
        client.send(bytes([byte]))
    assert client.receive_packet().status == binary.OK and client.receive_packet().value == b"x"


def test_ten_thousand_quiet_gets(client, key):
    client.collect(b"".join(storage("setq", b"%s:%d" % (key, number), b"%d" % number) for number in range(0, 10_000, 2)))
    gets = b"".join(request("getkq", b"%s:%d" % (key, number), opaque=number) for number in range(10_000))
    found = client.collect(gets, end=0xFFFFFFFF)
    assert [(each.opaque, each.value) for each in found] == [(number, b"%d" % number) for number in range(0, 10_000, 2)]


BAD = [
    (request("get", b"a", extras=b"1234"), binary.INVALID), (request("get", b"a", b"value"), binary.INVALID),
    (request("get"), binary.INVALID), (request("setq", b"a", b"v"), binary.INVALID), (request("increment", b"a"), binary.INVALID),
    (request("touch", b"a"), binary.INVALID), (request("noop", b"a"), binary.INVALID), (request("flush", extras=b"12345678"), binary.INVALID),
    (request("append", b"a", b"v", extras=b"12345678"), binary.INVALID), (request("get", b"k" * 251), binary.INVALID),
    (binary.HEADER.pack(0x80, 1, 3, 8, 0, 0, 5, 0, 0) + b"abcde", binary.UNKNOWN_COMMAND),
]


@pytest.mark.parametrize("packet, status", BAD)
def test_bad_packets_end_the_client_after_an_answer(server, packet, status):
    with BinaryClient(server.port()) as client:
        client.send(packet)
        assert client.receive_packet().status == status
        client.expect_closed()


def test_bad_magic_ends_the_client(server):
    with BinaryClient(server.port()) as client:
        client.send(request("noop") + b"\x81" + request("noop")[1:])
        assert client.receive_packet().status == binary.OK
        client.expect_closed()


def test_unknown_opcodes_are_skipped_with_their_bodies(client):
    for opcode in (0x1F, 0x25, 0x30, 0x70, 0xFF):
        assert client.call(opcode, b"key", b"value", b"1234", opaque=6)[1:3] == (binary.UNKNOWN_COMMAND, 6)
    assert client.call("noop").status == binary.OK


# Clients that are slow, and ends.

def test_a_client_that_does_not_read_loses_nothing(server, key):
    value = b"v" * 300_000
    with BinaryClient(server.port(), receive_buffer=4096, seconds=20) as client:
        assert client.ask_packet(storage("set", key, value)).status == binary.OK
        client.send(b"".join(request("get", key, opaque=number) for number in range(20)))
        time.sleep(0.5)
        for number in range(20):
            packet = client.receive_packet()
            assert (packet.opaque, packet.value) == (number, value)


def test_a_value_that_stops_coming_frees_its_place(kvferry, memcached):
    server = kvferry(pool("main", [memcached().port], body_timeout="300ms"))
    with BinaryClient(server.port()) as client:
        client.send(storage("set", b"late", b"v" * 200_000, opaque=8)[:100_000])
        late = client.receive_packet()
        assert (late.status, late.opaque) == (binary.INTERNAL_ERROR, 8)
        client.expect_closed()


def test_a_backend_that_is_gone(kvferry, memcached):
    backend = memcached()
    server = kvferry(pool("main", [backend.port]))
    with BinaryClient(server.port()) as client:
        assert client.ask_packet(storage("set", b"a", b"1")).status == binary.OK
        backend.kill()
        failed = client.call("getq", b"a", opaque=3)
        assert failed.status == binary.INTERNAL_ERROR and failed.opaque == 3 and failed.value
        assert client.call("noop").status == binary.OK


def test_idle_clients_and_the_end(kvferry):
    server = kvferry(store())
    with BinaryClient(server.port()) as client:
        client.ask_packet(storage("set", b"a", b"1"))
        server.process.child.send_signal(signal.SIGTERM)
        client.expect_closed()


# Routes.

def test_native_routes(kvferry, memcached):
    left, right = memcached(), memcached()
    config = """kvferry:
  routes:
    - name: front
      listen: 127.0.0.1:0
      map:
        "a/": { failover: { children: [left, right] } }
      default: { allsync: { children: [right] } }
left: { protocol: memcache, servers: ["127.0.0.1:%d"] }
right: { protocol: memcache, servers: ["127.0.0.1:%d"] }
""" % (left.port, right.port)
    with BinaryClient(kvferry(config).port("front")) as client:
        assert client.ask_packet(storage("set", b"a/1", b"left", flags=4)).status == binary.OK
        assert client.ask_packet(storage("set", b"b/1", b"right")).status == binary.OK
        assert [each.value for each in client.collect(request("getq", b"a/1") + request("getq", b"b/1") + request("getq", b"no"))] == [
            b"left", b"right"]
        for each, place in ((b"a/1", left), (b"b/1", right)):
            with BinaryClient(place.port) as direct:
                assert direct.call("get", each).status == binary.OK


# The command line of memcached.

class CommandLine:
    """A running `kvferry memcached` with the embedded store."""

    def __init__(self, folder, *args):
        self.port = free_port()
        self.process = Process([program(), "memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", *args],
                               Path(folder) / "memcached-mode.log")
        self.process.wait_listening(self.port)

    def stop(self):
        assert self.process.terminate() == 0, self.process.output()[-2000:]


@pytest.fixture
def command_line(tmp_path, cleanup):
    def start(*args):
        made = CommandLine(tmp_path, *args)
        cleanup.add(made.stop)
        return made
    return start


def test_credentials_hold_for_both_protocols(command_line, tmp_path):
    (tmp_path / "who").write_text("me:secret\n")
    port = command_line("-Y", tmp_path / "who").port
    with BinaryClient(port) as client:
        assert client.call("sasl_list").value == b"PLAIN"
        assert client.call("version").status == binary.OK
        assert client.ask_packet(plain("me", "wrong")).status == binary.AUTH_ERROR
        accepted = client.ask_packet(plain("me", "secret"))
        assert (accepted.status, accepted.value) == (binary.OK, b"Authenticated")
        assert client.ask_packet(storage("set", b"a", b"1")).status == binary.OK
    with BinaryClient(port) as stranger:
        stranger.send(storage("set", b"a", b"2" * 300_000))
        assert stranger.receive_packet().status == binary.AUTH_ERROR
    with Wire(port) as text:
        text.ask(b"set x 0 0 9\r\nme secret\r\n", b"STORED\r\n")
        text.ask(b"get a\r\n", b"VALUE a 0 1\r\n1\r\nEND\r\n")
    user = bmemcached.Client(("127.0.0.1:%d" % port,), "me", "secret")
    assert user.set("py", "value") and user.get("py") == "value"
    for script in (["ruby", "dalli.rb"], ["node", "memjs.js"]):
        use_script(script, port, "me", "secret")


def test_only_one_protocol(command_line):
    ascii_only = command_line("-B", "ascii").port
    with BinaryClient(ascii_only) as client:
        assert client.call("noop").status == binary.UNKNOWN_COMMAND
        client.expect_closed()
    binary_only = command_line("-B", "binary").port
    with BinaryClient(binary_only) as client:
        assert client.call("noop").status == binary.OK
        assert client.stats(b"settings")[b"binding_protocol"] == b"binary"
    with Wire(binary_only) as text:
        text.send(b"mn\r\n")
        text.expect_closed()


# The conformance program.

def conform(port):
    done = subprocess.run(["memccapable", "-h", "127.0.0.1", "-p", str(port), "-b", "-t", "5"], capture_output=True, text=True, timeout=60,
                          check=False)
    output = done.stdout + done.stderr
    names = re.findall(r"^(binary .*?)\s+\[(\w+)\]$", output, re.MULTILINE)
    assert len(names) > 15, output
    return [name for name, result in names if result != "pass"]


def test_memccapable_on_the_store(kvferry, command_line):
    assert conform(kvferry(store()).port()) == []
    assert conform(command_line().port) == []


def test_memccapable_through_a_pool(kvferry, memcached):
    server = kvferry(admin_pool([memcached().port]))
    server.wait_log(r"listening address=127\.0\.0\.1:\d+")
    assert conform(server.port()) == []


# Clients that speak nothing else.

def use_script(script, port, *who):
    done = subprocess.run([*script, str(port), *who], cwd=SCRIPTS, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def use_bmemcached(port):
    client = bmemcached.Client(("127.0.0.1:%d" % port,), socket_timeout=5)
    assert client.flush_all() and client.get("py:a") is None
    assert client.set("py:a", {"list": [1, 2]}, 60) and client.get("py:a") == {"list": [1, 2]}
    assert not client.add("py:a", "x") and client.replace("py:a", "second")
    value, number = client.get("py:a", get_cas=True)
    assert value == "second" and client.cas("py:a", "third", number) and not client.cas("py:a", "fourth", number)
    assert client.incr("py:n", 5, default=10) == 10 and client.incr("py:n", 5) == 15 and client.decr("py:n", 20) == 0
    many = {"py:m%d" % number: "value %d" % number for number in range(300)}
    client.set_multi(many)
    assert client.get_multi(list(many) + ["py:nothing"]) == many
    assert client.set("py:big", b"b" * 500_000, compress_level=0) and client.get("py:big") == b"b" * 500_000
    assert client.delete("py:a") and client.get("py:a") is None
    assert client.stats()
    client.flush_all()
    assert client.get_multi(list(many)) == {}
    client.disconnect_all()


@pytest.fixture(scope="module", params=["store", "pool", "memcached"])
def real_port(request, io, tmp_path_factory):  # pylint: disable=redefined-outer-name
    """An embedded store, a pool over two servers for administrators, and memcached itself: what fails there is a mistake of the
    test."""
    folder = tmp_path_factory.mktemp("binary-clients-%s-%s" % (request.param, io))
    backends = [Memcached(folder) for _ in range({"store": 0, "pool": 2, "memcached": 1}[request.param])]
    server = None
    if request.param != "memcached":
        server = Kvferry(folder, admin_pool([each.port for each in backends]) if backends else store(), io)
        wait_for(server.listeners, 5, "kvferry listens")
    yield server.port() if server else backends[0].port
    if server:
        server.stop()
    for each in backends:
        each.stop()


def test_bmemcached(real_port):
    use_bmemcached(real_port)


@pytest.mark.parametrize("script", [["ruby", "dalli.rb"], ["node", "memjs.js"]], ids=["dalli", "memjs"])
def test_scripts(real_port, script):
    use_script(script, real_port)
