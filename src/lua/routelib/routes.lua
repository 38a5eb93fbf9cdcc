
-- Routes: from the user's tables to nodes, and from nodes to what is attached.
--
-- A node is { kind, fields } for native.route, or { custom, args, label, cmd } for a handler of the
-- user's. Children are leaves: { leaf = "pool", name }, { leaf = "route", node }.
do
    local Route = {}
    local Commands = {}
    local Context = {}
    Context.__index = Context

    function Context:label()
        return self.label_text
    end

    function Context:cmd()
        return self.command
    end

    function Context:local_zone()
        return lib.zone
    end

    -- User counters: a name keeps its index as long as each load asks for it. One that is not asked for
    -- any more is hidden, and its index is given to another name one load later: until then requests
    -- of the load before may count in it. The table is a global, so that it goes back with a load that
    -- fails; it is replaced, never changed.
    local function counters_before()
        return kvferry_routelib_counters or { load = 0, entries = {} }
    end

    local function is_taken(index, before)
        for _, entry in pairs(before.entries) do
            if entry.index == index and entry.load >= before.load then
                return true
            end
        end
        for _, used in pairs(lib.counters) do
            if used == index then
                return true
            end
        end
        return false
    end

    function Context:get_stats_id(name)
        name = name:gsub("%s", "_")
        if lib.counters[name] == nil then
            local before = counters_before()
            local known = before.entries[name]
            local index = 1
            if known ~= nil and known.load >= before.load then
                index = known.index
            else
                while is_taken(index, before) do
                    index = index + 1
                end
            end
            lib.counters[name] = index
            mcp.add_stat(index, name)
        end
        return lib.counters[name]
    end

    local function note_counters()
        local before = counters_before()
        local after = { load = before.load + 1, entries = {} }
        local used = {}
        for name, index in pairs(lib.counters) do
            after.entries[name] = { index = index, load = after.load }
            used[index] = true
        end
        for name, entry in pairs(before.entries) do
            if after.entries[name] == nil and not used[entry.index] then
                mcp.add_stat(entry.index, "")
                if entry.load >= before.load then
                    after.entries[name] = entry
                end
            end
        end
        kvferry_routelib_counters = after
    end

    -- Copies of near caches: those that stand before equal children, with the same memory, share them and find
    -- them again after a reload; a number is never given to others. The table is a global for the reason above.
    local function spaces_before()
        return kvferry_routelib_spaces or { last = 0, known = {} }
    end

    -- The same text for equal children; nil for what cannot be compared.
    local function describe(value)
        if type(value) == "table" then
            local parts = {}
            for _, key in ipairs(lib.sorted_keys(value)) do
                local text = describe(value[key])
                if text == nil then
                    return nil
                end
                parts[#parts + 1] = string.format("[%q]=%s", key, text)
            end
            return "{" .. table.concat(parts, ",") .. "}"
        elseif type(value) == "string" or type(value) == "number" or type(value) == "boolean" then
            return string.format("%q", value)
        end
        return nil
    end

    function lib.space_before(child, memory)
        local before = spaces_before()
        local text = describe({ child = child, memory = memory })
        if text == nil then
            text = {}
        elseif lib.spaces[text] ~= nil then
            return lib.spaces[text]
        end
        local number = before.known[text]
        if number == nil then
            lib.last_space = (lib.last_space or before.last) + 1
            number = lib.last_space
        end
        lib.spaces[text] = number
        return number
    end

    local function note_spaces()
        kvferry_routelib_spaces = { last = lib.last_space or spaces_before().last, known = lib.spaces }
    end

    -- Making routes.

    local function define_constructor(name)
        _G["route_" .. name] = function(args)
            local where = lib.place(1)
            return setmetatable({
                name = name,
                title = "route_" .. name,
                args = lib.check_table(where, "route_" .. name, args or {}),
                where = where,
            }, Route)
        end
    end

    function register_route_handlers(names)
        local where = lib.place(1)
        for _, name in ipairs(lib.check_table(where, "register_route_handlers", names)) do
            lib.handlers[name] = { is_custom = true, where = where }
            define_constructor(name)
        end
    end

    local function is_route(value)
        return getmetatable(value) == Route
    end

    -- Children.

    local configure

    local function pool_leaf(name)
        return { leaf = "pool", name = name }
    end

    local function resolve_name(route, argument, name)
        if name == "internal" or lib.pools[name] ~= nil then
            return pool_leaf(name)
        end
        local set = lib.sets[name]
        if set == nil then
            lib.fail(route.where, "%s: %s: there is no pool or set %s (pools: %s; sets: %s)",
                     route.title, argument, name, lib.list(lib.pools), lib.list(lib.sets))
        end
        local members = {}
        for member, pool_name in pairs(set) do
            members[member] = pool_leaf(pool_name)
        end
        return members
    end

    local resolve

    -- One route for each of the children that child_wrap names.
    local function unwrap(inner, ctx)
        local args = lib.merge(inner.args)
        local children = resolve(inner, "child_wrap", args.child_wrap, ctx)
        args.child_wrap = nil
        if children.leaf ~= nil then
            lib.fail(inner.where, "%s: child_wrap needs a set or a table of children", inner.title)
        end
        local routes = {}
        for key, child in pairs(children) do
            local one = setmetatable(lib.merge(inner, { args = lib.merge(args, { child = child }) }),
                                     Route)
            routes[key] = { leaf = "route", node = configure(one, ctx) }
        end
        return routes
    end

    -- A leaf, or a table of leaves.
    function resolve(route, argument, value, ctx)
        if type(value) == "string" then
            return resolve_name(route, argument, value)
        elseif type(value) ~= "table" then
            lib.fail(route.where, "%s: %s must be a pool, a route, or a table of these, not %s",
                     route.title, argument, tostring(value))
        elseif is_route(value) then
            if value.args.child_wrap ~= nil then
                return unwrap(value, ctx)
            end
            return { leaf = "route", node = configure(value, ctx) }
        elseif value.leaf ~= nil then
            return value
        end
        local children = {}
        for key, each in pairs(value) do
            children[key] = resolve(route, argument, each, ctx)
        end
        return children
    end

    function lib.only_child(route, argument, child)
        if child.leaf == nil then
            lib.fail(route.where, "%s: %s must be one child, not several", route.title, argument)
        end
        return child
    end

    -- The children as a list; `keys` beside it unless they have come as one. Sets in lists are unfolded.
    function lib.ordered_children(route, argument, children)
        local ordered = { list = {}, keys = {} }
        local has_names = false
        local function add(key, child)
            if child.leaf ~= nil then
                ordered.list[#ordered.list + 1] = child
                ordered.keys[#ordered.keys + 1] = tostring(key)
                return
            end
            for _, inner in ipairs(lib.sorted_keys(child)) do
                add(inner, child[inner])
            end
        end
        if children.leaf ~= nil then
            add(1, children)
        else
            for _, key in ipairs(lib.sorted_keys(children)) do
                has_names = has_names or type(key) == "string"
                add(key, children[key])
            end
        end
        if #ordered.list == 0 then
            lib.fail(route.where, "%s: %s: there are none", route.title, argument)
        end
        if not has_names then
            ordered.keys = nil
        end
        return ordered
    end

    -- Nodes.

    local function resolve_arguments(route, args, ctx)
        local resolved = {}
        for name, value in pairs(args) do
            if type(name) == "string" and name:sub(1, 5) == "child" then
                resolved[name] = resolve(route, name, value, ctx)
            else
                resolved[name] = value
            end
        end
        return resolved
    end

    local function configure_custom(route, ctx)
        local conf = _G["route_" .. route.name .. "_conf"]
        if type(conf) ~= "function" then
            lib.fail(route.where, "%s: there is no function %s_conf", route.title, route.title)
        end
        local args = conf(lib.merge(route.args), ctx)
        if type(args) ~= "table" then
            lib.fail(route.where, "%s: %s_conf must return a table, not %s", route.title, route.title,
                     type(args))
        end
        return {
            custom = route.name, args = resolve_arguments(route, args, ctx), label = ctx:label(),
            cmd = ctx:cmd(), where = route.where,
        }
    end

    function configure(route, ctx)
        local handler = lib.handlers[route.name]
        if route.args.child_wrap ~= nil then
            lib.fail(route.where, "%s: child_wrap makes several routes, where only one can be",
                     route.title)
        end
        if handler.is_custom then
            return configure_custom(route, ctx)
        end
        return lib.configure_builtin(route, handler, resolve_arguments(route, route.args, ctx), ctx)
    end

    local function configure_entry(where, what, label, command, value)
        if not is_route(value) then
            lib.fail(where, "%s: %s is no route", what, label)
        end
        return configure(value, setmetatable({ label_text = label, command = command }, Context))
    end

    -- Routers.

    local function command_number(where, what, name)
        if math.type(name) == "integer" then
            return name
        elseif name == "all" then
            return mcp.CMD_ANY_STORAGE
        end
        local number = mcp["CMD_" .. tostring(name):upper()]
        if number == nil then
            lib.fail(where, "%s: there is no command %s", what, tostring(name))
        end
        return number
    end

    function cmdmap(map)
        local where = lib.place(1)
        return setmetatable({ map = lib.check_table(where, "cmdmap", map), where = where }, Commands)
    end

    function routes(spec)
        local where = lib.place(1)
        lib.check_table(where, "routes", spec)
        if spec.map == nil and spec.cmap == nil and spec.default == nil then
            lib.fail(where, "routes: needs map, cmap or default")
        end
        for _, before in ipairs(lib.routers) do
            if before.spec.tag == spec.tag then
                lib.warn(where, "routes: these replace those of %s, which are for the same %s",
                         before.where, spec.tag and "tag " .. spec.tag or "listeners")
            end
        end
        lib.routers[#lib.routers + 1] = { spec = spec, where = where }
    end

    local function configure_commands(where, what, label, commands)
        local nodes = {}
        for _, name in ipairs(lib.sorted_keys(commands)) do
            local number = command_number(where, what, name)
            nodes[number] = configure_entry(where, what, label or tostring(name), number,
                                            commands[name])
        end
        return nodes
    end

    local function configure_router(router)
        local spec, where = router.spec, router.where
        local made = { tag = spec.tag, conf = spec.conf, where = where }
        if spec.map ~= nil then
            made.map = {}
            for _, prefix in ipairs(lib.sorted_keys(lib.check_table(where, "routes: map", spec.map))) do
                local value = spec.map[prefix]
                if getmetatable(value) == Commands then
                    made.map[prefix] = {
                        commands = configure_commands(value.where, "cmdmap", prefix, value.map),
                    }
                else
                    made.map[prefix] = {
                        node = configure_entry(where, "routes: map", tostring(prefix),
                                               mcp.CMD_ANY_STORAGE, value),
                    }
                end
            end
        end
        if spec.cmap ~= nil then
            local commands = getmetatable(spec.cmap) == Commands and spec.cmap.map or spec.cmap
            made.cmap = configure_commands(where, "routes: cmap", nil,
                                           lib.check_table(where, "routes: cmap", commands))
        end
        if spec.default ~= nil then
            made.default = configure_entry(where, "routes", "default", mcp.CMD_ANY_STORAGE,
                                           spec.default)
        end
        return made
    end

    function mcp_config_pools()
        local file = mcp.start_arg
        if type(file) ~= "string" then
            lib.fail("routelib", "proxy_arg must name the file with pools and routes")
        end
        dofile(file)
        if #lib.routers == 0 then
            lib.fail(file, "there are no routes: call routes{}")
        end
        local made = { pools = lib.make_pools(), routers = {} }
        for i, router in ipairs(lib.routers) do
            made.routers[i] = configure_router(router)
        end
        note_counters()
        note_spaces()
        return made
    end

    -- In workers.

    local build

    local function build_leaf(leaf, made_pools)
        if leaf.leaf == "pool" then
            return leaf.name == "internal" and mcp.internal_handler or made_pools[leaf.name]
        end
        return build(leaf.node, made_pools)
    end

    local function build_children(value, made_pools)
        if value.leaf ~= nil then
            return build_leaf(value, made_pools)
        end
        local children = {}
        for key, each in pairs(value) do
            children[key] = build_children(each, made_pools)
        end
        return children
    end

    local function build_custom(node, made_pools)
        local start = _G["route_" .. node.custom .. "_start"]
        if type(start) ~= "function" then
            lib.fail(node.where, "route_%s: there is no function route_%s_start", node.custom,
                     node.custom)
        end
        for name, value in pairs(node.args) do
            if type(name) == "string" and name:sub(1, 5) == "child" then
                node.args[name] = build_children(value, made_pools)
            end
        end
        local fgen = mcp.funcgen_new()
        local ctx = setmetatable({ label_text = node.label, command = node.cmd }, Context)
        start(node.args, ctx, fgen)
        return fgen
    end

    function build(node, made_pools)
        if node.custom ~= nil then
            return build_custom(node, made_pools)
        end
        local children = {}
        for i, leaf in ipairs(node.fields.children) do
            children[i] = build_leaf(leaf, made_pools)
        end
        node.fields.children = children
        return native.route(node.kind, node.fields)
    end

    local function build_commands(nodes, made_pools)
        local commands = {}
        for number, node in pairs(nodes) do
            commands[number] = build(node, made_pools)
        end
        return commands
    end

    local function build_router(router, made_pools)
        local default = router.default and build(router.default, made_pools)
        if router.map == nil and router.cmap == nil then
            return default
        end
        local spec = lib.merge(router.conf, { default = default })
        if router.map ~= nil then
            spec.map = {}
            for prefix, entry in pairs(router.map) do
                spec.map[prefix] = entry.node and build(entry.node, made_pools) or
                                   build_commands(entry.commands, made_pools)
            end
        end
        spec.cmap = router.cmap and build_commands(router.cmap, made_pools)
        local done, made = pcall(mcp.router_new, spec)
        if not done then
            lib.fail(router.where, "routes: %s", made)
        end
        return made
    end

    function mcp_config_routes(made)
        for _, router in ipairs(made.routers) do
            mcp.attach(mcp.CMD_ANY_STORAGE, build_router(router, made.pools), router.tag)
        end
    end

    for name in pairs(lib.handlers) do
        define_constructor(name)
    end
end
