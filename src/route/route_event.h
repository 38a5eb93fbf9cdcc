// What routes count.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kvferry::route {

enum class RouteEvent : std::uint8_t {
  Repeat,   // A further try of a failover.
  Refused,  // A request above a limit.
  Hit,      // A read that a near cache has answered.
  Miss,     // One that it has not.
  Joined,   // A read that got the answer of another one.
};
inline constexpr std::size_t kRouteEvents = 5;

}  // namespace kvferry::route
