"""Every file in examples/ is accepted by the program; test_lua_examples.py says what those in Lua do."""

import subprocess
from pathlib import Path

import pytest

from support import kvferry as kvferry_support
from support.certificates import Authority

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.rglob("*.yml"))
SCRIPTS = sorted(EXAMPLES.rglob("*.lua"))
START_ARGUMENTS = {"migrate_by_time.lua": "switch_1:done_2"}


def test_there_are_examples():
    assert FILES and SCRIPTS


@pytest.fixture(name="certificates", scope="module")
def fixture_certificates(tmp_path_factory):
    """A directory with the files that examples name."""
    folder = tmp_path_factory.mktemp("examples")
    Authority(folder / "certs").issue("proxy")
    return folder


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_program_accepts(file, certificates):
    done = subprocess.run([kvferry_support.program(), "check", file], capture_output=True, text=True, timeout=60,
                          cwd=certificates)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_the_program_accepts_the_script(scripted, file):
    # Nothing listens on the ports that it names: a backend that is down does not keep a configuration from starting.
    server = scripted(file.read_text(), proxy_arg=START_ARGUMENTS.get(file.name, ""))
    assert any(name.startswith("funcs_") for name in server.stats("proxyfuncs"))
