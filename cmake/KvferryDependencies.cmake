# Libraries we link, each with its reason in docs/dependencies.md.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(fmt REQUIRED)
pkg_check_modules(uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(cares REQUIRED IMPORTED_TARGET libcares)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
# A script calls some twenty functions of Lua a request. Linked into the program they are reached without the jump through
# a table that each call into a shared library takes.
pkg_check_modules(lua REQUIRED lua5.4)
find_library(KVFERRY_LUA_ARCHIVE NAMES liblua5.4.a REQUIRED)
add_library(kvf_liblua INTERFACE)
target_include_directories(kvf_liblua SYSTEM INTERFACE ${lua_INCLUDE_DIRS})
# Modules of scripts that are written in C expect these functions from whoever loads them.
target_link_options(kvf_liblua INTERFACE "LINKER:--export-dynamic-symbol=lua_*" "LINKER:--export-dynamic-symbol=luaL_*")
target_link_libraries(kvf_liblua INTERFACE ${KVFERRY_LUA_ARCHIVE} m ${CMAKE_DL_LIBS})
if(KVFERRY_TESTS)
  find_package(GTest REQUIRED)
endif()
if(KVFERRY_BENCH)
  find_package(benchmark REQUIRED)
endif()
