"""Real memcached servers."""

import os
import shutil
from pathlib import Path

import pytest

from support.ports import free_port
from support.process import Process, is_listening, wait_for


class Memcached:
    """A memcached on a port of its own, which it keeps over restarts."""

    def __init__(self, folder: Path, *args, port=None):
        if shutil.which("memcached") is None:
            pytest.fail("memcached is not installed")
        self.port = port or free_port()
        self._args = [str(arg) for arg in args]
        self._log = Path(folder) / ("memcached-%d.log" % self.port)
        self.process = None
        self.start()

    @property
    def address(self) -> str:
        return "127.0.0.1:%d" % self.port

    def start(self):
        argv = ["memcached", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-t", "1", "-c", "4096"]
        if os.geteuid() == 0:
            argv += ["-u", "root"]
        self.process = Process(argv + self._args, self._log)
        self.process.wait_listening(self.port)

    def freeze(self):
        self.process.freeze()

    def thaw(self):
        self.process.thaw()

    def kill(self):
        self.process.kill()
        wait_for(lambda: not is_listening(self.port), 5, "port %d is closed" % self.port)

    def restart(self):
        """Comes back empty on the same port."""
        self.process.kill()
        self.start()

    def stop(self):
        self.process.kill()
