-- Shadow traffic: a part of the real traffic is repeated on a second pool, to try new servers or a new version under load.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/shadow.lua
--
-- Clients are answered by the main pool alone and never wait for the shadow pool, however slow or broken it is. `stats proxy`
-- counts what was sent (user_shadow_sent), failed (user_shadow_failed) and differed in hit or miss (user_shadow_differs).

local MAIN = { 11311, 11312 }
local SHADOW = { 11321 }
local SAMPLE = 1.0 -- The part of the requests that is repeated: 1.0 is all, 0.01 one in a hundred.
local SENT, FAILED, DIFFERS = 1, 2, 3

local function pool(name, ports)
    local backends = {}
    for i, port in ipairs(ports) do
        backends[i] = mcp.backend({
            label = name .. i,
            host = "127.0.0.1",
            port = port,
            readtimeout = 1,
            -- A shadow server that cannot keep up loses requests instead of collecting them in memory.
            depthlimit = name == "shadow" and 1000 or 0,
        })
    end
    return mcp.pool(backends)
end

function mcp_config_pools()
    mcp.add_stat(SENT, "shadow_sent")
    mcp.add_stat(FAILED, "shadow_failed")
    mcp.add_stat(DIFFERS, "shadow_differs")
    return { main = pool("main", MAIN), shadow = pool("shadow", SHADOW) }
end

function mcp_config_routes(pools)
    local fgen = mcp.funcgen_new()
    local main, shadow = fgen:new_handle(pools.main), fgen:new_handle(pools.shadow)
    fgen:ready({
        n = "shadow",
        f = function(rctx)
            local was_hit -- What the main pool said of the current request; nil while it has not answered.
            rctx:handle_set_cb(shadow, function(res)
                if not res:ok() then
                    mcp.stat(FAILED, 1)
                elseif was_hit ~= nil and res:hit() ~= was_hit then
                    mcp.stat(DIFFERS, 1)
                end
            end)
            return function(req)
                was_hit = nil
                if math.random() < SAMPLE then
                    rctx:enqueue(req, shadow)
                    mcp.stat(SENT, 1)
                end
                local res = rctx:enqueue_and_wait(req, main)
                was_hit = res:hit()
                return res
            end
        end,
    })
    mcp.attach(mcp.CMD_ANY_STORAGE, fgen)
end
