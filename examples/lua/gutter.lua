-- Gutter pool: while a server is down, its keys live in a small spare pool, for a short time only.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/gutter.lua
--
-- Without it, the load of a dead cache falls on the database. Items in the gutter expire after a few seconds, so that
-- nobody reads old values there when the server dies again later.

local MAIN = { 11311, 11312 }
local GUTTER = { 11321 }
local GUTTER_TTL = "10" -- Seconds, as text: it becomes a part of the request line.

local function pool(name, ports, options)
    local backends = {}
    for i, port in ipairs(ports) do
        backends[i] = mcp.backend({
            label = name .. i,
            host = "127.0.0.1",
            port = port,
            connecttimeout = 0.5,
            readtimeout = 0.5,
            retrywaittime = 1, -- A server that is down is tried again every second; requests fail at once meanwhile.
        })
    end
    return mcp.pool(backends, options)
end

function mcp_config_pools()
    return { main = pool("main", MAIN), gutter = pool("gutter", GUTTER) }
end

-- Which token of a classic command is its exptime.
local EXPTIME_TOKEN = {
    [mcp.CMD_SET] = 4,
    [mcp.CMD_ADD] = 4,
    [mcp.CMD_REPLACE] = 4,
    [mcp.CMD_CAS] = 4,
    [mcp.CMD_TOUCH] = 3,
    [mcp.CMD_GAT] = 2,
    [mcp.CMD_GATS] = 2,
}

local function shorten_life(req)
    local command = req:command()
    local place = EXPTIME_TOKEN[command]
    if place then
        req:token(place, GUTTER_TTL)
    elseif command == mcp.CMD_MS or req:has_flag("T") then
        req:flag_set("T", GUTTER_TTL)
    end
end

function mcp_config_routes(pools)
    local fgen = mcp.funcgen_new()
    local main = fgen:new_handle(pools.main)
    local gutter = fgen:new_handle(pools.gutter)
    fgen:ready({
        n = "gutter",
        f = function(rctx)
            return function(req)
                local res = rctx:enqueue_and_wait(req, main)
                -- An error line of a server, such as "object too large", would come from the gutter too.
                if res:ok() or res:raw_string() then
                    return res
                end
                shorten_life(req)
                return rctx:enqueue_and_wait(req, gutter)
            end
        end,
    })
    mcp.attach(mcp.CMD_ANY_STORAGE, fgen)
end
