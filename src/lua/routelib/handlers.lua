
-- What each kind of route takes. A handler has:
--   arguments   the type of each argument that it takes; children are resolved before
--   conf        (route, args, ctx) -> fields for native.route; nil: the arguments as they are
do
    local function zone_of(route, args)
        if args.local_zone == nil or args.local_zone == true then
            return lib.zone, false
        end
        return args.local_zone, true
    end

    -- Puts the child of the local zone first. Whether there is one.
    local function put_zone_first(route, children, zone, is_required)
        for i, key in ipairs(children.keys) do
            if key == zone then
                table.insert(children.list, 1, table.remove(children.list, i))
                table.insert(children.keys, 1, table.remove(children.keys, i))
                return true
            end
        end
        if is_required then
            lib.fail(route.where, "%s: local_zone: none of the children is %s (they are %s)",
                     route.title, tostring(zone), table.concat(children.keys, ", "))
        end
        return false
    end

    local function counter(ctx, args, suffix)
        if args.stats then
            return ctx:get_stats_id((args.stats_name or ctx:label()) .. suffix)
        end
        return nil
    end

    local function warn_if_alone(route, children)
        if #children.list == 1 then
            lib.warn(route.where, "%s: children: there is only one, so route_direct would do the same",
                     route.title)
        end
    end

    local builtin = {}

    builtin.direct = { arguments = { child = "child" } }
    builtin.null = { arguments = {} }
    builtin.random = { arguments = { children = "children" } }
    builtin.allsync = { arguments = { children = "children" } }
    builtin.allasync = { arguments = { children = "children" } }
    builtin.allfastest = {
        arguments = { children = "children", miss = "boolean", wait = "number" },
        conf = function(route, args)
            return { children = args.children.list, miss = args.miss, wait = args.wait }
        end,
    }
    builtin.split = {
        arguments = { child_a = "child", child_b = "child" },
        conf = function(route, args)
            return { children = { args.child_a, args.child_b } }
        end,
    }
    builtin.failover = {
        arguments = {
            children = "children", miss = "boolean", failover_count = "integer",
            shuffle = "boolean", wait = "number", stats = "boolean", stats_name = "string",
            local_zone = "zone",
        },
        conf = function(route, args, ctx)
            local children = args.children
            warn_if_alone(route, children)
            if args.failover_count ~= nil and args.failover_count < 1 then
                lib.fail(route.where, "%s: failover_count must be at least 1", route.title)
            end
            local fixed = 0
            local zone, is_required = zone_of(route, args)
            if children.keys ~= nil and zone ~= nil then
                fixed = put_zone_first(route, children, zone, is_required) and 1 or 0
            elseif is_required then
                lib.fail(route.where, "%s: local_zone needs children that are named by zone",
                         route.title)
            end
            return {
                children = children.list, miss = args.miss, failover_count = args.failover_count,
                shuffle = args.shuffle, fixed_children = fixed, wait = args.wait,
                counter = counter(ctx, args, "_retries"),
            }
        end,
    }
    builtin.zfailover = {
        arguments = {
            children = "children", miss = "boolean", stats = "boolean", stats_name = "string",
            local_zone = "zone",
        },
        conf = function(route, args, ctx)
            local zone = zone_of(route, args)
            if zone == nil then
                lib.fail(route.where, "%s: local_zone: there is none, and local_zone() was not called",
                         route.title)
            end
            if args.children.keys == nil then
                lib.fail(route.where, "%s: children must be named by zone", route.title)
            end
            warn_if_alone(route, args.children)
            put_zone_first(route, args.children, zone, true)
            return {
                children = args.children.list, miss = args.miss ~= false,
                counter = counter(ctx, args, "_retries"),
            }
        end,
    }
    builtin.ttl = {
        arguments = { child = "child", ttl = "integer" },
        required = { "ttl" },
        conf = function(route, args)
            return { children = { args.child }, ttl = tostring(args.ttl) }
        end,
    }
    builtin.ratelim = {
        arguments = {
            child = "child", limit = "integer", fillrate = "integer", tickrate = "integer",
            global = "boolean", fail_until_limit = "boolean", stats = "boolean",
            stats_name = "string",
        },
        required = { "limit" },
        conf = function(route, args, ctx)
            local bucket = {
                limit = args.limit, fillrate = args.fillrate, tickrate = args.tickrate or 1000,
            }
            -- Made here also when each worker has one of its own: that finds what is wrong.
            local done, made = pcall(mcp.ratelim_global_tbf, bucket)
            if not done then
                lib.fail(route.where, "%s: limit, fillrate, tickrate: %s", route.title, made)
            end
            return {
                children = { args.child }, bucket = args.global and made or bucket,
                fail_until_limit = args.fail_until_limit,
                counter = counter(ctx, args, "_limits"),
            }
        end,
    }

    -- Longest time to live of copies, the largest value that one may be told to keep, and the memory of all.
    local NEAR_SECONDS_MAX = 3600
    local NEAR_VALUE_MAX = 1024 * 1024 * 1024
    local NEAR_MEMORY_MIN, NEAR_MEMORY_MAX = 1024 * 1024, 1024 * 1024 * 1024 * 1024
    local NEAR_MEMORY_DEFAULT = 64 * 1024 * 1024

    builtin.nearcache = {
        arguments = {
            child = "child", ttl = "number", max_value = "integer", memory = "integer",
            stats = "boolean", stats_name = "string",
        },
        required = { "ttl" },
        conf = function(route, args, ctx)
            local ttl_ms = math.floor(args.ttl * 1000 + 0.5)
            if ttl_ms < 1 or args.ttl > NEAR_SECONDS_MAX then
                lib.fail(route.where, "%s: ttl must be 0.001 to %d seconds, not %s", route.title,
                         NEAR_SECONDS_MAX, tostring(args.ttl))
            end
            local max_value = args.max_value or 64 * 1024
            if max_value < 1 or max_value > NEAR_VALUE_MAX then
                lib.fail(route.where, "%s: max_value must be 1 to %d bytes, not %d", route.title,
                         NEAR_VALUE_MAX, max_value)
            end
            local memory = args.memory or NEAR_MEMORY_DEFAULT
            if memory < NEAR_MEMORY_MIN or memory > NEAR_MEMORY_MAX then
                lib.fail(route.where, "%s: memory must be %d to %d bytes, not %d", route.title,
                         NEAR_MEMORY_MIN, NEAR_MEMORY_MAX, memory)
            end
            return {
                children = { args.child }, space = lib.space_before(args.child, memory),
                ttl_ms = ttl_ms, max_value = max_value, memory = memory,
                hit_counter = counter(ctx, args, "_hits"),
                miss_counter = counter(ctx, args, "_misses"),
            }
        end,
    }
    builtin.coalesce = {
        arguments = { child = "child", stats = "boolean", stats_name = "string" },
        conf = function(_, args, ctx)
            return { children = { args.child }, join_counter = counter(ctx, args, "_joined") }
        end,
    }

    local function fits(kind, value)
        if kind == "integer" then
            return math.type(value) == "integer"
        elseif kind == "zone" then
            return type(value) == "string" or type(value) == "boolean"
        end
        return type(value) == kind
    end

    local function is_children(kind)
        return kind == "child" or kind == "children"
    end

    -- Checks the arguments of a built-in route, whose children are resolved.
    local function check(route, handler, args)
        for _, name in ipairs(lib.sorted_keys(args)) do
            local kind = handler.arguments[name]
            if kind == nil then
                lib.warn(route.where, "%s: there is no argument %s (there are %s)", route.title,
                         tostring(name), lib.list(handler.arguments))
            elseif not is_children(kind) and not fits(kind, args[name]) then
                lib.fail(route.where, "%s: %s must be a %s, not %s", route.title, name, kind,
                         tostring(args[name]))
            end
        end
        for name, kind in pairs(handler.arguments) do
            if args[name] == nil and is_children(kind) then
                lib.fail(route.where, "%s: argument %s is missing", route.title, name)
            end
        end
        for _, name in ipairs(handler.required or {}) do
            if args[name] == nil then
                lib.fail(route.where, "%s: argument %s is missing", route.title, name)
            end
        end
    end

    -- The node of a built-in route.
    function lib.configure_builtin(route, handler, args, ctx)
        check(route, handler, args)
        for name, kind in pairs(handler.arguments) do
            if kind == "child" then
                args[name] = lib.only_child(route, name, args[name])
            elseif kind == "children" then
                args[name] = lib.ordered_children(route, name, args[name])
            end
        end
        local fields
        if handler.conf ~= nil then
            fields = handler.conf(route, args, ctx)
        else
            fields = { children = args.children and args.children.list or { args.child } }
        end
        fields.label = ctx:label()
        return { kind = route.name, fields = fields }
    end

    for name, handler in pairs(builtin) do
        lib.handlers[name] = handler
    end
end
