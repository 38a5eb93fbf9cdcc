"""Runs of the load generator, which compares every reply with what belongs to its key."""

import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["load_generator.cc", "load/options.cc", "load/report.cc", "load/traffic.cc"]


def binary() -> Path:
    """KVFERRY_LOAD, or one compiled here when the sources are newer than it."""
    given = os.environ.get("KVFERRY_LOAD")
    if given:
        return Path(given)
    bench = ROOT / "bench"
    built = ROOT / "build" / "tools" / "kvferry-load"
    inputs = [bench / name for name in SOURCES] + list((bench / "load").glob("*.h"))
    if not built.exists() or built.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
        built.parent.mkdir(parents=True, exist_ok=True)
        fresh = built.with_name("kvferry-load.%d" % os.getpid())
        subprocess.run(["g++", "-std=c++20", "-O2", "-iquote", str(bench), "-o", str(fresh)]
                       + [str(bench / name) for name in SOURCES], check=True)
        fresh.rename(built)
    return built


class Load:
    """Load on 127.0.0.1:port that runs beside the test until finish()."""

    def __init__(self, port: int, **options):
        argv = [str(binary()), "--port", str(port)]
        for name, value in options.items():
            argv.append("--" + name.replace("_", "-"))
            if value is not True:
                argv.append(str(value))
        self.child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, seconds: float = 60) -> dict:
        output, errors = self.child.communicate(timeout=seconds)
        assert self.child.returncode == 0, "load ended with %d: %s%s" % (self.child.returncode, errors, output[:1500])
        return json.loads(output.splitlines()[-1])

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(10)


def run_load(port: int, **options) -> dict:
    return Load(port, **options).finish()


def assert_clean(result: dict):
    """No error of any kind, and work was done."""
    for name in ("refused", "wrong", "closed", "connect_failures", "lost", "unanswered"):
        assert result[name] == 0, result
    assert result["ops"] > 0, result
