-- A function that waits for the reply and looks at it before it passes it on.
function mcp_config_pools()
  return mcp.pool({ mcp.backend("one", "127.0.0.1", @first@), mcp.backend("two", "127.0.0.1", @second@) })
end

function mcp_config_routes(pool)
  local fg = mcp.funcgen_new()
  local handle = fg:new_handle(pool)
  fg:ready({ n = "inspect", f = function(rctx)
    return function(req)
      local res = rctx:enqueue_and_wait(req, handle)
      if not res:ok() then
        return "SERVER_ERROR no answer\r\n"
      end
      return res
    end
  end })
  mcp.attach(mcp.CMD_ANY_STORAGE, fg)
end
