"""The client libraries and tools of test_clients.py, unchanged, through a Lua route in place of a plain pool."""

import contextlib

import pytest

from support.kvferry import ScriptedKvferry
from support.memcached import Memcached
# The tests themselves; in this module they take the port from the fixture below.
from test_clients import (test_libmemcached_tools, test_memcslap_runs_to_its_end, test_node_clients,  # noqa: F401
                          test_php_memcached, test_pylibmc, test_pymemcache, test_python_memcached)

# What people write first: a plain pool; and what most come to: routes by command, through a router and a sub-function.
ROUTES = {
    "pool": """
        local all = mcp.funcgen_new()
        local to = all:new_handle(pool)
        all:ready({ n = "all", f = function(rctx)
            return function(req) return rctx:enqueue_and_wait(req, to) end
        end })
        mcp.attach(mcp.CMD_ANY_STORAGE, all)
    """,
    "router": """
        local inner = mcp.funcgen_new()
        local to = inner:new_handle(pool)
        inner:ready({ n = "inner", f = function(rctx)
            return function(req)
                rctx:enqueue(req, to)
                rctx:wait_cond(1, mcp.WAIT_GOOD)
                return rctx:res_any(to)
            end
        end })
        local reads = mcp.funcgen_new()
        local nested = reads:new_handle(inner)
        reads:ready({ n = "reads", f = function(rctx)
            return function(req) return rctx:enqueue_and_wait(req, nested) end
        end })
        mcp.attach(mcp.CMD_ANY_STORAGE, mcp.router_new({ cmap = { [mcp.CMD_GET] = reads, [mcp.CMD_MG] = reads }, default = inner }))
    """,
}

SCRIPT = """
function mcp_config_pools()
    return mcp.pool({ %s })
end

function mcp_config_routes(pool)
%s
end
"""


def script(route: str, servers) -> str:
    backends = ", ".join('mcp.backend("b%d", "127.0.0.1", %d)' % (server.port, server.port) for server in servers)
    return SCRIPT % (backends, ROUTES[route])


@pytest.fixture(scope="module", params=sorted(ROUTES))
def port(request, io, tmp_path_factory):
    """The port of a script over two servers."""
    folder = tmp_path_factory.mktemp("lua-clients-%s-%s" % (request.param, io))
    with contextlib.ExitStack() as ends:
        servers = []
        for _ in range(2):
            servers.append(Memcached(folder))
            ends.callback(servers[-1].stop)
        server = ScriptedKvferry(folder, script(request.param, servers), io, workers=2)
        ends.callback(server.stop)
        yield server.port()
        # The requests were the scripts', not the local cache's.
        assert sum(int(count) for name, count in server.stats("proxy").items() if name.startswith("cmd_")) > 0
