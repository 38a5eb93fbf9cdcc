"""`-o proxy_memprofile`: what the states of Lua allocate, on standard error."""

import re

from support.process import wait_for
from support.wire import Wire

SCRIPT = """
function mcp_config_pools() return nil end
function mcp_config_routes()
  local fg = mcp.funcgen_new()
  fg:ready({ n = "make", f = function()
    return function(req) return "HD O" .. ("x"):rep(100 + #req:key()) .. "\\r\\n" end
  end })
  mcp.attach(mcp.CMD_MG, fg)
end
"""


def lines_of(server, state: str):
    return re.findall(r"^MEMPROF\[%s\]:(.*)$" % state, server.log(), re.MULTILINE)


def test_states_report_what_they_allocate(scripted):
    server = scripted(SCRIPT, "-o", "proxy_memprofile")
    wait_for(lambda: lines_of(server, "config") and lines_of(server, "worker 0"), 5, "both states have reported their load")
    with Wire(server.port()) as client:
        for number in range(200):
            client.send(b"mg key-%d\r\n" % number)
            assert client.receive_line().startswith(b"HD Ox")

    def strings_made():
        return sum(int(count) for line in lines_of(server, "worker 0") for count in re.findall(r" string\[(\d+)\]", line))

    wait_for(lambda: strings_made() >= 200, 5, "each request has made a text")


def test_without_the_option_nothing_is_printed(scripted):
    server = scripted(SCRIPT)
    with Wire(server.port()) as client:
        client.send(b"mg k\r\n")
        client.receive_line()
    assert "MEMPROF" not in server.log()
