"""A day of trouble in little time: scripts reload, backends flap, functions raise, clients leave; afterwards nothing is left over.

KVFERRY_SOAK_SECONDS says how long it lasts (docs/testing.md); the default is short enough for every run of the tests.
"""

import os
import random
import re
import socket
import threading
import time

import pytest

from support.kvferry import ScriptedKvferry
from support.memcached import Memcached
from support.process import wait_for

SECONDS = float(os.environ.get("KVFERRY_SOAK_SECONDS", "15"))
HAS_CHECKS = os.environ.get("KVFERRY_BUILD") in ("dev", "asan", "tsan")
CLIENTS = 12
BURST = 24
# What may come of a request that a flapping backend, a raised error or a load has met. Anything else is a fault.
REFUSALS = (b"SERVER_ERROR backend failure", b"SERVER_ERROR lua failure")

SCRIPT = """
-- generation %(generation)d
function mcp_config_pools()
  mcp.backend_retry_waittime(1)
  mcp.backend_connect_timeout(0.5)
  mcp.add_stat(1, "raised")
  local function one(label, port, readtimeout)
    return mcp.pool({ mcp.backend({ label = label, host = "127.0.0.1", port = port, failurelimit = 1, readtimeout = readtimeout }) })
  end
  -- The steady one must never be given up, however slow the machine or a sanitizer is.
  return { steady = one("steady", %(steady)d, 60), flapping = one("flapping", %(flapping)d, 1) }
end

function mcp_config_routes(pools)
  local inner = mcp.funcgen_new()
  local flapping = inner:new_handle(pools.flapping)
  inner:ready({ n = "inner", f = function(rctx)
    return function(req) return rctx:enqueue_and_wait(req, flapping) end
  end })
  local fg = mcp.funcgen_new()
  local steady, sub = fg:new_handle(pools.steady), fg:new_handle(inner)
  fg:ready({ n = "outer", f = function(rctx)
    local calls = 0
    return function(req)
      calls = calls + 1
      local key = req:key()
      if key:sub(1, 5) == "raise" then
        mcp.stat(1, 1)
        if calls %% 2 == 0 then rctx:sleep(0.001) end
        error("raised for " .. key)
      elseif key:sub(1, 4) == "both" then
        rctx:enqueue(req, { steady, sub })
        rctx:wait_cond(1, mcp.WAIT_GOOD)
        return (rctx:best_result({ steady, sub }))
      elseif key:sub(1, 4) == "flap" then
        return rctx:enqueue_and_wait(req, sub, 0.2) or "SERVER_ERROR backend failure\\r\\n"
      end
      return rctx:enqueue_and_wait(req, steady)
    end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end
"""


class Client(threading.Thread):
    """Sends bursts in which each request carries its number, and looks that each is answered once, in order, with its own."""

    def __init__(self, port: int, number: int, end: float, steady_may_fail: bool):
        super().__init__(daemon=True)
        self.port, self.number, self.end, self.steady_may_fail = port, number, end, steady_may_fail
        self.random = random.Random(number)
        self.answered = self.refused = 0
        self.fault = ""

    def run(self):
        try:
            while time.monotonic() < self.end and not self.fault:
                self.session()
        except OSError as error:
            self.fault = "client %d: %s" % (self.number, error)

    def session(self):
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            connection.settimeout(20)
            stream = connection.makefile("rb")
            serial = 0
            for _ in range(self.random.randrange(1, 20)):
                requests = []
                for _ in range(BURST):
                    serial += 1
                    kind = self.random.choice(("steady", "steady", "both", "flap", "raise"))
                    opaque = "%d.%d" % (self.number, serial)
                    size = self.random.choice((1, 100, 5000))
                    requests.append((kind, opaque, ("ms %s%d %d O%s\r\n%s\r\n" % (kind, serial % 50, size, opaque, "x" * size))
                                     if self.random.random() < 0.4 else "mg %s%d v O%s\r\n" % (kind, serial % 50, opaque)))
                connection.sendall("".join(text for _, _, text in requests).encode())
                if self.random.random() < 0.05:
                    return  # Leaves without its answers.
                for kind, opaque, text in requests:
                    self.check(stream, kind, opaque, text)
                    if self.fault:
                        return

    def check(self, stream, kind, opaque, text):
        line = stream.readline()
        if line.startswith(b"VA "):
            stream.read(int(line.split()[1]) + 2)
        if line.rstrip() in REFUSALS:
            self.refused += 1
            if kind == "steady" and not self.steady_may_fail:
                self.fault = "the steady backend failed: %r for %r" % (line, text[:60])
        elif (" O%s" % opaque).encode() in line.rstrip() + b" " and kind != "raise":
            self.answered += 1
        else:
            self.fault = "%r answers %r" % (line, text[:60])


def test_a_day_of_trouble_leaves_nothing_behind(tmp_path, io):
    pass_a_day(tmp_path, io)


def test_a_day_of_trouble_without_memory_for_scripts(tmp_path, io):
    if not HAS_CHECKS:
        pytest.skip("release builds cannot make allocations of scripts fail")
    log = pass_a_day(tmp_path, io, {"KVFERRY_TEST_HOOKS": "1", "KVFERRY_TEST_FAIL_ALLOCATION": "199"})
    assert "not enough memory" in log


def pass_a_day(tmp_path, io, environment=None) -> str:
    """Returns the log. With an environment of test hooks any request may be refused."""
    steady, flapping = Memcached(tmp_path), Memcached(tmp_path)
    values = {"steady": steady.port, "flapping": flapping.port}
    server = ScriptedKvferry(tmp_path, SCRIPT % {**values, "generation": 0}, io, workers=3,
                             env=environment)
    try:
        end = time.monotonic() + SECONDS
        clients = [Client(server.port(), number, end, environment is not None) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        sizes = []
        generation = 0
        while time.monotonic() < end:
            generation += 1
            assert server.reload_and_wait(SCRIPT % {**values, "generation": generation})
            if generation % 3 == 1:
                flapping.kill()
            elif generation % 3 == 2:
                flapping.start()
            sizes.append(server.process.rss_kb())
            time.sleep(0.7)
        for client in clients:
            client.join(40)
            assert not client.is_alive(), "a client waits for answers for ever"
            assert not client.fault, client.fault
        assert sum(client.answered for client in clients) > 100 and sum(client.refused for client in clients) > 10
        wait_for(lambda: int(server.stats()["proxy_req_active"]) == 0, 10, "all slots are returned")
        assert int(server.stats("proxy")["buffer_memory_used"]) == 0
        functions = server.stats("proxyfuncs")
        assert int(functions["funcs_outer"]) == 3 and int(functions["funcs_inner"]) == 3, functions
        assert int(functions["slots_inner"]) == int(functions["slots_outer"]), functions
        assert int(server.stats()["proxy_config_reloads"]) == generation + 1
        assert re.search(r"raised for raise", server.log()), "errors are logged, with a traceback"
        # The first quarter fills pools and buffers.
        if os.environ.get("KVFERRY_BUILD") not in ("asan", "tsan"):
            assert sizes[-1] < max(sizes[len(sizes) // 4], 20 << 10) * 1.3, sizes
        server.stop()
        return server.log()
    finally:
        server.process.kill()
        steady.stop()
        flapping.stop()
