"""Placement equals that of a running nutcracker, for 10,000 keys over each of a dozen server lists."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from placement_vs_nutcracker import KEY_COUNT, Comparison, make_pools


@pytest.fixture(scope="module")
def comparison():
    # KVFERRY_SEED repeats a failed run; paths of Unix sockets must be short.
    seed = int(os.environ.get("KVFERRY_SEED") or int.from_bytes(os.urandom(4), "little"))
    folder = tempfile.mkdtemp(prefix="kvf")
    running = Comparison(Path(folder), seed)
    yield running
    running.stop()
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", [pool.name for pool in make_pools()])
def test_places_keys_as_nutcracker(comparison, name):
    found, reached = comparison.differences(name)
    assert not found, "KVFERRY_SEED=%d, %d of %d keys differ: %r" % (
        comparison.seed, len(found), KEY_COUNT, found[:10])
    # Against a comparison that sees one server only and so proves nothing.
    assert reached > 1
