// AdminServer: HTTP for operators, on the control thread's loop.
//
// "/" lists the routes and "/healthz" tells load balancers whether to send traffic; everything else
// is registered with add_route(). A bearer token, when set, guards everything but /healthz.
//
// Limits:    connections_max connections; each request within idle_timeout of the one before it;
//            sizes of http/request.h; a connection whose answers are not read is not read either.
// Errors:    broken requests get their 4xx or 5xx and the connection is closed.
// Threads:   that of the loop. Handlers run there, so they must be quick.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/metrics_model.h"
#include "base/clock.h"
#include "base/result.h"
#include "net/address.h"
#include "net/loop.h"
#include "protocol/http/request.h"
#include "protocol/http/response.h"

namespace kvferry::admin {

struct AdminOptions {
  net::Address listen;
  std::string token = {};  // Empty: no token is asked for.
  std::size_t connections_max = 64;
  base::Millis idle_timeout{30000};
};

/// Unread output of a connection from which further requests on it wait.
inline constexpr std::size_t kAdminOutputBytesMax = std::size_t{64} * 1024;

/// Whether `given` is the token. Takes the same time wherever they differ.
bool is_same_token(std::string_view given, std::string_view token) noexcept;

class AdminServer final : private net::AcceptHandler {
 public:
  using Handler = std::function<http::Response(const http::Request&)>;

  /// Listens at once. `loop` must outlive the server. Errors: those of Loop::listen().
  static base::Result<std::unique_ptr<AdminServer>> open(net::Loop& loop,
                                                         const AdminOptions& options);
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;
  ~AdminServer();

  /// Answers `method` (upper case) on exactly `path`. GET answers HEAD too. `help` stands in the
  /// list of "/".
  void add_route(std::string method, std::string path, Handler handler, std::string help = {});

  /// /healthz answers 503 from now on, or 200 again.
  void set_draining(bool is_draining) noexcept { is_draining_ = is_draining; }

  /// Closes the listener, so that the address is free; established connections go on. A handler
  /// must not destroy the server it runs on: it calls this and leaves the rest for a later turn.
  void stop_listening() noexcept { listener_.reset(); }

  /// The bound address; not after stop_listening().
  const net::Address& address() const noexcept { return listener_->address(); }
  std::size_t connections() const noexcept { return connections_.size(); }
  /// Connections closed at once because connections_max were open.
  std::uint64_t rejected() const noexcept { return rejected_; }

 private:
  class Connection;
  struct Route {
    std::string method;
    std::string path;
    Handler handler;
    std::string help;
  };

  AdminServer(net::Loop& loop, AdminOptions options);
  void on_accepted(net::StreamPtr stream, const net::Address& peer) override;
  void forget(Connection& connection);

  http::Response answer(const http::Request& request) const;
  http::Response answer_route(const http::Request& request) const;
  std::string list_routes() const;
  bool is_allowed(const http::Request& request) const noexcept;

  net::Loop& loop_;
  const AdminOptions options_;
  std::vector<Route> routes_;
  std::list<Connection> connections_;
  std::uint64_t rejected_ = 0;
  bool is_draining_ = false;
  std::unique_ptr<net::Listener> listener_;
};

/// Registers /metrics and /stats.json, which ask `collect` for the numbers of the moment.
void add_state_routes(AdminServer& server, std::function<MetricsModel()> collect);

}  // namespace kvferry::admin
