"""Resident memory: of idle clients, after a burst, and while a value of 100 MB passes."""

import resource
import socket
import subprocess
import time

from comparison.servers import Field, load_generator

DESCRIPTORS_MAX = 15000
GOAL_KB = 32 * 1024  # What a proxy should be back under after a burst.
PIECE = b"0123456789abcdef" * 65536


def raise_descriptor_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(DESCRIPTORS_MAX, hard), hard))


def connect(port) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), 10)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def receive_until(client, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        piece = client.recv(1 << 16)
        if not piece:
            raise RuntimeError("the proxy closed the connection after %r" % data[-100:])
        data += piece
    return data


def idle_cost(proxy, count) -> dict:
    """Clients come, ask for one value, and stay."""
    before = proxy.rss_kb()
    clients = []
    try:
        for number in range(count):
            clients.append(connect(proxy.port))
            clients[-1].sendall(b"get idle-%d\r\n" % (number % 100))
            receive_until(clients[-1], b"END\r\n")
        time.sleep(2)
        after = proxy.rss_kb()
    finally:
        for client in clients:
            client.close()
    time.sleep(2)
    return {"before_kb": before, "idle_kb": after, "gone_kb": proxy.rss_kb(), "per_client_kib": (after - before) / count}


def compare_idle(options):
    raise_descriptor_limit()
    with Field(options) as field:
        field.start_backends()
        field.start_proxies()
        with connect(field.proxies[0].port) as client:
            for number in range(100):
                client.sendall(b"set idle-%d 0 0 100\r\n" % number + b"x" * 100 + b"\r\n")
                receive_until(client, b"STORED\r\n")
        print("| system | RSS before, KiB | with %d idle clients | after they left | KiB per client |" % options.clients)
        print("|---|--:|--:|--:|--:|")
        for proxy in field.proxies:
            found = idle_cost(proxy, options.clients)
            print("| %s | %d | %d | %d | %.2f |" % (proxy.name, found["before_kb"], found["idle_kb"], found["gone_kb"],
                                                   found["per_client_kib"]), flush=True)
    return 0


def run_load(generator, port, *words):
    subprocess.run([str(generator), "--port", str(port), *map(str, words)], check=True, stdout=subprocess.DEVNULL)


def burst_recovery(proxy, generator, options) -> dict:
    common = ["--keys", 500, "--value-bytes", 100_000, "--stall", 30, "--warmup", 0, "--connections", options.clients]
    before = proxy.rss_kb()
    proxy.reset_peak_rss()
    for operation in ("mget", "set", "get"):
        run_load(generator, proxy.port, "--op", operation, "--seconds", options.seconds, *common)
    peak = proxy.peak_rss_kb()
    began = time.monotonic()
    back = None
    while time.monotonic() - began < options.wait:
        if back is None and proxy.rss_kb() < GOAL_KB:
            back = time.monotonic() - began
            break
        time.sleep(0.2)
    return {"before_kb": before, "peak_kb": peak, "back_s": back, "after_kb": proxy.rss_kb()}


def compare_burst(options):
    raise_descriptor_limit()
    generator = load_generator(options.load)
    with Field(options) as field:
        field.start_backends(512)
        field.start_proxies()
        run_load(generator, field.proxies[0].port, "--op", "fill", "--keys", 500, "--value-bytes", 100_000, "--connections", 2)
        print("Ten-key gets, sets and gets of 100 KB values by %d clients, %.0f s each; then at most %d s of rest."
              % (options.clients, options.seconds, options.wait))
        print("| system | RSS before, KiB | peak | after | under 32 MB after |")
        print("|---|--:|--:|--:|--:|")
        for proxy in field.proxies:
            found = burst_recovery(proxy, generator, options)
            back = "never" if found["back_s"] is None else "%.1f s" % found["back_s"]
            print("| %s | %d | %d | %d | %s |" % (proxy.name, found["before_kb"], found["peak_kb"], found["after_kb"], back), flush=True)
    return 0


def send_big(client, key: bytes, megabytes: int):
    client.sendall(b"set %s 0 0 %d\r\n" % (key, megabytes << 20))
    for _ in range(megabytes):
        client.sendall(PIECE)
    client.sendall(b"\r\n")
    return receive_until(client, b"\r\n")


def receive_big(client, key: bytes, megabytes: int) -> int:
    """Bytes of the reply; the value is counted, not kept."""
    client.sendall(b"get %s\r\n" % key)
    total, tail = 0, b""
    while not tail.endswith(b"\r\nEND\r\n") or total < megabytes << 20:
        piece = client.recv(1 << 18)
        if not piece:
            break
        total += len(piece)
        tail = (tail + piece)[-16:]
        if tail.endswith(b"END\r\n") and total < 100:
            break
    return total


def compare_big(options):
    with Field(options) as field:
        field.start_backends(1024, "-I", "%dm" % (options.megabytes + 10))
        field.start_proxies()
        print("| system | RSS before, KiB | peak growth while a set of %d MB passes | while a get passes | set | get |" % options.megabytes)
        print("|---|--:|--:|--:|---|---|")
        for proxy in field.proxies:
            with connect(proxy.port) as client:
                client.settimeout(60)
                client.sendall(b"get nothing\r\n")
                receive_until(client, b"END\r\n")
                before = proxy.rss_kb()
                proxy.reset_peak_rss()
                stored = send_big(client, b"big", options.megabytes).strip().decode(errors="replace")
                set_growth = proxy.peak_rss_kb() - before
                middle = proxy.rss_kb()
                proxy.reset_peak_rss()
                size = receive_big(client, b"big", options.megabytes)
                get_growth = proxy.peak_rss_kb() - middle
            print("| %s | %d | %d | %d | %s | %d bytes |" % (proxy.name, before, set_growth, get_growth, stored, size), flush=True)
    return 0
