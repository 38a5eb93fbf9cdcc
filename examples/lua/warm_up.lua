-- Cold-cache warm-up: a new, empty pool fills itself from the old one while it serves.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/warm_up.lua
--
-- Reads ask the new pool. On a miss the item is fetched from the old pool with its client flags and its remaining life, added
-- to the new pool, and the client's request is asked there again. Writes go to the new pool, and what they change is deleted
-- from the old one, so that it does not come back. When misses no longer find anything (user_warmed stops growing), point
-- clients at a configuration without the old pool.

local NEW = { 11311, 11312 }
local OLD = { 11321 }
local WARMED = 1

local function pool(name, ports)
    local backends = {}
    for i, port in ipairs(ports) do
        backends[i] = mcp.backend(name .. i, "127.0.0.1", port)
    end
    return mcp.pool(backends)
end

function mcp_config_pools()
    mcp.add_stat(WARMED, "warmed")
    return { new = pool("new", NEW), old = pool("old", OLD) }
end

local function make_reads(pools)
    -- "mg KEY f t v" for the old pool, made from the client's request.
    local write_fetch = mcp.req_mutator_new(
        { t = "cmdset", cmd = "mg" },
        { t = "keycopy", idx = 1 },
        { t = "flagset", flag = "f" },
        { t = "flagset", flag = "t" },
        { t = "flagset", flag = "v" })
    -- "ms KEY LENGTH F<client flags> T<seconds left> ME" and the value, for the new pool; ME adds and does not replace.
    local write_fill = mcp.req_mutator_new(
        { t = "cmdset", cmd = "ms" },
        { t = "keycopy", idx = 1 },
        { t = "valcopy", idx = 2 },
        { t = "flagcopy", flag = "F", idx = 3 },
        { t = "flagcopy", flag = "T", idx = 4 },
        { t = "flagset", flag = "M", val = "E" })
    local read_item = mcp.res_inspector_new({ t = "flagtoken", flag = "f" }, { t = "flagint", flag = "t" })

    local fgen = mcp.funcgen_new()
    local first, fill, again = fgen:new_handle(pools.new), fgen:new_handle(pools.new), fgen:new_handle(pools.new)
    local old = fgen:new_handle(pools.old)
    fgen:ready({
        n = "reads",
        u = 2,
        f = function(rctx)
            local fetch_req, fill_req = rctx:request_new(), rctx:request_new()
            return function(req)
                local res = rctx:enqueue_and_wait(req, first)
                if res:hit() or not res:ok() or req:has_flag("b") then
                    return res -- Keys in base64 (flag b) are not copied.
                end
                write_fetch(fetch_req, req)
                local item = rctx:enqueue_and_wait(fetch_req, old)
                if not item:hit() then
                    return res
                end
                local _, client_flags, _, seconds = read_item(item)
                -- t-1 says that the item never expires; it then has no T.
                local life = seconds and seconds > 0 and tostring(seconds) or nil
                write_fill(fill_req, req, item, client_flags, life)
                rctx:enqueue_and_wait(fill_req, fill)
                mcp.stat(WARMED, 1)
                return rctx:enqueue_and_wait(req, again)
            end
        end,
    })
    return fgen
end

local function make_writes(pools)
    local write_delete = mcp.req_mutator_new({ t = "cmdset", cmd = "md" }, { t = "keycopy", idx = 1 })
    local fgen = mcp.funcgen_new()
    local new, old = fgen:new_handle(pools.new), fgen:new_handle(pools.old)
    fgen:ready({
        n = "writes",
        u = 1,
        f = function(rctx)
            local delete_req = rctx:request_new()
            return function(req)
                write_delete(delete_req, req)
                rctx:enqueue(delete_req, old)
                return rctx:enqueue_and_wait(req, new)
            end
        end,
    })
    return fgen
end

function mcp_config_routes(pools)
    mcp.attach(mcp.CMD_ANY_STORAGE, make_writes(pools))
    local reads = make_reads(pools)
    for _, command in ipairs({ mcp.CMD_MG, mcp.CMD_GET, mcp.CMD_GETS, mcp.CMD_GAT, mcp.CMD_GATS }) do
        mcp.attach(command, reads)
    end
end
