-- Replicate to all: every write goes to all pools and is answered when all have it; reads ask one pool after the other until one has the item.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/replicate_all.lua
--
-- If one pool cannot be written, the client gets that error, though the others have the value: it should try again. CAS
-- uniques differ from server to server, so do not use gets and cas through this route.

local REPLICAS = { { 11311, 11312 }, { 11321, 11322 } }

function mcp_config_pools()
    mcp.backend_read_timeout(1)
    local pools = {}
    for number, ports in ipairs(REPLICAS) do
        local backends = {}
        for i, port in ipairs(ports) do
            local label = "replica" .. number .. "_" .. i
            backends[i] = mcp.backend({ label = label, host = "127.0.0.1", port = port, retrywaittime = 1 })
        end
        pools[number] = mcp.pool(backends)
    end
    return pools
end

local function handles_of(fgen, pools)
    local handles = {}
    for i, pool in ipairs(pools) do
        handles[i] = fgen:new_handle(pool)
    end
    return handles
end

local function make_writes(pools)
    local fgen = mcp.funcgen_new()
    local all = handles_of(fgen, pools)
    fgen:ready({
        n = "writes",
        f = function(rctx)
            return function(req)
                rctx:enqueue(req, all)
                rctx:wait_cond(#all)
                return (rctx:worst_result(all)) -- An error if there is one.
            end
        end,
    })
    return fgen
end

local function make_reads(pools)
    local fgen = mcp.funcgen_new()
    local all = handles_of(fgen, pools)
    fgen:ready({
        n = "reads",
        f = function(rctx)
            return function(req)
                local res
                for _, handle in ipairs(all) do
                    res = rctx:enqueue_and_wait(req, handle)
                    if res:hit() then
                        break
                    end
                end
                return res
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
