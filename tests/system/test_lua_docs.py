"""The Lua blocks of docs/lua.md, each loaded by the program and asked what its comments say.

A block is a whole configuration, or begins with a comment that says where it stands:

  -- pools:      it is the body of mcp_config_pools; every command goes to the pool that it returns
  -- routes:     it is the body of mcp_config_routes(pools); pools.a and pools.b have one memcached each
  -- function:   it is the body of a generator function f(rctx); a, b and cache are handles of both pools and the local cache
  -- library:    it is a file for the route library

Comments at the left edge say what happens then, in this order from top to bottom:

  -- start: OPTIONS        options of the command line, and of the test: proxy_arg=TEXT, workers=N
  -- fails: TEXT           the configuration is refused, and standard error has this text
  -- watch: STREAMS        a client watches log streams
  -- send: BYTES           to kvferry, with \\r and \\n
  -- answer: BYTES         exactly what comes back; {n} stands for any number
  -- ask a: BYTES          to the memcached behind pool a, or b
  -- line: TEXT            the watching client gets a line with this text
  -- stat: WHAT NAME VALUE a row of `stats WHAT`
"""

import re
from pathlib import Path

import pytest

from support.memcached import Memcached
from support.process import wait_for

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "lua.md"
BLOCK = re.compile(r"^```lua\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STEP = re.compile(r"^-- (start|fails|watch|send|answer|ask a|ask b|line|stat): (.*)$", re.MULTILINE)
# Ports of the two memcached in the document.
PORTS = {"a": "11311", "b": "11312"}

TWO_POOLS = """
function mcp_config_pools()
    local function one(label, port)
        return mcp.pool({ mcp.backend(label, "127.0.0.1", port) })
    end
    return { a = one("a", 11311), b = one("b", 11312) }
end
"""
FORWARD = """
function mcp_config_routes(pool)
    local fgen = mcp.funcgen_new()
    local handle = fgen:new_handle(pool)
    fgen:ready({ n = "all", f = function(rctx)
        return function(req) return rctx:enqueue_and_wait(req, handle) end
    end })
    mcp.attach(mcp.CMD_ANY_STORAGE, fgen)
end
"""
ONE_FUNCTION = """
function mcp_config_routes(pools)
    local fgen = mcp.funcgen_new()
    local a, b, cache = fgen:new_handle(pools.a), fgen:new_handle(pools.b), fgen:new_handle(mcp.internal_handler)
    fgen:ready({ n = "example", u = 4, f = function(rctx)
%s
    end })
    mcp.attach(mcp.CMD_ANY_STORAGE, fgen)
end
"""


def blocks():
    """Pairs of a name that leads to the block, and its text."""
    text = DOCUMENT.read_text()
    for found in BLOCK.finditer(text):
        headings = re.findall(r"^#+ (.*)$", text[:found.start()], re.MULTILINE)
        line = text.count("\n", 0, found.start()) + 1
        yield pytest.param(found[1], id="%d-%s" % (line, re.sub(r"\W+", "-", headings[-1]).strip("-")))


def configuration(block: str) -> str:
    """The block with its surroundings."""
    kind = block.splitlines()[0].partition(":")[0]
    if kind == "-- pools":
        return "function mcp_config_pools()\n%s\nend\n%s" % (block, FORWARD)
    if kind == "-- routes":
        return "%s\nfunction mcp_config_routes(pools)\n%s\nend\n" % (TWO_POOLS, block)
    if kind == "-- function":
        return TWO_POOLS + ONE_FUNCTION % block
    if kind == "-- library":
        return block
    assert "function mcp_config_pools()" in block and "function mcp_config_routes(" in block, "neither whole nor marked:\n" + block
    return block


def unescape(text: str) -> bytes:
    return text.encode().replace(b"\\r", b"\r").replace(b"\\n", b"\n")


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("servers")
    running = {name: Memcached(folder) for name in PORTS}
    yield running
    for server in running.values():
        server.stop()


def start(scripted, script, options):
    """Starts kvferry with the options of a block's `start`."""
    words, own = [], {"library": script.startswith("-- library:")}
    for word in options.split():
        name, is_own, value = word.partition("=")
        if is_own and name in ("proxy_arg", "workers"):
            own[name] = value
        else:
            words.append(word)
    return scripted(script, *words, **own)


class Steps:
    """Runs the steps of one block, top to bottom."""

    def __init__(self, server, servers, wire):
        self._server, self._servers, self._wire = server, servers, wire
        self._client = self._last = wire(server.port())
        self._watcher = None

    def run(self, step, text):
        if step == "watch":
            self._watcher = self._wire(self._server.port())
            self._watcher.ask(b"watch " + text.encode() + b"\r\n", b"OK\r\n")
        elif step == "send":
            self._last = self._client
            self._last.send(unescape(text))
        elif step.startswith("ask"):
            self._last = self._wire(self._servers[step.split()[1]].port)
            self._last.send(unescape(text))
        elif step == "answer":
            self._last.expect(unescape(text))
        elif step == "line":
            wait_for(lambda: text.encode() in self._watcher.receive_line(), 5, "a line with %s" % text)
        else:
            what, name, value = text.split(" ", 2)
            wait_for(lambda: self._server.stats("" if what == "-" else what).get(name) == value, 5, "stat " + text)

    def end(self):
        self._client.expect_in_step()


@pytest.mark.parametrize("block", blocks())
def test_block(block, servers, scripted, wire):
    script = configuration(block)
    for name, port in PORTS.items():
        wire(servers[name].port).ask(b"flush_all\r\n", b"OK\r\n")
        script = script.replace(port, str(servers[name].port))
    steps = STEP.findall(block)
    options = " ".join(text for step, text in steps if step == "start")
    refusals = [text for step, text in steps if step == "fails"]
    if refusals:
        with pytest.raises(AssertionError, match=re.escape(refusals[0])):
            start(scripted, script, options)
        return
    run = Steps(start(scripted, script, options), servers, wire)
    for step, text in steps:
        if step != "start":
            run.run(step, text)
    run.end()


def test_most_blocks_are_asked_something():
    texts = [each.values[0] for each in blocks()]
    asked = [text for text in texts if STEP.search(text)]
    assert len(texts) > 40 and len(asked) > len(texts) * 3 // 4


def names_of_section(title):
    """What stands in backquotes in the tables of the section."""
    section = DOCUMENT.read_text().split("\n## " + title)[1].split("\n## ")[0]
    return re.findall(r"`([a-z_]+)`", section)


def test_every_function_has_an_example():
    text = "\n".join(each.values[0] for each in blocks())
    names = ["mcp." + name for name in names_of_section("21.") if name not in ("mcp", "await", "funcgenbare_new")]
    assert len(names) > 45
    methods = re.findall(r"`(?:req|res|rctx|fgen):([a-z_]+)", DOCUMENT.read_text())
    assert len(set(methods)) > 35
    missing = [name for name in names if not re.search(re.escape(name) + r"\b", text)]
    missing += [name for name in sorted(set(methods)) if ":" + name not in text]
    assert missing == []


def test_the_table_of_names_is_what_the_states_have(scripted, wire):
    """Section 21 lists all functions of both states, and no others."""
    list_names = """
        local names = {}
        for name, value in pairs(mcp) do
            if not name:match("^%u") then names[#names + 1] = name end
        end
        table.sort(names)
    """
    script = """
        function mcp_config_pools()
            %s
            return table.concat(names, " ")
        end
        function mcp_config_routes(config)
            %s
            mcp.attach(mcp.CMD_MG, function() return "SERVER_ERROR " .. config .. "\\r\\n" end)
            mcp.attach(mcp.CMD_MD, function() return "SERVER_ERROR " .. table.concat(names, " ") .. "\\r\\n" end)
        end
    """ % (list_names, list_names)
    client = wire(scripted(script).port())
    config = set(client.ask_line(b"mg k\r\n").decode().split()[1:])
    worker = set(client.ask_line(b"md k\r\n").decode().split()[1:])
    section = DOCUMENT.read_text().split("\n## 21.")[1].split("\n## ")[0]
    rows = {row: set(re.findall(r"`([a-z_]+)`", line)) for row in ("configuration", "workers", "both")
            for line in section.splitlines() if line.startswith("| %s |" % row)}
    assert config == rows["configuration"] | rows["both"]
    assert worker == rows["workers"] | rows["both"]
