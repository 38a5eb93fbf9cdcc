-- A native route of the route library.
pools{
    main = { backends = { "127.0.0.1:@first@", "127.0.0.1:@second@" } },
}
routes{
    default = route_direct{ child = "main" },
}
