-- Local cache in front: values that are read often are kept for a few seconds in kvferry's own memory.
--
--   kvferry memcached -m 64 -l 127.0.0.1:11211 -o proxy_config=examples/lua/near_cache.lua
--
-- Run it beside the application: most reads then stay on the machine. The price is age: a value that another process changed
-- may be served for LOCAL_SECONDS longer. Writes through this process remove its own copy. Reads that ask for more than value
-- and client flags (gets, or mg with CAS, TTL, ...) go to the pool.

local SERVERS = { 11311, 11312 }
local LOCAL_SECONDS = 5
local LOCAL_HITS = 1
-- Flags of mg whose answer or effect only the real server knows.
local REMOTE_FLAGS = { "b", "c", "E", "h", "l", "N", "R", "t", "T" }

function mcp_config_pools()
    mcp.add_stat(LOCAL_HITS, "local_hits")
    local backends = {}
    for i, port in ipairs(SERVERS) do
        backends[i] = mcp.backend("server" .. i, "127.0.0.1", port)
    end
    return mcp.pool(backends)
end

local function needs_server(req)
    for _, flag in ipairs(REMOTE_FLAGS) do
        if req:has_flag(flag) then
            return true
        end
    end
    return false
end

local function make_reads(pool)
    local write_fetch = mcp.req_mutator_new(
        { t = "cmdset", cmd = "mg" },
        { t = "keycopy", idx = 1 },
        { t = "flagset", flag = "f" },
        { t = "flagset", flag = "t" },
        { t = "flagset", flag = "v" })
    local write_fill = mcp.req_mutator_new(
        { t = "cmdset", cmd = "ms" },
        { t = "keycopy", idx = 1 },
        { t = "valcopy", idx = 2 },
        { t = "flagcopy", flag = "F", idx = 3 },
        { t = "flagcopy", flag = "T", idx = 4 })
    local read_item = mcp.res_inspector_new({ t = "flagtoken", flag = "f" }, { t = "flagint", flag = "t" })

    local fgen = mcp.funcgen_new()
    local cache = mcp.internal_handler
    local first, fill, again = fgen:new_handle(cache), fgen:new_handle(cache), fgen:new_handle(cache)
    local direct, fetch = fgen:new_handle(pool), fgen:new_handle(pool)
    fgen:ready({
        n = "reads",
        u = 2,
        f = function(rctx)
            local fetch_req, fill_req = rctx:request_new(), rctx:request_new()
            return function(req)
                if needs_server(req) then
                    return rctx:enqueue_and_wait(req, direct)
                end
                local res = rctx:enqueue_and_wait(req, first)
                if res:hit() then
                    mcp.stat(LOCAL_HITS, 1)
                    return res
                end
                write_fetch(fetch_req, req)
                local item = rctx:enqueue_and_wait(fetch_req, fetch)
                if not item:ok() then
                    return item
                end
                if not item:hit() then
                    return res -- The local miss already has the form that the client expects.
                end
                local _, client_flags, _, seconds = read_item(item)
                local is_short = seconds and seconds >= 0 and seconds < LOCAL_SECONDS
                write_fill(fill_req, req, item, client_flags, tostring(is_short and math.max(seconds, 1) or LOCAL_SECONDS))
                if not rctx:enqueue_and_wait(fill_req, fill):ok() then
                    return rctx:enqueue_and_wait(req, direct) -- Too large for the local cache.
                end
                return rctx:enqueue_and_wait(req, again)
            end
        end,
    })
    return fgen
end

local function make_others(pool)
    local write_delete = mcp.req_mutator_new({ t = "cmdset", cmd = "md" }, { t = "keycopy", idx = 1 })
    local fgen = mcp.funcgen_new()
    local remote, cache = fgen:new_handle(pool), fgen:new_handle(mcp.internal_handler)
    fgen:ready({
        n = "others",
        u = 1,
        f = function(rctx)
            local delete_req = rctx:request_new()
            return function(req)
                local res = rctx:enqueue_and_wait(req, remote)
                write_delete(delete_req, req)
                rctx:enqueue_and_wait(delete_req, cache)
                return res
            end
        end,
    })
    return fgen
end

function mcp_config_routes(pool)
    mcp.attach(mcp.CMD_ANY_STORAGE, make_others(pool))
    local reads = make_reads(pool)
    mcp.attach(mcp.CMD_MG, reads)
    mcp.attach(mcp.CMD_GET, reads)
end
