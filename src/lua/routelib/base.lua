-- The route library of kvferry: pools and routes by declaration. See docs/routelib.md.
--
-- This text runs at each load, first where the configuration is made and then in each worker. There
-- the library is given `native`, which makes routes that need no Lua for requests.
--
--   user's file -> routes as tables (routes.lua) -> nodes, which can be copied -> native routes

local native = ...

-- What the parts of the library share. One load, one table.
local lib = {
    zone = nil,         -- Of this process.
    levels = { verbose = false, debug = false, trace = false },
    pools = {},         -- By name: what pools{} was given, with the place.
    sets = {},          -- By name: zone or member -> name of the pool.
    routers = {},       -- What routes{} was given, in order.
    settings = {},
    handlers = {},      -- By name.
    counters = {},      -- Names of user counters that routes have asked for -> index.
    spaces = {},        -- What near caches stand before, as text -> number of their copies.
}

do
    -- Where in the user's file the function was called that called us, `up` levels above.
    function lib.place(up)
        local info = debug.getinfo(up + 2, "Sl")
        if info == nil or info.currentline < 0 then
            return "routelib"
        end
        -- Not short_src, which cuts long paths.
        return info.source:gsub("^[@=]", "") .. ":" .. info.currentline
    end

    function lib.fail(where, text, ...)
        error(where .. ": " .. string.format(text, ...), 0)
    end

    function lib.warn(where, text, ...)
        if native == nil then
            io.stderr:write("kvferry: warning: ", where, ": ", string.format(text, ...), "\n")
        end
    end

    -- Keys of `map` in order, so that every load and every worker sees the same.
    function lib.sorted_keys(map)
        local keys = {}
        for key in pairs(map) do
            keys[#keys + 1] = key
        end
        table.sort(keys, function(a, b)
            if type(a) == type(b) then
                return a < b
            end
            return type(a) == "number"
        end)
        return keys
    end

    -- A new table with the fields of all that are tables; later ones win.
    function lib.merge(...)
        local merged = {}
        for i = 1, select("#", ...) do
            for key, value in pairs((select(i, ...)) or {}) do
                merged[key] = value
            end
        end
        return merged
    end

    -- The names in `map` as a text for messages.
    function lib.list(map)
        local names = {}
        for _, key in ipairs(lib.sorted_keys(map)) do
            names[#names + 1] = tostring(key)
        end
        return #names == 0 and "none" or table.concat(names, ", ")
    end

    function lib.check_table(where, what, value)
        if type(value) ~= "table" then
            lib.fail(where, "%s needs a table, not %s", what, type(value))
        end
        return value
    end

    local function write_line(...)
        local texts = {}
        for i = 1, select("#", ...) do
            texts[i] = tostring((select(i, ...)))
        end
        io.stdout:write(table.concat(texts, "\t"), "\n")
        io.stdout:flush()
    end

    function verbose(is_on)
        lib.levels.verbose = is_on ~= false
    end

    function verbosity(levels)
        for name, is_on in pairs(lib.check_table(lib.place(1), "verbosity", levels)) do
            if lib.levels[name] == nil then
                lib.warn(lib.place(1), "verbosity: there is no level %s (there are %s)", name,
                         lib.list(lib.levels))
            end
            lib.levels[name] = is_on and true or false
        end
    end

    function say(...)
        if lib.levels.verbose or lib.levels.debug or lib.levels.trace then
            write_line(...)
        end
    end

    function dsay(...)
        if lib.levels.debug or lib.levels.trace then
            write_line(...)
        end
    end

    local function set_zone(where, zone, from)
        if type(zone) ~= "string" or zone == "" then
            lib.fail(where, "%s gives no zone", from)
        end
        lib.zone = zone
    end

    function local_zone(zone)
        set_zone(lib.place(1), zone, "local_zone")
    end

    function local_zone_from_env(name)
        set_zone(lib.place(1), os.getenv(name), "environment variable " .. tostring(name))
    end

    function local_zone_from_file(path)
        local where = lib.place(1)
        local file, why = io.open(path, "r")
        if file == nil then
            lib.fail(where, "local_zone_from_file: %s", why)
        end
        local line = file:read("l")
        file:close()
        set_zone(where, line and line:match("^%s*(.-)%s*$"), "file " .. path)
    end

    -- Settings that are functions of the API of the same name.
    local tunables = {
        backend_connect_timeout = "backend_connect_timeout",
        backend_depth_limit = "backend_depth_limit",
        backend_failure_limit = "backend_failure_limit",
        backend_flap_backoff_max = "backend_flap_backoff_max",
        backend_flap_backoff_ramp = "backend_flap_backoff_ramp",
        backend_flap_time = "backend_flap_time",
        backend_read_timeout = "backend_read_timeout",
        backend_retry_waittime = "backend_retry_waittime",
        backend_use_iothread = "backend_use_iothread",
        tcp_keepalive = "tcp_keepalive",
        active_request_limit = "active_req_limit",
        active_req_limit = "active_req_limit",
        buffer_memory_limit = "buffer_memory_limit",
    }

    local function apply_setting(where, name, value)
        if tunables[name] ~= nil then
            local done, why = pcall(mcp[tunables[name]], value)
            if not done then
                lib.fail(where, "settings: %s: %s", name, why)
            end
        elseif name == "backend_use_tls" then
            if value then
                mcp.init_tls()
            end
            mcp.backend_use_tls(value)
        elseif name == "pool_options" or name == "backend_options" then
            lib.settings[name] = lib.check_table(where, "settings: " .. name, value)
        else
            lib.warn(where, "settings: there is no setting %s, so it is ignored", name)
        end
    end

    function settings(values)
        local where = lib.place(1)
        lib.check_table(where, "settings", values)
        for _, name in ipairs(lib.sorted_keys(values)) do
            apply_setting(where, name, values[name])
        end
    end
end
