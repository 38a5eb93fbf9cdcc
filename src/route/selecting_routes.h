// Routes that pick one of their children by what the request says.
//
// Source: docs/configuration.md, "Routes". Threads: one worker.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "route/native_route.h"

namespace kvferry::route {

/// What a request gets that no child is for.
inline constexpr std::string_view kNoRouteLine = "SERVER_ERROR no route for this request\r\n";

/// A route that only picks.
class SelectingRoute : public NativeRoute {
 public:
  using NativeRoute::NativeRoute;
  const RouteChild* select(memcache::Command command, std::string_view key) const override = 0;

  void send(call::Call& call, const memcache::Request& request) final;
};

/// By the beginning of the key; the longest one that fits wins.
class PrefixRoute final : public SelectingRoute {
 public:
  /// Child i is for keys that begin with `prefixes[i]`; a further child is for all others.
  PrefixRoute(const RouteSetup& setup, const std::vector<std::string>& prefixes);

  const RouteChild* select(memcache::Command command, std::string_view key) const override;

 private:
  struct TextHash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming): the library's name.
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::unordered_map<std::string, const RouteChild*, TextHash, std::equal_to<>> by_prefix_;
  std::vector<std::size_t> sizes_;  // Of the prefixes, each once, longest first.
  const RouteChild* fallback_ = nullptr;
};

/// By the command.
class CommandRoute final : public SelectingRoute {
 public:
  /// Child i is for `commands[i]`; a further child is for all others.
  CommandRoute(const RouteSetup& setup, const std::vector<memcache::Command>& commands);

  const RouteChild* select(memcache::Command command, std::string_view key) const override;

 private:
  std::array<const RouteChild*, memcache::kCommandCount> by_command_{};
};

/// Answers with a line of its own; has no children.
class ErrorRoute final : public NativeRoute {
 public:
  /// `text` without a line end.
  ErrorRoute(const RouteSetup& setup, std::string_view text)
      : NativeRoute(setup), line_(std::string("SERVER_ERROR ").append(text).append("\r\n")) {}
  void send(call::Call& call, const memcache::Request& request) override {
    answer_line(call, request, line_, memcache::ReplyCode::ServerError);
  }

 private:
  std::string line_;
};

}  // namespace kvferry::route
