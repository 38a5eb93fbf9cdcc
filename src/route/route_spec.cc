#include "route/route_spec.h"

namespace kvferry::route {

std::string counter_name(const RouteSpec& spec, RouteEvent event) {
  if (spec.counter.empty()) {
    return {};
  }
  switch (event) {
    case RouteEvent::Repeat:
      return spec.kind == RouteKind::Failover || spec.kind == RouteKind::ZoneFailover
                 ? spec.counter
                 : std::string();
    case RouteEvent::Refused:
      return spec.kind == RouteKind::RateLimit ? spec.counter : std::string();
    case RouteEvent::Hit:
      return spec.kind == RouteKind::NearCache ? spec.counter + "_hits" : std::string();
    case RouteEvent::Miss:
      return spec.kind == RouteKind::NearCache ? spec.counter + "_misses" : std::string();
    case RouteEvent::Joined:
      return spec.kind == RouteKind::Coalesce ? spec.counter + "_joined" : std::string();
  }
  return {};
}

}  // namespace kvferry::route
