-- A function of plain shape: kvferry runs it without Lua.
function mcp_config_pools()
  return mcp.pool({ mcp.backend("one", "127.0.0.1", @first@), mcp.backend("two", "127.0.0.1", @second@) })
end

function mcp_config_routes(pool)
  local fg = mcp.funcgen_new()
  local handle = fg:new_handle(pool)
  fg:ready({ n = "plain", f = function(rctx)
    return function(req)
      return rctx:enqueue_and_wait(req, handle)
    end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end
