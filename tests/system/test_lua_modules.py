"""Modules that scripts `require`: written in Lua, and in C, which finds the functions of Lua in the program itself."""

import subprocess

from support.wire import Wire

# It calls the core and the auxiliary library, and keeps a function of the script's between two calls.
MODULE = r"""
#include <lauxlib.h>
#include <lua.h>

static int shout(lua_State* lua) {
  luaL_Buffer buffer;
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  luaL_buffinit(lua, &buffer);
  for (size_t i = 0; i < size; ++i) {
    luaL_addchar(&buffer, (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]));
  }
  luaL_pushresult(&buffer);
  return 1;
}

int luaopen_shouting(lua_State* lua) {
  static const luaL_Reg functions[] = {{"shout", shout}, {0, 0}};
  luaL_newlib(lua, functions);
  return 1;
}
"""

SCRIPT = """
package.%(path)s = "%(folder)s/?.%(ending)s"
local shouting = require("shouting")
function mcp_config_pools() return nil end
function mcp_config_routes()
  local fg = mcp.funcgen_new()
  fg:ready({ n = "shout", f = function()
    return function(req) return "HD O" .. shouting.shout(req:key()) .. "\\r\\n" end
  end })
  mcp.attach(mcp.CMD_MG, fg)
end
"""


def expect_shouts(server):
    with Wire(server.port()) as client:
        for number in range(50):
            client.ask(b"mg some-key-%d\r\n" % number, b"HD OSOME-KEY-%d\r\n" % number)
        client.expect_in_step()


def test_module_in_c(scripted, tmp_path):
    source = tmp_path / "shouting.c"
    source.write_text(MODULE)
    subprocess.run(["cc", "-shared", "-fPIC", "-I/usr/include/lua5.4", "-o", tmp_path / "shouting.so", source], check=True)
    expect_shouts(scripted(SCRIPT % {"path": "cpath", "folder": tmp_path, "ending": "so"}))


def test_module_in_lua(scripted, tmp_path):
    (tmp_path / "shouting.lua").write_text("return { shout = string.upper }\n")
    expect_shouts(scripted(SCRIPT % {"path": "path", "folder": tmp_path, "ending": "lua"}))
