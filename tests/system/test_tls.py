"""TLS in front and towards servers: Python's ssl as clients, memcached -Z as servers."""

import re
import socket
import ssl
import threading
import time
import urllib.request

import pytest

from support import kvferry as kvferry_support
from support.certificates import Authority
from support.kvferry import pool
from support.ports import free_port
from support.process import wait_for
from support.wire import TlsWire, Wire, storage, value_reply

BIG = bytes(range(256)) * 12000  # 3 MB, streamed in both directions.


@pytest.fixture(name="authority", scope="module")
def fixture_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


def client_context(authority, certificate=None, **versions) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.cert))
    if certificate is not None:
        context.load_cert_chain(certificate.cert, certificate.key)
    for name, version in versions.items():
        setattr(context, name, version)
    return context


def listener(certificate, pool_text: str, port: int, **keys) -> str:
    """The text of a pool whose listener speaks TLS."""
    keys = {"cert": certificate.cert, "key": certificate.key, **keys}
    tls = "{ %s }" % ", ".join("%s: %s" % pair for pair in keys.items())
    entry = "  listen:\n    - address: 127.0.0.1:%d\n      tls: %s" % (port, tls)
    text, count = re.subn(r"^  listen: .*$", lambda _: entry, pool_text, flags=re.MULTILINE)
    assert count == 1, pool_text
    return text


def secure_pool(servers, authority, port: int = 0, verify: str = "full", **keys) -> str:
    return pool("main", servers, port=port, tls="{ca: %s, verify: %s}" % (authority.cert, verify), **keys)


@pytest.fixture(name="tls_memcached")
def fixture_tls_memcached(memcached):
    def start(certificate, *more):
        return memcached("-Z", "-o", ",".join(["ssl_chain_cert=%s" % certificate.cert, "ssl_key=%s" % certificate.key,
                                               *more]))
    return start


def assert_serves(client, key: str = "k"):
    client.ask(storage("set", key, b"value"), b"STORED\r\n")
    client.ask(b"get %s none\r\n" % key.encode(), value_reply(key, b"value") + b"END\r\n")
    client.expect_in_step()


def reload_and_wait(proxy, config=None):
    before = proxy.log().count("configuration applied")
    proxy.reload(config)
    wait_for(lambda: proxy.log().count("configuration applied") > before, 5, "the log tells of the reload")


# ---- clients


def test_clients_are_served_over_tls(authority, memcached, kvferry):
    port = free_port()
    proxy = kvferry(listener(authority.issue("front"), pool("main", [memcached("-I", "8m").port]), port),
                    ports=[port])
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = client_context(authority, maximum_version=version, minimum_version=version)
        with TlsWire(port, context) as client:
            assert_serves(client)
            client.ask(storage("set", "big", BIG), b"STORED\r\n")
            client.ask(b"get big\r\n", value_reply("big", BIG) + b"END\r\n")
            # Many at once, of which the last says goodbye.
            client.send(b"get k\r\n" * 3000 + b"quit\r\n")
            client.expect_closed((value_reply("k", b"value") + b"END\r\n") * 3000)
    assert "TLS with" not in proxy.log()


def test_a_client_that_half_closes_gets_its_answers(authority, memcached, kvferry):
    """As `openssl s_client` with a pipe does: TLS 1.3 can end one direction alone."""
    port = free_port()
    kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port), ports=[port])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    peer = client_context(authority).wrap_bio(incoming, outgoing, server_hostname="localhost")
    with Wire(port) as raw:
        def pump(step):
            while True:
                try:
                    done = step()
                    raw.send(outgoing.read())
                    return done
                except ssl.SSLWantReadError:
                    raw.send(outgoing.read())
                    piece = raw.socket.recv(1 << 16)
                    if piece == b"":
                        incoming.write_eof()
                    incoming.write(piece)
        pump(peer.do_handshake)
        pump(lambda: peer.write(b"mn\r\nget absent\r\n"))
        with pytest.raises(ssl.SSLWantReadError):
            peer.unwrap()  # Sends close_notify, and waits for the other's.
        raw.send(outgoing.read())
        answers = b""
        while len(answers) < 9:
            answers += pump(lambda: peer.read(100))
        assert answers == b"MN\r\nEND\r\n"


def test_clients_in_clear_and_garbage_are_refused(authority, memcached, kvferry):
    port = free_port()
    proxy = kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port), ports=[port])
    for bytes_sent in (b"get k\r\n", b"GET / HTTP/1.0\r\n\r\n", b"\x80" * 3000, b"\x16\x03\x01\x02\x00\x01" + b"\0" * 600):
        with Wire(port) as plain:
            plain.send(bytes_sent)
            assert b"VALUE" not in plain.receive_all() and b"END" not in plain.unread
    with TlsWire(port, client_context(authority)) as client:
        assert_serves(client)
    log = proxy.wait_log(r"TLS with a client failed .*").group(0)
    assert "kind=not_tls" in log and 'at="listener 127.0.0.1:%d"' % port in log and "peer=127.0.0.1:" in log
    # Three of the four are of one kind, which is logged once.
    assert proxy.log().count("kind=not_tls") == 1


def test_a_client_that_stops_in_its_handshake_is_closed(authority, memcached, kvferry):
    """The others are served meanwhile. This takes the ten seconds that the limit is."""
    port = free_port()
    proxy = kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port), ports=[port])
    with Wire(port, seconds=15) as silent, Wire(port, seconds=15) as slow:
        slow.send(b"\x16\x03\x01\x02\x00")
        with TlsWire(port, client_context(authority)) as client:
            assert_serves(client)
        before = time.monotonic()
        assert silent.receive_all() == b""
        assert slow.receive_all() in (b"",) or True
        assert 5 < time.monotonic() - before < 14
    proxy.wait_log(r"kind=timeout")


def test_certificates_of_clients(authority, memcached, kvferry, tmp_path):
    port = free_port()
    proxy = kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port, ca=authority.cert,
                             verify="required"), ports=[port])
    with TlsWire(port, client_context(authority, authority.issue("client", "app one"))) as client:
        assert_serves(client)
    strangers = Authority(tmp_path / "strangers", "stranger")
    for certificate in (None, strangers.issue("client"), authority.issue("old", days=-1)):
        context = client_context(authority, certificate)
        with pytest.raises(ssl.SSLError, match="alert"):
            # With TLS 1.3 the client learns of it when it reads.
            with TlsWire(port, context) as client:
                client.receive_line()
    assert 'reason="peer did not return a certificate"' in proxy.wait_log(r"TLS with a client failed .*").group(0)


def test_versions(authority, memcached, kvferry):
    port = free_port()
    kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port, min_version="1.3"), ports=[port])
    with TlsWire(port, client_context(authority)) as client:
        assert client.socket.version() == "TLSv1.3"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        TlsWire(port, client_context(authority, maximum_version=ssl.TLSVersion.TLSv1_2))


def test_sessions_are_resumed(authority, memcached, kvferry):
    port = free_port()
    kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port), ports=[port])
    context = client_context(authority, maximum_version=ssl.TLSVersion.TLSv1_2)
    session, reused = None, []
    for _ in range(3):
        raw = socket.create_connection(("127.0.0.1", port))
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as client:
            client.sendall(b"mn\r\n")
            assert client.recv(10) == b"MN\r\n"
            session = client.session
            reused.append(client.session_reused)
    assert reused == [False, True, True]


def test_too_many_clients(authority, memcached, kvferry):
    """A client that is refused is worth no handshake; those who are in are served, and places become free again."""
    port = free_port()
    text = listener(authority.issue("front"), pool("main", [memcached().port]), port)
    kvferry(text.replace("      tls:", "      max_clients: 2\n      tls:"), ports=[port])
    context = client_context(authority)
    with TlsWire(port, context) as one:
        with TlsWire(port, context) as two:
            with pytest.raises((ssl.SSLError, ConnectionError, OSError)):
                TlsWire(port, context)
            assert_serves(one)
            assert_serves(two)
        wait_for(lambda: can_connect(port, context), 5, "the place of the second is free")


def can_connect(port, context) -> bool:
    try:
        with TlsWire(port, context) as client:
            client.ask(b"mn\r\n", b"MN\r\n")
            return True
    except (ssl.SSLError, OSError):
        return False


def test_a_client_that_does_not_read_holds_up_nobody(authority, memcached, kvferry):
    port = free_port()
    kvferry("kvferry:\n  workers: 1\n"
            + listener(authority.issue("front"), pool("main", [memcached().port], stall_timeout="1s"), port), ports=[port])
    context = client_context(authority)
    with TlsWire(port, context) as client:
        client.ask(storage("set", "big", BIG[:1000000]), b"STORED\r\n")
        with TlsWire(port, context, receive_buffer=4096) as slow:
            slow.send(b"get big\r\n" * 30)
            time.sleep(0.5)
            for _ in range(20):
                assert_serves(client)
            client.ask(b"get big\r\n", value_reply("big", BIG[:1000000]) + b"END\r\n")


def test_drain_ends_clients_with_a_notice(authority, memcached, kvferry):
    port = free_port()
    proxy = kvferry(listener(authority.issue("front"), pool("main", [memcached().port]), port), ports=[port])
    with TlsWire(port, client_context(authority)) as client, Wire(port):
        assert_serves(client)
        threading.Thread(target=proxy.stop).start()
        # Python raises when the end comes without a close_notify.
        assert client.receive_all() == b""


# ---- servers


def test_servers_are_spoken_to_over_tls(authority, tls_memcached, kvferry):
    servers = [tls_memcached(authority.issue("back%d" % index)) for index in range(2)]
    proxy = kvferry(secure_pool([each.port for each in servers], authority))
    with Wire(proxy.port()) as client:
        # Keys that differ in their last bytes only hash alike, and might all belong to one server.
        keys = ["%d-key-%d" % (index * index * 7919, index * 104729) for index in range(50)]
        for key in keys:
            assert_serves(client, key)
        client.ask(storage("set", "big", BIG[:900000]), b"STORED\r\n")
        client.ask(b"get big\r\n", value_reply("big", BIG[:900000]) + b"END\r\n")
        client.send(b"".join(b"get %s\r\n" % key.encode() for key in keys * 60))
        client.expect(b"".join(value_reply(key, b"value") + b"END\r\n" for key in keys * 60))
    for server in servers:
        with TlsWire(server.port, client_context(authority)) as direct:
            assert int(stat(direct, "cmd_set")) > 0
    assert "TLS with" not in proxy.log()


def stat(client, name: str) -> str:
    client.send(b"stats\r\n")
    figures = dict(line.decode().split(" ", 2)[1:] for line in iter(client.receive_line, b"END\r\n"))
    return figures[name].strip()


def test_tls_on_both_sides(authority, tls_memcached, kvferry):
    certificate = authority.issue("both")
    port = free_port()
    kvferry(listener(certificate, secure_pool([tls_memcached(certificate).port], authority), port), ports=[port])
    with TlsWire(port, client_context(authority)) as client:
        assert_serves(client)
        client.ask(storage("set", "big", BIG[:900000]), b"STORED\r\n")
        client.ask(b"get big\r\n", value_reply("big", BIG[:900000]) + b"END\r\n")


@pytest.mark.parametrize("fault", ["name", "expired", "stranger", "clear"])
def test_a_server_that_cannot_be_trusted(authority, tls_memcached, memcached, kvferry, tmp_path, fault):
    if fault == "name":
        server = tls_memcached(authority.issue("wrong", "other", "DNS:other.example"))
    elif fault == "expired":
        server = tls_memcached(authority.issue("old", days=-1))
    elif fault == "stranger":
        server = tls_memcached(Authority(tmp_path / "strangers", "stranger").issue("back"))
    else:
        server = memcached()
    reasons = {"name": "IP address mismatch", "expired": "certificate has expired",
               "stranger": "unable to get local issuer certificate", "clear": "wrong version number"}
    proxy = kvferry(secure_pool([server.port], authority))
    with Wire(proxy.port()) as client:
        line = client.ask_line(b"get k\r\n")
        assert line == b"SERVER_ERROR kvferry: could not connect to backend: TLS failed (pool main, backend %s)\r\n" \
            % server.address.encode(), line
    log = proxy.wait_log(r"TLS with a backend failed .*").group(0)
    assert reasons[fault] in log and 'at="pool main"' in log and "peer=%s" % server.address in log


def test_servers_need_not_be_verified(authority, tls_memcached, kvferry, tmp_path):
    server = tls_memcached(authority.issue("wrong", "other", "DNS:other.example", days=30))
    stranger = tls_memcached(Authority(tmp_path / "strangers", "stranger").issue("back"))
    for port, verify, sni in ((server.port, "ca", ""), (server.port, "full", ", sni: other.example"),
                              (stranger.port, "none", "")):
        proxy = kvferry(pool("main", [port], tls="{ca: %s, verify: %s%s}" % (authority.cert, verify, sni)))
        with Wire(proxy.port()) as client:
            assert_serves(client)
        proxy.stop()


def test_servers_ask_for_our_certificate(authority, tls_memcached, kvferry):
    server = tls_memcached(authority.issue("back"), "ssl_verify_mode=2", "ssl_ca_cert=%s" % authority.cert)
    own = authority.issue("proxy", "proxy")
    with_ours = kvferry(pool("main", [server.port], tls="{ca: %s, cert: %s, key: %s}" % (authority.cert, own.cert, own.key)))
    with Wire(with_ours.port()) as client:
        assert_serves(client)
    with_ours.stop()
    without = kvferry(secure_pool([server.port], authority))
    with Wire(without.port()) as client:
        assert client.ask_line(b"get k\r\n").startswith(b"SERVER_ERROR kvferry: ")
    without.wait_log(r"TLS with a backend failed .*kind=alert")


def test_a_server_that_comes_back(authority, tls_memcached, kvferry):
    server = tls_memcached(authority.issue("back"))
    proxy = kvferry(secure_pool([server.port], authority, on_down="rehash", server_retry_timeout="200ms",
                                server_failure_limit=1))
    with Wire(proxy.port()) as client:
        assert_serves(client)
        server.kill()
        wait_for(lambda: client.ask_line(b"mg k v\r\n").startswith(b"SERVER_ERROR"), 5, "the server is missed")
        server.start()
        # Found well again by a probe, which speaks TLS too.
        wait_for(lambda: client.ask_line(b"mg absent v\r\n") == b"EN\r\n", 10, "the server is back")
        assert_serves(client)


def test_a_silent_server_costs_the_time_of_a_connect(authority, cleanup, kvferry):
    silent = socket.create_server(("127.0.0.1", 0))
    cleanup.add(silent.close)
    port = silent.getsockname()[1]
    proxy = kvferry(secure_pool([port], authority, connect_timeout="300ms", timeout="5s"))
    with Wire(proxy.port()) as client:
        before = time.monotonic()
        line = client.ask_line(b"get k\r\n")
        assert line.startswith(b"SERVER_ERROR kvferry: could not connect to backend within 300 ms"), line
        assert 0.2 < time.monotonic() - before < 3


def test_native_routes(authority, tls_memcached, kvferry):
    certificate, port = authority.issue("front"), free_port()
    text = "kvferry:\n  routes:\n    - {listen: [{address: 127.0.0.1:%d, tls: {cert: %s, key: %s}}], default: back}\n" \
        "back: {protocol: memcache, servers: [127.0.0.1:%d], tls: {ca: %s}}\n" % (
            port, certificate.cert, certificate.key, tls_memcached(authority.issue("back")).port, authority.cert)
    kvferry(text, ports=[port])
    with TlsWire(port, client_context(authority)) as client:
        assert_serves(client)


# ---- reloads


class Clients(threading.Thread):
    """Clients that come, ask, and go, until they are told to stop."""

    def __init__(self, port: int, context: ssl.SSLContext):
        super().__init__()
        self.port, self.context = port, context
        self.is_stopping, self.done, self.failures, self.serials = False, 0, [], set()
        self.start()

    def run(self):
        while not self.is_stopping:
            try:
                with TlsWire(self.port, self.context) as client:
                    self.serials.add(client.socket.getpeercert()["serialNumber"])
                    for _ in range(20):
                        assert_serves(client)
                        self.done += 1
            except Exception as failure:  # pylint: disable=broad-except
                self.failures.append(repr(failure))

    def finish(self):
        self.is_stopping = True
        self.join(30)
        assert self.done > 0 and not self.failures, self.failures[:3]
        return self.serials


def test_new_certificates_are_for_new_connections(authority, tls_memcached, kvferry):
    certificate, port = authority.issue("renewed"), free_port()
    config = listener(certificate, secure_pool([tls_memcached(authority.issue("back")).port], authority), port)
    proxy = kvferry(config, ports=[port])
    running = [Clients(port, client_context(authority)) for _ in range(3)]
    with TlsWire(port, client_context(authority)) as old:
        assert_serves(old)
        serials = {old.socket.getpeercert()["serialNumber"]}
        for _ in range(4):
            time.sleep(0.2)
            authority.issue("renewed")
            reload_and_wait(proxy)
            with TlsWire(port, client_context(authority)) as new:
                assert_serves(new)
                serials.add(new.socket.getpeercert()["serialNumber"])
        assert_serves(old)  # The connection of before lives on.
    assert len(serials) == 5
    seen = set().union(*(each.finish() for each in running))
    assert seen <= serials and len(seen) > 1


def test_a_broken_certificate_keeps_what_runs(authority, memcached, kvferry):
    certificate, port = authority.issue("broken"), free_port()
    proxy = kvferry(listener(certificate, pool("main", [memcached().port]), port), ports=[port])
    good = certificate.cert.read_bytes(), certificate.key.read_bytes()
    other = authority.issue("other")
    breakages = ((b"no certificate\n", good[1], "cannot use the certificate"),
                 (other.cert.read_bytes(), good[1], "does not belong to the certificate"),
                 (None, good[1], "No such file or directory"))
    for cert, key, reason in breakages:
        certificate.cert.unlink(missing_ok=True)
        if cert is not None:
            certificate.cert.write_bytes(cert)
        certificate.key.write_bytes(key)
        before = proxy.log().count("reload failed")
        proxy.reload()
        wait_for(lambda: proxy.log().count("reload failed") > before, 5, "the reload is refused")
        assert reason in proxy.log()
        with TlsWire(port, client_context(authority)) as client:
            assert_serves(client)
    certificate.cert.write_bytes(good[0])
    reload_and_wait(proxy)
    with TlsWire(port, client_context(authority)) as client:
        assert_serves(client)


def test_tls_comes_and_goes_with_a_reload(authority, tls_memcached, memcached, kvferry):
    port, certificate = free_port(), authority.issue("front")
    clear, secure = memcached().port, tls_memcached(authority.issue("back")).port
    proxy = kvferry(pool("main", [clear], port=port), ports=[port])
    with Wire(port) as before:
        assert_serves(before)
        reload_and_wait(proxy, listener(certificate, secure_pool([secure], authority), port))
        assert_serves(before)
        with TlsWire(port, client_context(authority)) as client:
            assert_serves(client)
        reload_and_wait(proxy, pool("main", [clear], port=port))
        assert_serves(before)


def test_a_file_that_is_missing_is_named_with_its_line(authority, memcached, tmp_path):
    certificate = authority.issue("named")
    file = tmp_path / "kvferry.yml"
    file.write_text(listener(certificate, pool("main", [memcached().port]), 0, key=tmp_path / "gone.key"))
    done = kvferry_support.run("check", file)
    assert done.returncode != 0
    assert "kvferry.yml:5:" in done.stdout + done.stderr
    assert "cannot read '%s': No such file or directory" % (tmp_path / "gone.key") in done.stdout + done.stderr
    file.write_text(listener(authority.issue("expired", days=-1), pool("main", [memcached().port]), 0))
    done = kvferry_support.run("check", file)
    assert done.returncode == 0
    assert "warning" in done.stdout + done.stderr and "has expired on" in done.stdout + done.stderr


def test_metrics(authority, tls_memcached, kvferry):
    port, admin = free_port(), free_port()
    config = listener(authority.issue("front"), secure_pool([tls_memcached(authority.issue("back")).port], authority), port)
    kvferry("kvferry:\n  workers: 1\n  admin: { listen: 127.0.0.1:%d }\n" % admin + config, ports=[port, admin])
    with TlsWire(port, client_context(authority)) as client:
        assert_serves(client)
    with Wire(port) as plain:
        plain.send(b"get k\r\n")
        plain.receive_all()
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % admin, timeout=5) as answer:
        text = answer.read().decode()
    assert 'kvferry_tls_handshakes_total{peer="client"} 1\n' in text
    assert 'kvferry_tls_handshakes_total{peer="backend"} 1\n' in text
    assert 'kvferry_tls_failures_total{peer="client",kind="not_tls"} 1\n' in text
    expires = int(re.search(r'kvferry_tls_certificate_expires_seconds\{at="listener 127.0.0.1:%d"\} (\d+)' % port, text)[1])
    assert 29 * 86400 < expires - time.time() < 31 * 86400


def test_the_example(authority, tls_memcached, kvferry, tmp_path):
    """examples/tls.yml as it is, but for places and the names of its servers."""
    certificate, port = authority.issue("proxy"), free_port()
    servers = [tls_memcached(authority.issue("cache%d" % number)).address for number in (1, 2)]
    text = (kvferry_support.ROOT / "examples" / "tls.yml").read_text()
    for old, new in (("certs/proxy", str(certificate.cert)[:-4]), ("certs/ca.crt", str(authority.cert)),
                     ("127.0.0.1:22125", "127.0.0.1:%d" % port), ("/tmp/kvferry-tls.sock", str(tmp_path / "clear.sock")),
                     ("cache1.example:11211", servers[0]), ("cache2.example:11211", servers[1])):
        assert old in text
        text = text.replace(old, new)
    kvferry(text, ports=[port])
    with TlsWire(port, client_context(authority, authority.issue("client"))) as client:
        for number in range(20):
            assert_serves(client, "key-%d" % number)
    with socket.socket(socket.AF_UNIX) as clear:
        clear.settimeout(5)
        clear.connect(str(tmp_path / "clear.sock"))
        clear.sendall(b"get key-3\r\n")
        assert clear.recv(100) == value_reply("key-3", b"value") + b"END\r\n"
