"""Free TCP ports for programs that cannot be asked for port 0."""

import itertools
import os
import socket

# Below the ephemeral range of Linux, so that no client socket takes a port between our look and its use.
FIRST_PORT = 15000
PORT_COUNT = 15000

_counter = itertools.count(1)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on. Two calls never return the same one."""
    for _ in range(PORT_COUNT):
        port = FIRST_PORT + (os.getpid() * 137 + next(_counter)) % PORT_COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port between %d and %d" % (FIRST_PORT, FIRST_PORT + PORT_COUNT))
