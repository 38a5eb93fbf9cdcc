// Lines of the stream of requests, as `watch proxyreqs` shows them.
//
// Source: docs/protocols.md, "Log streams".
#pragma once

#include <string>
#include <string_view>

#include "route/route_reply.h"
#include "route/route_request.h"

namespace kvferry::lua {

inline constexpr std::size_t kLogRequestBytesMax = 300;
inline constexpr std::size_t kLogDetailBytesMax = 150;
inline constexpr std::size_t kLogMessageBytesMax = 512;

/// What follows `ts=... gid=... `; `reply` may be null.
std::string compose_request_line(const route::RouteReply* reply, const route::RouteRequest* request,
                                 std::string_view detail, int client_fd);
/// A message on one line, cut at kLogMessageBytesMax.
std::string one_line(std::string_view text);

}  // namespace kvferry::lua
