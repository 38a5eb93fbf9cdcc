"""The Lua blocks of docs/routelib.md, each a whole file for the route library, and what their comments say.

The comments are those of test_lua_docs.py. A block may hold two files, each begun by `-- file: NAME`; the last is the user's.
"""

import re
from pathlib import Path

import pytest
import test_lua_docs as lua_docs

from support.memcached import Memcached

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "routelib.md"
FILE = re.compile(r"^-- file: .*\n", re.MULTILINE)


def blocks():
    text = DOCUMENT.read_text()
    for found in lua_docs.BLOCK.finditer(text):
        yield pytest.param(found[1], id="line-%d" % (text.count("\n", 0, found.start()) + 1))


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers")
    running = {name: Memcached(folder) for name in lua_docs.PORTS}
    yield running
    for server in running.values():
        server.stop()


@pytest.mark.parametrize("block", blocks())
def test_block(block, servers, scripted, wire):
    for name, port in lua_docs.PORTS.items():
        wire(servers[name].port).ask(b"flush_all\r\n", b"OK\r\n")
        block = block.replace(port, str(servers[name].port))
    files = [text for text in FILE.split(block) if text]
    steps = lua_docs.STEP.findall(block)
    assert steps, "nothing is asked"
    if steps[0][0] == "fails":
        with pytest.raises(AssertionError, match=re.escape(steps[0][1])):
            scripted(files, library=True)
        return
    run = lua_docs.Steps(scripted(files, library=True), servers, wire)
    for step, text in steps:
        run.run(step, text)
    run.end()


def test_there_are_blocks():
    assert len(list(blocks())) > 10
