// The version of the program.
#pragma once

#include <string_view>

namespace kvferry::app {

/// As project(VERSION) in CMakeLists.txt says it.
inline constexpr std::string_view kVersion = KVFERRY_VERSION;

/// What clients are told: libraries read three numbers off its front and choose their commands by
/// them, so it begins with the memcached release whose behaviour is offered.
inline constexpr std::string_view kProtocolVersion = "1.6.45-kvferry-" KVFERRY_VERSION;

}  // namespace kvferry::app
