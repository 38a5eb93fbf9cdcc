# Compiler settings that every target of ours shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Debug checks (KVF_DCHECK) follow NDEBUG, so Release leaves them out.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

find_program(KVFERRY_CCACHE ccache)
if(KVFERRY_CCACHE)
  # Build folders and clones differ in nothing but paths: let them share results.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND};-E;env;CCACHE_NOHASHDIR=1;CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};${KVFERRY_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${CMAKE_CXX_COMPILER_LAUNCHER}")
endif()
find_program(KVFERRY_MOLD mold)
if(KVFERRY_MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()

add_library(kvf_flags INTERFACE)
target_include_directories(kvf_flags INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(kvf_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual $<$<CXX_COMPILER_ID:Clang>:-Wnull-dereference> -Wimplicit-fallthrough
  $<$<BOOL:${KVFERRY_WERROR}>:-Werror>)

if(KVFERRY_SANITIZE)
  # Flow through the whole tree, libraries of tests included, or reports lose their stacks.
  add_compile_options(-fsanitize=${KVFERRY_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${KVFERRY_SANITIZE})
endif()
if(KVFERRY_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
