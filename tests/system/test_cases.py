"""The conformance cases of tests/cases, run against `kvferry memcached` by their own runner.

A case that does not pass yet is named in KNOWN_OPEN with the reason. One that begins to pass fails the test until it is taken off
the list, so the list says how things stand.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.kvferry import WITHOUT_URING, program

CASES = Path(__file__).resolve().parents[1] / "cases"
RUNNER = CASES / "run_cases.py"
RUN_SECONDS = 1200
# How much longer a step may take than with the recorded program: sanitizers and busy machines.
SLOW = "6" if os.environ.get("KVFERRY_BUILD") in ("asan", "tsan") else "2"

KNOWN_OPEN = {
    "memcache/flash/accepts-and-serves.case":
        "reads the figures of a flash file, which there is none of yet; all of its requests are answered",
}

FOLDERS = sorted(str(folder.relative_to(CASES)) for part in ("memcache", "lua", "better")
                 for folder in (CASES / part).iterdir() if folder.is_dir())


def run(folder: str, io: str, *options: str, environment=None):
    """The results of a folder: {path of the case: passed}, and what the runner said."""
    prefix = "%s %s " % (sys.executable, WITHOUT_URING) if io == "epoll" else ""
    result = subprocess.run(
        [sys.executable, RUNNER, "--server", "%s%s memcached {args}" % (prefix, program()), "-j", "2", *options, folder],
        cwd=CASES, env={**os.environ, **(environment or {}), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=RUN_SECONDS, check=False)
    passed = {}
    for line in result.stdout.splitlines():
        word, _, path = line.partition(" ")
        if word in ("ok", "FAIL"):
            passed[path.strip()] = word == "ok"
    return passed, result.stdout


def assert_as_known(passed: dict, said: str):
    assert passed, said
    for path in sorted(set(passed) & set(KNOWN_OPEN)):
        print("open: %s: %s" % (path, KNOWN_OPEN[path]))
    failed = [path for path, is_good in passed.items() if not is_good and path not in KNOWN_OPEN]
    assert not failed, said
    closed = [path for path, is_good in passed.items() if is_good and path in KNOWN_OPEN]
    assert not closed, "these pass now: take them off KNOWN_OPEN: %s" % closed


@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_conversations(io, folder):
    # Slots of functions are given up, and limits reached, as quickly as in the recorded debug build.
    hooks = {} if folder.startswith("memcache") else {"KVFERRY_TEST_HOOKS": "1"}
    assert_as_known(*run(folder, io, "--slow", SLOW, environment=hooks))


def test_expiry_by_the_test_clock(io):
    assert_as_known(*run("memcache/expiry", io, "--clock", "debugtime {seconds}", environment={"KVFERRY_TEST_HOOKS": "1"}))


def test_every_case_that_is_known_to_be_open_exists():
    assert [path for path in KNOWN_OPEN if not (CASES / path).is_file()] == []
