"""`kvferry memcached` with TLS: -Z and -o ssl_* in front, mcp.init_tls towards memcached -Z."""

import re
import ssl
import subprocess

import pytest

from support import kvferry as kvferry_support
from support.certificates import Authority
from support.process import wait_for
from support.wire import TlsWire, Wire, storage, value_reply

ROUTES = """
function mcp_config_routes(pool)
    local fgen = mcp.funcgen_new()
    local handle = fgen:new_handle(pool)
    fgen:ready({ n = "all", f = function(rctx)
        return function(req) return rctx:enqueue_and_wait(req, handle) end
    end })
    mcp.attach(mcp.CMD_ANY_STORAGE, fgen)
end
"""


def script(port: int, init: str = "mcp.init_tls()", fields: str = "tls = true", options: str = "") -> str:
    """Every command goes to a backend on `port`."""
    return """
function mcp_config_pools()
    %s
    local one = mcp.backend({ label = "b1", host = "127.0.0.1", port = %d, %s })
    return mcp.pool({ one }%s)
end
%s""" % (init, port, fields, options, ROUTES)


@pytest.fixture(name="authority", scope="module")
def fixture_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(name="tls_memcached")
def fixture_tls_memcached(memcached):
    def start(certificate, *more):
        return memcached("-Z", "-o", ",".join(["ssl_chain_cert=%s" % certificate.cert, "ssl_key=%s" % certificate.key,
                                               *more]))
    return start


def client_context(authority, certificate=None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.cert))
    if certificate is not None:
        context.load_cert_chain(certificate.cert, certificate.key)
    return context


def assert_serves(client, key: str = "k"):
    client.ask(storage("set", key, b"value"), b"STORED\r\n")
    client.ask(b"get %s none\r\n" % key.encode(), value_reply(key, b"value") + b"END\r\n")


# ---- towards backends


@pytest.mark.parametrize("form", ["field", "tunable", "iothread"])
def test_backends_are_spoken_to_over_tls(authority, tls_memcached, scripted, form):
    port = tls_memcached(authority.issue("back")).port
    text = {"field": script(port),
            "tunable": script(port, "mcp.backend_use_tls(true) mcp.init_tls() mcp.init_tls()", "connections = 2"),
            "iothread": script(port, options=", { iothread = true }")}[form]
    server = scripted(text, workers=2)
    big = bytes(range(256)) * 3500
    for _ in range(4):
        with Wire(server.port()) as client:
            assert_serves(client)
            client.ask(storage("set", "big", big), b"STORED\r\n")
            client.ask(b"get big\r\n", value_reply("big", big) + b"END\r\n")
            client.send(b"get k\r\n" * 2000)
            client.expect((value_reply("k", b"value") + b"END\r\n") * 2000)
    assert "TLS with" not in server.log()
    # A reload that changes nothing keeps the connections.
    with TlsWire(port, client_context(authority)) as direct:
        before = stats(direct)["total_connections"]
        assert server.reload_and_wait()
        with Wire(server.port()) as client:
            assert_serves(client)
        assert stats(direct)["total_connections"] == before


def stats(client, words: bytes = b"stats") -> dict:
    client.send(words + b"\r\n")
    return dict(line.decode().rstrip().split(" ", 2)[1:] for line in iter(client.receive_line, b"END\r\n"))


def test_backends_are_verified_when_that_is_asked_for(authority, tls_memcached, scripted, tmp_path):
    good = tls_memcached(authority.issue("back")).port
    other = tls_memcached(authority.issue("wrong", "other", "DNS:other.example")).port
    asking = tls_memcached(authority.issue("asking"), "ssl_verify_mode=2", "ssl_ca_cert=%s" % authority.cert).port
    own = authority.issue("proxy", "proxy")
    table = "mcp.init_tls({ ca = %r%s })"
    for port, more in ((good, ""), (other, ", sni = 'other.example'"), (other, ", verify = 'ca'"),
                       (asking, ", cert = %r, key = %r" % (str(own.cert), str(own.key)))):
        server = scripted(script(port, table % (str(authority.cert), more)))
        with Wire(server.port()) as client:
            assert_serves(client)
        server.stop()
    stranger = Authority(tmp_path / "stranger", "stranger")
    for port, ca, reason in ((other, authority.cert, "IP address mismatch"),
                             (good, stranger.cert, "unable to get local issuer certificate")):
        server = scripted(script(port, table % (str(ca), "")))
        with Wire(server.port()) as client:
            client.ask(b"get k\r\n", b"SERVER_ERROR backend failure\r\n")
        log = server.wait_log(r"TLS with a backend failed .*").group(0)
        assert reason in log and 'at="backends of scripts"' in log
        server.stop()


def test_a_backend_in_clear_is_badvalidate(memcached, scripted):
    backend = memcached()
    server = scripted(script(backend.port, "", "failurelimit = 0"))
    with Wire(server.port()) as watcher, Wire(server.port()) as client:
        assert_serves(client)
        watcher.ask(b"watch proxyevents\r\n", b"OK\r\n")
        server.reload(script(backend.port, fields="tls = true, failurelimit = 0"))
        wait_for(lambda: b"error=badvalidate" in watcher.receive_line(), 10, "the failure is told of")
        client.ask(b"get k\r\n", b"SERVER_ERROR backend failure\r\n")


def test_a_backend_that_comes_back(authority, tls_memcached, scripted):
    backend = tls_memcached(authority.issue("back"))
    server = scripted(script(backend.port, fields="tls = true, retrywaittime = 1"))
    with Wire(server.port()) as client:
        assert_serves(client)
        backend.kill()
        wait_for(lambda: client.ask_line(b"mg absent v\r\n").startswith(b"SERVER_ERROR"), 5, "it is missed")
        backend.start()
        wait_for(lambda: client.ask_line(b"mg absent v\r\n") == b"EN\r\n", 10, "it is back")


@pytest.mark.parametrize("init, fields, error", [
    ("", "tls = true", "TLS requested but not initialized: call mcp.init_tls()"),
    ("mcp.backend_use_tls(true)", "connections = 1", "TLS requested but not initialized: call mcp.init_tls()"),
    ("mcp.init_tls({ ca = '/no/such/file' })", "tls = true", "cannot run mcp.init_tls: cannot read '/no/such/file'"),
    ("mcp.init_tls({ authority = 'x' })", "tls = true", "init_tls takes a table of texts: ca, cert, key, sni, verify"),
    ("mcp.init_tls({ ca = 5 })", "tls = true", "init_tls takes a table of texts"),
    ("mcp.init_tls({ verify = 'maybe' })", "tls = true", "init_tls verify must be none, ca or full"),
    ("mcp.init_tls({ key = '/x' })", "tls = true", "a key is of use with its certificate only"),
    ("mcp.init_tls(true)", "tls = true", "table expected"),
])
def test_errors_of_a_load(tmp_path, init, fields, error):
    file = tmp_path / "routes.lua"
    file.write_text(script(11211, init, fields))
    done = kvferry_support.run("memcached", "-l", "127.0.0.1:0", "-o", "proxy_config=%s" % file)
    assert done.returncode != 0 and error in done.stderr, done.stderr


def test_a_reload_brings_tls_and_takes_it_away(authority, tls_memcached, memcached, scripted):
    secure, clear = tls_memcached(authority.issue("back")).port, memcached().port
    server = scripted(script(clear, "", "failurelimit = 0"))
    with Wire(server.port()) as client:
        assert_serves(client)
        assert server.reload_and_wait(script(secure))
        assert_serves(client)
        assert not server.reload_and_wait(script(secure, "mcp.init_tls({ ca = '/no/such/file' })"))
        assert_serves(client)
        assert server.reload_and_wait(script(clear, "", "failurelimit = 0"))
        assert_serves(client)


# ---- in front


class Secure(kvferry_support.ScriptedKvferry):
    """`kvferry memcached -Z`, without scripts."""

    def __init__(self, folder, certificate, io, *options, listen=("127.0.0.1:0",), args=()):
        # pylint: disable=super-init-not-called
        self._expected = len(listen)
        values = ["io=%s" % io, "ssl_chain_cert=%s" % certificate.cert, "ssl_key=%s" % certificate.key, *options]
        argv = [kvferry_support.program(), "memcached", "-Z", "-t", 2, "-o", ",".join(values), *args]
        for each in listen:
            argv += ["-l", each]
        self.process = kvferry_support.Process(argv, folder / "kvferry.log")
        try:
            wait_for(self._has_started, 15, "kvferry logs its listeners")
        except BaseException:
            self.process.kill()
            raise


@pytest.fixture(name="secure")
def fixture_secure(tmp_path, cleanup, io):
    def start(certificate, *options, **more):
        server = Secure(tmp_path, certificate, io, *options, **more)
        cleanup.add(server.stop)
        return server
    return start


def test_the_store_over_tls(authority, secure):
    certificate = authority.issue("front")
    server = secure(certificate, listen=("127.0.0.1:0", "notls:127.0.0.1:0"))
    ports = [port for _, port in server.listeners()]
    with TlsWire(ports[0], client_context(authority)) as client, Wire(ports[1]) as clear:
        assert_serves(client)
        assert_serves(clear)
        big = bytes(range(256)) * 3000
        client.ask(storage("set", "big", big), b"STORED\r\n")
        client.ask(b"get big\r\n", value_reply("big", big) + b"END\r\n")
        figures = stats(client)
        assert figures["ssl_handshake_errors"] == "0" and int(figures["time_since_server_cert_refresh"]) < 60
        with Wire(ports[0]) as plain:
            plain.send(b"get k\r\n")
            plain.receive_all()
        assert stats(client)["ssl_handshake_errors"] == "1"


def test_settings_are_those_of_memcached(authority, secure, tls_memcached):
    certificate = authority.issue("front")
    more = ("ssl_ca_cert=%s" % authority.cert, "ssl_verify_mode=1", "ssl_keyformat=1", "ssl_min_version=3",
            "ssl_wbuf_size=32", "ssl_session_cache", "ssl_ciphers=ECDHE+AESGCM")
    server, peer = secure(certificate, *more), tls_memcached(certificate, *more)
    rows = []
    for port in (server.port(), peer.port):
        with TlsWire(port, client_context(authority)) as client:
            figures = stats(client, b"stats settings")
            rows.append({name: value for name, value in figures.items() if name.startswith("ssl_")})
    assert rows[0] == rows[1] and len(rows[0]) == 11


@pytest.mark.parametrize("options, error", [
    ((), "-Z needs a certificate: -o ssl_chain_cert=FILE,ssl_key=FILE"),
    (("-o", "ssl_chain_cert=/no/such/file"), "cannot read '/no/such/file': No such file or directory"),
    (("-o", "ssl_chain_cert={cert}"), "cannot use the private key in"),
    (("-o", "ssl_chain_cert={cert},ssl_key={key},ssl_ciphers=nope"), "OpenSSL knows no cipher of the list 'nope'"),
    (("-o", "ssl_chain_cert={cert},ssl_key={key},ssl_min_version=4"), "-o ssl_min_version must be 0 (tlsv1.0)"),
])
def test_what_cannot_be_used_is_said_at_the_start(authority, options, error):
    certificate = authority.issue("front")
    words = [word.format(cert=certificate.cert, key=certificate.key) for word in options]
    done = kvferry_support.run("memcached", "-Z", "-l", "127.0.0.1:0", *words)
    assert done.returncode != 0 and error in done.stderr, done.stderr


def test_certificates_are_refreshed(authority, secure):
    certificate = authority.issue("fresh")
    server = secure(certificate)
    context = client_context(authority)

    def serial() -> str:
        with TlsWire(server.port(), context) as client:
            return client.socket.getpeercert()["serialNumber"]

    first = serial()
    with TlsWire(server.port(), context) as client:
        authority.issue("fresh")
        client.ask(b"refresh_certs\r\n", b"OK\r\n")
        wait_for(lambda: serial() != first, 5, "new connections get the new certificate")
        second = serial()
        certificate.cert.write_text("broken\n")
        answer = client.ask_line(b"refresh_certs\r\n")
        assert answer.startswith(b"Error cannot use the certificate in "), answer
        assert serial() == second
        assert_serves(client)
    assert kvferry_support.run("memcached", "-h").stdout.count("ssl_") > 5


def test_without_z_there_is_nothing_to_refresh(scripted, memcached):
    with Wire(scripted(script(memcached().port, "", "connections = 1")).port()) as client:
        client.ask(b"refresh_certs\r\n", b"Error TLS not enabled\r\n")


def test_the_name_of_a_client(authority, scripted):
    certificate = authority.issue("front")
    text = """
function mcp_config_pools() return {} end
function mcp_config_routes()
    local fgen = mcp.funcgen_new()
    fgen:ready({ n = "who", f = function(rctx)
        return function(req) return "SERVER_ERROR " .. tostring(rctx:tls_peer_cn()) .. "\\r\\n" end
    end })
    mcp.attach(mcp.CMD_ANY_STORAGE, fgen)
end
"""
    server = scripted(text, "-Z", "-o", "ssl_chain_cert=%s,ssl_key=%s,ssl_ca_cert=%s,ssl_verify_mode=1"
                      % (certificate.cert, certificate.key, authority.cert))
    for own, name in ((None, b"nil"), (authority.issue("client", "app one"), b"app one"), (None, b"nil")):
        with TlsWire(server.port(), client_context(authority, own)) as client:
            client.ask(b"get k\r\n", b"SERVER_ERROR " + name + b"\r\n")


def test_openssl_is_a_client(authority, secure):
    """The tool that people try it with."""
    server = secure(authority.issue("front"))
    done = subprocess.run(["openssl", "s_client", "-quiet", "-verify_return_error", "-CAfile", str(authority.cert),
                           "-connect", "127.0.0.1:%d" % server.port()], input="version\r\nquit\r\n", capture_output=True,
                          text=True, timeout=20, check=False)
    assert re.match(r"VERSION \S+\n", done.stdout), done.stdout + done.stderr
