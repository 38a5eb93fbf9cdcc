"""A real nutcracker, whose pools ours are compared with."""

import shutil
from pathlib import Path

import pytest

from support.ports import free_port
from support.process import Process


class Nutcracker:
    """A nutcracker with one pool over servers on the given ports, or over the `entries` of its list of servers.

    `keys` are those of its configuration, beside the usual ones.
    """

    def __init__(self, folder: Path, servers, entries=None, **keys):
        if shutil.which("nutcracker") is None:
            pytest.fail("nutcracker is not installed")
        folder = Path(folder)
        self.port = free_port()
        file = folder / ("nutcracker-%d.yml" % self.port)
        options = {"hash": "fnv1a_64", "distribution": "ketama", "timeout": 5000, **keys}
        lines = ["main:", "  listen: 127.0.0.1:%d" % self.port]
        lines += ["  %s: %s" % (key, str(value).lower() if isinstance(value, bool) else value) for key, value in options.items()]
        lines += ["  servers:"] + ["   - %s" % entry for entry in entries or ["127.0.0.1:%d:1" % server for server in servers]]
        file.write_text("\n".join(lines) + "\n")
        self.process = Process(
            ["nutcracker", "-c", file, "-a", "127.0.0.1", "-s", free_port(), "-p", file.with_suffix(".pid")],
            file.with_suffix(".log"))
        try:
            self.process.wait_listening(self.port)
        except BaseException:
            self.process.kill()
            raise

    def stop(self):
        self.process.kill()
