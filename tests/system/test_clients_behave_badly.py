"""Clients that do not read, go half away, vanish, or come in crowds; and a process that runs out of descriptors."""

import socket
import time

import pytest

from support.fake_backend import serve_gets
from support.kvferry import one_worker, pool
from support.load import assert_clean, run_load
from support.process import wait_for
from support.wire import Wire, storage, value_reply

SLOW_REQUESTS = 500
SLOW_VALUE_BYTES = 100_000


@pytest.fixture
def proxy(memcached, kvferry):
    servers = [memcached("-m", 256), memcached("-m", 256)]
    return kvferry(pool("main", [each.port for each in servers]))


def test_a_client_that_never_reads_does_not_hold_up_others(memcached, kvferry):
    """It asks for 50 MB in total. Others on the same worker are served, and the program does not gather the 50 MB."""
    server = memcached("-m", 256)
    proxy = kvferry(one_worker(pool("main", [server.port])))
    value = b"s" * SLOW_VALUE_BYTES
    keys = ["slow-%d" % number for number in range(8)]
    replies = [value_reply(key, value) + b"END\r\n" for key in keys]
    with Wire(proxy.port(), receive_buffer=4096) as slow, Wire(proxy.port(), seconds=20) as quick:
        for key in keys:
            quick.ask(storage("set", key, value), b"STORED\r\n")
        before = proxy.process.rss_kb()
        slow.send(b"".join(b"get %s\r\n" % keys[number % len(keys)].encode() for number in range(SLOW_REQUESTS)))
        slowest = 0.0
        end = time.monotonic() + 3
        while time.monotonic() < end:
            started = time.monotonic()
            for key, reply in zip(keys, replies):
                quick.ask(("get %s\r\n" % key).encode(), reply)
            slowest = max(slowest, time.monotonic() - started)
        assert proxy.process.rss_kb() - before < 24 * 1024
        assert slowest < 1.0, "another client waited %.2f s" % slowest
        # It may have been closed by now; what it was sent is right as far as it goes.
        data = slow.receive_all()
        assert (b"".join(replies) * (len(data) // len(b"".join(replies)) + 1)).startswith(data)


def test_one_that_reads_slowly_gets_everything(proxy):
    value = b"w" * 50_000
    with Wire(proxy.port(), receive_buffer=8192) as client:
        client.ask(storage("set", "w", value), b"STORED\r\n")
        client.send(b"get w\r\n" * 40)
        for _ in range(40):
            time.sleep(0.01)
            client.expect(value_reply("w", value) + b"END\r\n")
        client.expect_in_step()


def test_replies_come_after_the_client_has_closed_its_side(proxy):
    """printf ... | nc: the end of input is seen before the replies are."""
    with Wire(proxy.port()) as client:
        client.send(storage("set", "half", b"x") + b"get half\r\nmn\r\n")
        client.half_close()
        client.expect_closed(b"STORED\r\n" + value_reply("half", b"x") + b"END\r\nMN\r\n")


def test_half_closed_in_the_middle_of_a_request(proxy):
    with Wire(proxy.port()) as client:
        client.send(b"mn\r\nset half 0 0 10\r\nabc")
        client.half_close()
        client.expect_closed(b"MN\r\n")


def test_clients_that_vanish_with_requests_in_flight(proxy):
    """Their answers are dropped; others and the backends' streams stay in step."""
    with Wire(proxy.port()) as witness:
        witness.ask(storage("set", "v", b"x" * 5000), b"STORED\r\n")
        for number in range(200):
            victim = Wire(proxy.port())
            victim.send(b"get v\r\n" * 50 + b"set v2 0 0 100\r\nhalf of i")
            if number % 2:
                victim.reset()
            else:
                victim.close()
            if number % 20 == 0:
                witness.ask(b"get v\r\n", value_reply("v", b"x" * 5000) + b"END\r\n")
        witness.expect_in_step()
    assert_clean(run_load(proxy.port(), op="mix", seconds=0.5, warmup=0, verify=True, depth=8))


def test_a_storm_of_connections(proxy):
    """Thousands that come and go while one is served."""
    before = proxy.process.descriptor_count()
    with Wire(proxy.port()) as witness:
        for _ in range(20):
            crowd = [socket.create_connection(("127.0.0.1", proxy.port()), 5) for _ in range(200)]
            witness.expect_in_step()
            for each in crowd[::2]:
                each.sendall(b"mn\r\n")
            for each in crowd:
                each.close()
        witness.expect_in_step()
        wait_for(lambda: proxy.process.descriptor_count() <= before + 10, 5, "descriptors of closed clients are freed")


def test_running_out_of_descriptors_is_survived(memcached, kvferry):
    """New clients wait or are refused; those inside are served; when there is room again, all is well."""
    servers = [memcached(), memcached()]
    proxy = kvferry(pool("main", [each.port for each in servers], preconnect=True), descriptors=450)
    inside = Wire(proxy.port())
    inside.ask(storage("set", "fd", b"x"), b"STORED\r\n")
    crowd = []
    for _ in range(700):
        try:
            crowd.append(socket.create_connection(("127.0.0.1", proxy.port()), 1))
        except OSError:
            pass  # Refused, or no place left in the queue of the listener.
    before = proxy.process.cpu_seconds()
    for _ in range(50):
        inside.ask(b"get fd\r\n", value_reply("fd", b"x") + b"END\r\n")
        time.sleep(0.02)
    assert proxy.process.cpu_seconds() - before < 0.5, "spinning on accept"
    for each in crowd:
        each.close()
    inside.close()

    def serves():
        with Wire(proxy.port(), seconds=1) as fresh:
            fresh.send(b"get fd\r\n")
            return fresh.receive_line().startswith(b"VALUE fd")
    wait_for(lambda: _tries(serves), 5, "new clients are served again")


def _tries(action) -> bool:
    try:
        return action()
    except (OSError, AssertionError):
        return False


def test_a_pipeline_larger_than_any_buffer(proxy):
    """The client writes 100,000 requests and reads as slowly as it writes."""
    with Wire(proxy.port(), seconds=20) as client:
        client.ask(storage("set", "p", b"y" * 10), b"STORED\r\n")
        one = value_reply("p", b"y" * 10) + b"END\r\n"
        total = 100_000
        sent = 0
        client.socket.setblocking(False)
        request = memoryview(b"get p\r\n" * total)
        data = bytearray()
        end = time.monotonic() + 20
        while len(data) < total * len(one) and time.monotonic() < end:
            try:
                sent += client.socket.send(request[sent:sent + 65536])
            except BlockingIOError:
                pass
            try:
                data += client.socket.recv(1 << 20)
            except BlockingIOError:
                time.sleep(0.0005)
        assert len(data) == total * len(one)
        assert bytes(data) == one * total


def test_clients_that_stop_in_the_middle_of_a_value_give_their_connections_back(memcached, kvferry):
    """Eight of them hold every connection for large values that a worker has to a server; the ninth is served."""
    server = memcached("-m", 64)
    proxy = kvferry(one_worker(pool("main", [server.port], body_timeout="500ms")))
    value = b"v" * 200_000
    stopped = [Wire(proxy.port()) for _ in range(8)]
    for client in stopped:
        client.send(storage("set", "stopped", value)[:100_000])
    with Wire(proxy.port()) as quick:
        quick.ask(b"mn\r\n", b"MN\r\n")
        quick.ask(storage("set", "quick", value), b"STORED\r\n")
        quick.ask(b"get stopped\r\n", b"END\r\n")
    for client in stopped:
        assert client.receive_all() == b"SERVER_ERROR kvferry: the rest of the value did not come in time\r\n"
        client.close()


def test_requests_of_one_client_and_key_reach_the_backend_in_order(kvferry, fake_backend):
    backend = fake_backend(serve_gets)
    proxy = kvferry(pool("main", [backend.port]))
    with Wire(proxy.port()) as client:
        client.send(b"".join(storage("set", "ordered", b"%06d" % number) for number in range(2000)))
        client.expect(b"STORED\r\n" * 2000)
    values = [request.split(b"\r\n")[1] for connection in backend.connections for request in connection.seen
              if request.startswith(b"set ordered")]
    assert values == [b"%06d" % number for number in range(2000)]
