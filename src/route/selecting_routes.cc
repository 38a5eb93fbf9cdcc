#include "route/selecting_routes.h"

#include <algorithm>

namespace kvferry::route {

void SelectingRoute::send(call::Call& call, const memcache::Request& request) {
  const RouteChild* child = select(request.command, request.key);
  if (child == nullptr) {
    answer_line(call, request, kNoRouteLine, memcache::ReplyCode::ServerError);
    return;
  }
  pass(call, request, *child);
}

PrefixRoute::PrefixRoute(const RouteSetup& setup, const std::vector<std::string>& prefixes)
    : SelectingRoute(setup) {
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    by_prefix_.emplace(prefixes[i], &children()[i]);
    sizes_.push_back(prefixes[i].size());
  }
  std::sort(sizes_.begin(), sizes_.end(), std::greater<>());
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
  if (children().size() > prefixes.size()) {
    fallback_ = &children().back();
  }
}

const RouteChild* PrefixRoute::select(memcache::Command /*command*/, std::string_view key) const {
  for (const std::size_t size : sizes_) {
    if (key.size() < size) {
      continue;
    }
    if (const auto found = by_prefix_.find(key.substr(0, size)); found != by_prefix_.end()) {
      return found->second;
    }
  }
  return fallback_;
}

CommandRoute::CommandRoute(const RouteSetup& setup, const std::vector<memcache::Command>& commands)
    : SelectingRoute(setup) {
  if (children().size() > commands.size()) {
    by_command_.fill(&children().back());
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    by_command_[static_cast<std::size_t>(commands[i])] = &children()[i];
  }
}

const RouteChild* CommandRoute::select(memcache::Command command, std::string_view /*key*/) const {
  return by_command_[static_cast<std::size_t>(command)];
}

}  // namespace kvferry::route
