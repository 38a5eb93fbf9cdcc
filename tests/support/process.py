"""A server program under test: started, frozen, measured and ended by its process id alone."""

import os
import re
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

START_SECONDS = 15.0
# Sanitizers cost time, and memory that is not the program's.
IS_SANITIZED = os.environ.get("KVFERRY_BUILD", "release") in ("asan", "tsan")
STOP_SECONDS = 20.0


def wait_for(condition, seconds: float, what: str):
    """Calls `condition` until it gives something true, which is returned."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError("waited %.1f s in vain: %s" % (seconds, what))
        time.sleep(0.01)


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
        return True
    except OSError:
        return False


class Process:
    """One run of a program. Its output goes to `log`."""

    def __init__(self, argv, log: Path, env=None, descriptors=None, cwd=None, cpu=None):
        self.argv = [str(word) for word in argv]
        self.log = Path(log)

        def prepare():
            if descriptors is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})

        with open(self.log, "ab") as output:
            self.child = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=env, cwd=cwd, preexec_fn=prepare)

    @property
    def pid(self) -> int:
        return self.child.pid

    def is_alive(self) -> bool:
        return self.child.poll() is None

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def freeze(self):
        """Returns when none of its threads runs any more: the signal alone may come after the next request."""
        self.child.send_signal(signal.SIGSTOP)
        wait_for(self._is_stopped, 5, "process %d has stopped" % self.child.pid)

    def _is_stopped(self) -> bool:
        stats = Path("/proc/%d/task" % self.child.pid).glob("*/stat")
        return all(stat.read_text().rpartition(")")[2].split()[0] in "Tt" for stat in stats)

    def thaw(self):
        self.child.send_signal(signal.SIGCONT)

    def kill(self):
        """Ends it at once, frozen or not."""
        if self.is_alive():
            self.child.kill()
        self.child.wait(STOP_SECONDS)

    def terminate(self, seconds: float = STOP_SECONDS) -> int:
        """SIGTERM, then the exit status. A program that does not end in time is killed and fails the test."""
        if self.is_alive():
            self.child.send_signal(signal.SIGTERM)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("%s did not end within %.0f s after SIGTERM\n%s"
                                 % (self.argv[0], seconds, self.output()[-3000:])) from None

    def wait_listening(self, port: int):
        def ready():
            assert self.is_alive(), "%s ended at once:\n%s" % (self.argv[0], self.output()[-3000:])
            return is_listening(port)
        wait_for(ready, START_SECONDS, "%s listens on port %d" % (self.argv[0], port))

    def _status_kb(self, name: str) -> int:
        text = Path("/proc/%d/status" % self.pid).read_text()
        return int(re.search(name + r":\s+(\d+)", text).group(1))

    def rss_kb(self) -> int:
        return self._status_kb("VmRSS")

    def peak_rss_kb(self) -> int:
        return self._status_kb("VmHWM")

    def reset_peak_rss(self):
        """From here on peak_rss_kb() tells the peak since this call."""
        Path("/proc/%d/clear_refs" % self.pid).write_text("5")

    def descriptor_count(self) -> int:
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def cpu_seconds(self) -> float:
        """From the scheduler's counters, in nanoseconds: the ticks of /proc/PID/stat are too coarse."""
        total = 0
        for task in Path("/proc/%d/task" % self.pid).iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[0])
            except OSError:
                pass  # A thread that has just ended.
        return total / 1e9
