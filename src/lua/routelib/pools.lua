
-- Pools and sets of pools.
do
    local default_port = "11211"

    local function add_pool(where, name, spec)
        lib.check_table(where, "pools: " .. name, spec)
        if name == "internal" then
            lib.fail(where, "pools: the name internal stands for the local cache; choose another")
        end
        if lib.pools[name] ~= nil then
            lib.warn(where, "pools: %s is there twice; this one replaces the one of %s", name,
                     lib.pools[name].where)
        end
        lib.pools[name] = { spec = spec, where = where }
    end

    function pools(specs)
        local where = lib.place(1)
        lib.check_table(where, "pools", specs)
        for _, name in ipairs(lib.sorted_keys(specs)) do
            if type(name) ~= "string" then
                lib.fail(where, "pools: names are texts, not %s", tostring(name))
            end
            if name:sub(1, 4) == "set_" then
                lib.sets[name] = {}
                for _, member in ipairs(lib.sorted_keys(lib.check_table(where, name, specs[name]))) do
                    local pool_name = name .. "_" .. member
                    add_pool(where, pool_name, specs[name][member])
                    lib.sets[name][member] = pool_name
                end
            else
                add_pool(where, name, specs[name])
            end
        end
    end

    -- "host:port", "host:port label", each with _down_ at the end or not.
    local function parse_backend(where, name, text)
        local rest, is_down = text:gsub("_down_%s*$", "")
        local host, port, label = rest:match("^%s*%[([^%]]+)%]:(%d+)%s*(.-)%s*$")
        if host == nil then
            host, port, label = rest:match("^%s*([^:%s]+):(%d+)%s*(.-)%s*$")
        end
        if host == nil or label:find("%s") then
            lib.fail(where, "pools: %s: backend \"%s\" is not of the form \"host:port label\"", name,
                     text)
        end
        return {
            host = host,
            port = port,
            label = label ~= "" and label or host .. ":" .. port,
            down = is_down > 0 or nil,
        }
    end

    local function make_backend(where, name, pool, given)
        local own
        if type(given) == "string" then
            own = parse_backend(where, name, given)
        else
            own = lib.merge({ port = default_port },
                            lib.check_table(where, "pools: " .. name .. ": a backend", given))
            own.label = own.label or tostring(own.host) .. ":" .. tostring(own.port)
        end
        local fields = lib.merge(lib.settings.backend_options, pool.backend_options, own)
        local done, made = pcall(mcp.backend, fields)
        if not done then
            lib.fail(where, "pools: %s: backend %s: %s", name, own.label, made)
        end
        return made
    end

    local function make_pool(name, where, spec)
        local backends = {}
        for i, given in ipairs(lib.check_table(where, "pools: " .. name .. ": backends",
                                               spec.backends)) do
            backends[i] = make_backend(where, name, spec, given)
        end
        if #backends == 0 then
            lib.warn(where, "pools: %s has no backends, so all its requests will fail", name)
        end
        local options = lib.merge(lib.settings.pool_options, spec.options)
        local done, made = pcall(mcp.pool, backends, options)
        if not done then
            lib.fail(where, "pools: %s: %s", name, made)
        end
        return made
    end

    function lib.make_pools()
        local made = {}
        for _, name in ipairs(lib.sorted_keys(lib.pools)) do
            made[name] = make_pool(name, lib.pools[name].where, lib.pools[name].spec)
        end
        return made
    end
end
