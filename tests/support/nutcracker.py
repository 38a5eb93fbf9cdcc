"""A real nutcracker, whose pools ours are compared with."""

import shutil
from pathlib import Path

import pytest

from support.ports import free_port
from support.process import Process


class Nutcracker:
    """A nutcracker with one pool over memcached servers on the given ports."""

    def __init__(self, folder: Path, servers):
        if shutil.which("nutcracker") is None:
            pytest.fail("nutcracker is not installed")
        folder = Path(folder)
        self.port = free_port()
        file = folder / ("nutcracker-%d.yml" % self.port)
        file.write_text("\n".join(
            ["main:", "  listen: 127.0.0.1:%d" % self.port, "  hash: fnv1a_64", "  distribution: ketama", "  timeout: 5000",
             "  servers:"] + ["   - 127.0.0.1:%d:1" % server for server in servers]) + "\n")
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
