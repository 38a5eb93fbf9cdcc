-- Prefix router: the part of a key before the first "/" decides which pool has it.
--
--   kvferry memcached -l 127.0.0.1:11211 -o proxy_config=examples/lua/prefix_router.lua
--
-- "users/42" goes to the pool of users, "pages/home" to the pool of pages, and every other key to the rest. Keys are sent
-- as they are, so an item can still be read directly from its server.

local USERS = { 11311, 11312 }
local PAGES = { 11321, 11322 }
local REST = { 11331 }

-- One pool of servers on this machine. A label names a server in statistics and log lines.
local function pool(name, ports)
    local backends = {}
    for i, port in ipairs(ports) do
        backends[i] = mcp.backend(name .. i, "127.0.0.1", port)
    end
    return mcp.pool(backends)
end

function mcp_config_pools()
    return { users = pool("users", USERS), pages = pool("pages", PAGES), rest = pool("rest", REST) }
end

-- A function that hands each request to one pool. Its name appears in `stats proxyfuncs`.
local function forward_to(target, name)
    local fgen = mcp.funcgen_new()
    local handle = fgen:new_handle(target)
    fgen:ready({
        n = name,
        f = function(rctx)
            return function(req)
                return rctx:enqueue_and_wait(req, handle)
            end
        end,
    })
    return fgen
end

function mcp_config_routes(pools)
    local router = mcp.router_new({
        map = {
            users = forward_to(pools.users, "users"),
            pages = forward_to(pools.pages, "pages"),
        },
        default = forward_to(pools.rest, "rest"),
        mode = "prefix",
        stop = "/",
    })
    mcp.attach(mcp.CMD_ANY_STORAGE, router)
end
