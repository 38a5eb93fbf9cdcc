-- Zone fail-over: reads ask the servers of the own zone, and the other zones only when those fail or are too slow.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/zone_failover.lua,proxy_arg=east
--
-- The same file serves every zone; proxy_arg says where this process is. Writes go to all zones: the answer is that of the
-- own zone, or of another one when the own zone fails. A miss is an answer and does not start a fail-over.

local ZONES = { east = { 11311, 11312 }, west = { 11321, 11322 } }
local LOCAL_ZONE = mcp.start_arg or "east"
local LOCAL_SECONDS = 0.2 -- How long the own zone may think before the others are asked.
local FAILOVERS = 1       -- Index of the counter that `stats proxy` shows as user_failovers.

function mcp_config_pools()
    mcp.backend_connect_timeout(1)
    mcp.backend_read_timeout(1)
    mcp.add_stat(FAILOVERS, "failovers")
    local pools = {}
    for zone, ports in pairs(ZONES) do
        local backends = {}
        for i, port in ipairs(ports) do
            backends[i] = mcp.backend({
                label = zone .. i,
                host = "127.0.0.1",
                port = port,
                retrywaittime = 1, -- A server that is down is tried again every second; requests to it fail at once meanwhile.
            })
        end
        pools[zone] = mcp.pool(backends)
    end
    return pools
end

-- Handles of all zones: that of the own one, and a list of the others.
local function handles_of(fgen, pools)
    local near, far = fgen:new_handle(pools[LOCAL_ZONE]), {}
    for zone, pool in pairs(pools) do
        if zone ~= LOCAL_ZONE then
            far[#far + 1] = fgen:new_handle(pool)
        end
    end
    return near, far
end

local function make_reads(pools)
    local fgen = mcp.funcgen_new()
    local near, far = handles_of(fgen, pools)
    fgen:ready({
        n = "reads",
        f = function(rctx)
            return function(req)
                local res = rctx:enqueue_and_wait(req, near, LOCAL_SECONDS)
                if res and res:ok() then
                    return res
                end
                mcp.stat(FAILOVERS, 1)
                rctx:enqueue(req, far)
                rctx:wait_cond(#far, mcp.WAIT_FASTGOOD)
                return (rctx:best_result(far))
            end
        end,
    })
    return fgen
end

local function make_writes(pools)
    local fgen = mcp.funcgen_new()
    local near, far = handles_of(fgen, pools)
    fgen:ready({
        n = "writes",
        f = function(rctx)
            return function(req)
                rctx:enqueue(req, far)
                local res = rctx:enqueue_and_wait(req, near)
                if res:ok() then
                    return res -- The other zones finish in the background.
                end
                mcp.stat(FAILOVERS, 1)
                rctx:wait_cond(1, mcp.WAIT_OK)
                return (rctx:best_result(far))
            end
        end,
    })
    return fgen
end

function mcp_config_routes(pools)
    mcp.attach(mcp.CMD_ANY_STORAGE, make_writes(pools))
    local reads = make_reads(pools)
    for _, command in ipairs({ mcp.CMD_MG, mcp.CMD_GET, mcp.CMD_GETS }) do
        mcp.attach(command, reads)
    end
end
