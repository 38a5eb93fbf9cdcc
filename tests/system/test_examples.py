"""Every file in examples/ is accepted by the program."""

import subprocess
from pathlib import Path

import pytest

from support import kvferry as kvferry_support

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted(EXAMPLES.rglob("*.yml"))


def test_there_are_examples():
    assert FILES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_program_accepts(file):
    done = subprocess.run([kvferry_support.program(), "check", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
