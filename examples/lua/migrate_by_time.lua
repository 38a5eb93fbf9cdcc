-- Migration by time: traffic moves from an old pool to a new one at a time that is set in advance.
--
--   kvferry memcached -l 127.0.0.1:11211 \
--       -o proxy_config=examples/lua/migrate_by_time.lua,proxy_arg=switch_1893456000:done_1893542400
--
--   before `switch`   reads come from the old pool; writes go to both, the answer is the old pool's
--   until `done`      reads come from the new pool, and from the old one where the new one misses; writes go to both,
--                     the answer is the new pool's
--   after `done`      the old pool gets no request any more
--
-- Both times are Unix times in seconds (date +%s). All processes with the same times switch together, without a reload.
-- Begin well before `switch`: longer than most items live, and the new pool is warm by then.

local OLD = { 11311 }
local NEW = { 11321, 11322 }

local TIMES = type(mcp.start_arg) == "table" and mcp.start_arg or {}
local SWITCH = math.tointeger(tonumber(TIMES.switch)) or error("proxy_arg must say switch_<unix time>:done_<unix time>")
local DONE = math.tointeger(tonumber(TIMES.done)) or error("proxy_arg must say switch_<unix time>:done_<unix time>")

local function pool(name, ports)
    local backends = {}
    for i, port in ipairs(ports) do
        backends[i] = mcp.backend(name .. i, "127.0.0.1", port)
    end
    return mcp.pool(backends)
end

function mcp_config_pools()
    return { old = pool("old", OLD), new = pool("new", NEW) }
end

local function now()
    return mcp.time_real_millis() // 1000
end

local function make_reads(pools)
    local fgen = mcp.funcgen_new()
    local old, new = fgen:new_handle(pools.old), fgen:new_handle(pools.new)
    fgen:ready({
        n = "reads",
        f = function(rctx)
            return function(req)
                local time = now()
                if time < SWITCH then
                    return rctx:enqueue_and_wait(req, old)
                end
                local res = rctx:enqueue_and_wait(req, new)
                if time >= DONE or res:hit() then
                    return res
                end
                return rctx:enqueue_and_wait(req, old)
            end
        end,
    })
    return fgen
end

local function make_writes(pools)
    local fgen = mcp.funcgen_new()
    local old, new = fgen:new_handle(pools.old), fgen:new_handle(pools.new)
    fgen:ready({
        n = "writes",
        f = function(rctx)
            return function(req)
                local time = now()
                if time >= DONE then
                    return rctx:enqueue_and_wait(req, new)
                end
                rctx:enqueue(req, { old, new })
                rctx:wait_cond(2)
                return rctx:res_any(time < SWITCH and old or new)
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
