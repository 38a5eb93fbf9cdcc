"""The admin server of the running program: metrics that Prometheus accepts, state, health, reload."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import pytest

from support.kvferry import pool
from support.ports import free_port
from support.process import wait_for

ADMIN = "kvferry:\n  admin: { listen: 127.0.0.1:0%s }\n"
ADMIN_LISTENING = re.compile(r"admin: listening address=127\.0\.0\.1:(\d+)")


def admin_url(server, starts=1) -> str:
    """Where the admin server listens that was started as number `starts`."""
    ports = wait_for(lambda: ADMIN_LISTENING.findall(server.log())[starts - 1:], 5.0, "the log has the admin address")
    return "http://127.0.0.1:%s" % ports[0]


def port_of(server, name) -> int:
    """The admin server says earlier than the pools where it listens."""
    server.wait_log("front: listening .*pool=%s" % name)
    return server.port(name)


def ask(url, token=None, method="GET"):
    """Status and text of the answer."""
    request = urllib.request.Request(url, method=method)
    if token:
        request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.read().decode()


def sample(metrics: str, name: str) -> float:
    """Sum of the samples whose text begins with `name`."""
    values = [float(line.rsplit(" ", 1)[1]) for line in metrics.splitlines() if line.startswith(name)]
    assert values, "no sample of %s in\n%s" % (name, metrics)
    return sum(values)


@pytest.fixture
def proxied(kvferry, memcached, wire):
    """A pool that has served one set and two gets: the program, its admin address, a client."""
    server = kvferry(pool("alpha", [memcached().port]) + ADMIN % "")
    client = wire(port_of(server, "alpha"))
    for request, reply in ((b"set a 0 0 1\r\nx\r\n", b"STORED\r\n"),
                           (b"get a\r\n", b"VALUE a 0 1\r\nx\r\nEND\r\n"), (b"get b\r\n", b"END\r\n")):
        client.ask(request, reply)
    return server, admin_url(server), client


def test_metrics_count_what_clients_did(proxied, io):
    _, url, _ = proxied
    status, metrics = ask(url + "/metrics")
    assert status == 200
    assert sample(metrics, 'kvferry_requests_total{listener="alpha",command="get"}') == 2
    assert sample(metrics, 'kvferry_requests_total{listener="alpha",command="set"}') == 1
    assert sample(metrics, 'kvferry_request_duration_seconds_count{listener="alpha",command="get"}') == 2
    assert sample(metrics, 'kvferry_connections{listener="alpha"}') == 1
    assert sample(metrics, 'kvferry_backend_requests_total{pool="alpha"') == 3
    assert sample(metrics, 'kvferry_backend_request_duration_seconds_count{pool="alpha"') == 3
    assert sample(metrics, "kvferry_resident_memory_bytes") > 1 << 20
    assert 'io="%s"' % {"uring": "io_uring"}.get(io, io) in metrics


def test_prometheus_accepts_the_metrics(proxied):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool (package prometheus)")
    _, url, _ = proxied
    checked = subprocess.run([promtool, "check", "metrics"], input=ask(url + "/metrics")[1], text=True,
                             capture_output=True, timeout=20, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_state_is_json(proxied):
    _, url, _ = proxied
    state = json.loads(ask(url + "/stats.json")[1])
    assert state["process"]["config_version"] == 1
    assert [backend["state"] for backend in state["backends"]] == ["up"]
    assert state["listeners"][0]["commands"]["get"]["requests"] == 2


def test_dead_backend_is_seen(kvferry, wire):
    port = free_port()
    server = kvferry(pool("alpha", [port]) + ADMIN % "")
    client = wire(port_of(server, "alpha"))
    url = admin_url(server)
    asked = 0

    def is_down():
        """Only real attempts to connect count, so it takes a few back-offs."""
        nonlocal asked
        asked += 1
        assert client.ask_line(b"get a\r\n").startswith(b"SERVER_ERROR")
        name = 'kvferry_backend_state{pool="alpha",backend="127.0.0.1:%d",state="up"}' % port
        return sample(ask(url + "/metrics")[1], name) == 0

    wait_for(is_down, 10.0, "the backend is shown as down")
    assert sample(ask(url + "/metrics")[1], 'kvferry_backend_errors_total{pool="alpha"') == asked


def test_reload_over_http(kvferry, memcached):
    port = memcached().port
    good = pool("alpha", [port]) + ADMIN % ""
    server = kvferry(good)
    url = admin_url(server)
    server.write(good.replace("alpha:", "alpha:\n  no_such_key: 1"))
    status, text = ask(url + "/reload", method="POST")
    assert status == 409 and "no_such_key" in text
    assert sample(ask(url + "/metrics")[1], "kvferry_last_reload_failed") == 1
    server.write(good.replace("alpha:", "beta:"))
    assert ask(url + "/reload", method="POST")[0] == 200
    metrics = ask(url + "/metrics")[1]
    assert sample(metrics, "kvferry_last_reload_failed") == 0
    assert sample(metrics, "kvferry_config_version") == 2


def test_reload_over_http_may_change_the_admin_section(kvferry, memcached):
    """The answer comes from a server that the reload has replaced."""
    text = pool("alpha", [memcached().port])
    server = kvferry(text + ADMIN % "")
    url = admin_url(server)
    server.write(text + ADMIN % ", token: s3cret")
    assert ask(url + "/reload", method="POST")[0] == 200
    fresh = admin_url(server, starts=2)
    assert ask(fresh + "/metrics")[0] == 401
    assert ask(fresh + "/metrics", token="s3cret")[0] == 200
    assert ask(fresh + "/healthz") == (200, "ok\n")
    assert "s3cret" not in server.log()
