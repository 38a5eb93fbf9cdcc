#include "admin/admin_server.h"

#include <algorithm>
#include <utility>

#include "admin/connection.h"
#include "admin/metrics_writer.h"
#include "base/check.h"

namespace kvferry::admin {

namespace {

constexpr std::string_view kBearer = "Bearer ";
constexpr std::string_view kHealthPath = "/healthz";

/// A page of some site may make a browser send POST here; it cannot hide where it came from.
bool is_from_elsewhere(const http::Request& request) noexcept {
  const auto origin = request.field("origin");
  if (!origin.has_value()) {
    return false;
  }
  const std::string_view host = request.field("host").value_or("");
  return host.empty() || !origin->ends_with(host) ||
         !origin->substr(0, origin->size() - host.size()).ends_with("://");
}

/// HEAD is answered by the route of GET.
std::string_view route_method(const http::Request& request) noexcept {
  return request.method == "HEAD" ? std::string_view("GET") : request.method;
}

}  // namespace

bool is_same_token(std::string_view given, std::string_view token) noexcept {
  unsigned difference = given.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = token.empty() ? '\0' : token[i % token.size()];
    difference |= static_cast<unsigned char>(given[i] ^ expected);
  }
  return difference == 0;
}

AdminServer::AdminServer(net::Loop& loop, AdminOptions options)
    : loop_(loop), options_(std::move(options)) {}

AdminServer::~AdminServer() = default;

base::Result<std::unique_ptr<AdminServer>> AdminServer::open(net::Loop& loop,
                                                             const AdminOptions& options) {
  std::unique_ptr<AdminServer> server(new AdminServer(loop, options));
  // One listener only, so a second process on the port is a mistake that should be seen.
  const net::ListenOptions listen{.reuse_port = false};
  auto listener = loop.listen(options.listen, listen, *server);
  if (!listener) {
    return std::move(listener).error();
  }
  server->listener_ = std::move(listener).value();
  server->add_route(
      "GET", "/",
      [raw = server.get()](const http::Request&) {
        return http::Response{.body = "kvferry admin\n\n" + raw->list_routes()};
      },
      "this list");
  server->add_route(
      "GET", std::string(kHealthPath),
      [raw = server.get()](const http::Request&) {
        return raw->is_draining_ ? http::Response{.status = 503, .body = "draining\n"}
                                 : http::Response{.body = "ok\n"};
      },
      "200 while traffic is welcome, 503 while draining");
  return server;
}

void AdminServer::add_route(std::string method, std::string path, Handler handler,
                            std::string help) {
  KVF_CHECK(path.starts_with('/') && handler != nullptr);
  routes_.push_back({.method = std::move(method),
                     .path = std::move(path),
                     .handler = std::move(handler),
                     .help = std::move(help)});
}

void AdminServer::on_accepted(net::StreamPtr stream, const net::Address& /*peer*/) {
  if (connections_.size() >= options_.connections_max) {
    ++rejected_;
    return;
  }
  connections_.emplace_back(*this, std::move(stream));
}

void AdminServer::forget(Connection& connection) {
  const auto found = std::ranges::find_if(
      connections_, [&](const Connection& one) { return &one == &connection; });
  KVF_CHECK(found != connections_.end());
  connections_.erase(found);
}

bool AdminServer::is_allowed(const http::Request& request) const noexcept {
  if (options_.token.empty() || request.path == kHealthPath) {
    return true;
  }
  const std::string_view given = request.field("authorization").value_or("");
  return given.starts_with(kBearer) && is_same_token(given.substr(kBearer.size()), options_.token);
}

std::string AdminServer::list_routes() const {
  std::string text;
  for (const Route& route : routes_) {
    text += route.method + " " + route.path;
    if (!route.help.empty()) {
      text += "  " + route.help;
    }
    text += '\n';
  }
  return text;
}

http::Response AdminServer::answer(const http::Request& request) const {
  if (!is_allowed(request)) {
    return {.status = 401,
            .body = "this needs the admin token: Authorization: Bearer TOKEN\n",
            .fields = {{"WWW-Authenticate", "Bearer"}}};
  }
  if (route_method(request) != "GET" && is_from_elsewhere(request)) {
    return {.status = 403, .body = "requests of pages of other sites are refused\n"};
  }
  return answer_route(request);
}

http::Response AdminServer::answer_route(const http::Request& request) const {
  std::string allowed;
  for (const Route& route : routes_) {
    if (route.path != request.path) {
      continue;
    }
    if (route.method == route_method(request)) {
      return route.handler(request);
    }
    allowed += (allowed.empty() ? "" : ", ") + route.method;
    allowed += route.method == "GET" ? ", HEAD" : "";
  }
  if (!allowed.empty()) {
    return {.status = 405,
            .body = "this path answers " + allowed + "\n",
            .fields = {{"Allow", allowed}}};
  }
  return {.status = 404, .body = "no such path; there are\n\n" + list_routes()};
}

void add_state_routes(AdminServer& server, std::function<MetricsModel()> collect) {
  server.add_route(
      "GET", "/metrics",
      [collect](const http::Request&) {
        return http::Response{.content_type = std::string(kMetricsContentType),
                              .body = compose_metrics(collect())};
      },
      "metrics for Prometheus");
  server.add_route(
      "GET", "/stats.json",
      [collect = std::move(collect)](const http::Request&) {
        return http::Response{.content_type = "application/json",
                              .body = compose_state_json(collect())};
      },
      "the same state as JSON");
}

}  // namespace kvferry::admin
