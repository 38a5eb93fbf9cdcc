-- Fastest of: a read is sent to all copies at once, and the first hit is the answer.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/fastest_of.lua
--
-- Costs one read per copy and buys short tails: a server that pauses is not noticed. The client sees a miss only when all
-- copies have answered and none has the item. Writes go to all copies, and two of three must have taken them.

local COPIES = { 11311, 11321, 11331 }
local WRITES_NEEDED = 2

function mcp_config_pools()
    mcp.backend_read_timeout(2)
    local pools = {}
    for i, port in ipairs(COPIES) do
        pools[i] = mcp.pool({ mcp.backend("copy" .. i, "127.0.0.1", port) })
    end
    return pools
end

-- A function that sends to all pools and waits for `count` answers in the given mode.
local function all_of(pools, name, count, mode)
    local fgen = mcp.funcgen_new()
    local all = {}
    for i, pool in ipairs(pools) do
        all[i] = fgen:new_handle(pool)
    end
    fgen:ready({
        n = name,
        f = function(rctx)
            return function(req)
                rctx:enqueue(req, all)
                rctx:wait_cond(count, mode)
                return (rctx:best_result(all))
            end
        end,
    })
    return fgen
end

function mcp_config_routes(pools)
    mcp.attach(mcp.CMD_ANY_STORAGE, all_of(pools, "writes", WRITES_NEEDED, mcp.WAIT_GOOD))
    -- FASTGOOD ends the wait at the first hit, and otherwise when all have answered.
    local reads = all_of(pools, "reads", #pools, mcp.WAIT_FASTGOOD)
    for _, command in ipairs({ mcp.CMD_MG, mcp.CMD_GET, mcp.CMD_GETS }) do
        mcp.attach(command, reads)
    end
end
