-- Rate limit per prefix: each application, named by the part of its keys before the first ":", has a budget of requests.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/rate_limit.lua
--
-- A budget is a bucket of tokens: a request takes one, and `fillrate` tokens come back every `tickrate` milliseconds. The
-- bucket holds `limit` tokens, of which one always stays, so write one more than the largest burst. What exceeds the budget
-- is answered with an error and reaches no server. Prefixes that are not listed are not limited.

local SERVERS = { 11311 }
local BUDGETS = {
    batch = { limit = 11, fillrate = 10, tickrate = 1000 },
    web = { limit = 10001, fillrate = 1000, tickrate = 100 },
}
local REFUSAL = "SERVER_ERROR rate limit reached\r\n"
local LIMITED = 1

function mcp_config_pools()
    mcp.add_stat(LIMITED, "limited")
    local backends = {}
    for i, port in ipairs(SERVERS) do
        backends[i] = mcp.backend("server" .. i, "127.0.0.1", port)
    end
    -- Buckets made here are shared by all workers; mcp.ratelim_tbf in mcp_config_routes would make one for each worker.
    local buckets = {}
    for prefix, budget in pairs(BUDGETS) do
        buckets[prefix] = mcp.ratelim_global_tbf(budget)
    end
    return { servers = mcp.pool(backends), buckets = buckets }
end

local function make_limited(pool, prefix, has_room)
    local fgen = mcp.funcgen_new()
    local handle = fgen:new_handle(pool)
    fgen:ready({
        n = "limit_" .. prefix,
        f = function(rctx)
            return function(req)
                if has_room(1) then
                    return rctx:enqueue_and_wait(req, handle)
                end
                mcp.stat(LIMITED, 1)
                return REFUSAL
            end
        end,
    })
    return fgen
end

function mcp_config_routes(config)
    local map = {}
    for prefix, bucket in pairs(config.buckets) do
        map[prefix] = make_limited(config.servers, prefix, bucket)
    end
    local function always()
        return true
    end
    local router = mcp.router_new({
        map = map,
        default = make_limited(config.servers, "none", always),
        mode = "prefix",
        stop = ":",
    })
    mcp.attach(mcp.CMD_ANY_STORAGE, router)
end
