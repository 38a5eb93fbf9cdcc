// One admin connection: requests in, answers out, in order.
//
//   Reading --answers unread beyond the limit--> Waiting --drained--> Reading
//      |                                            |
//      +---- error, close asked, end of input ------+---> Closing (answers go out, nothing is read)
//
// Private to admin_server.cc, and a header so that each of the two files stays small.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "admin/admin_server.h"
#include "net/stream.h"
#include "net/timer.h"

namespace kvferry::admin {

class AdminServer::Connection final : public net::StreamHandler {
 public:
  Connection(AdminServer& server, net::StreamPtr stream);

  void on_data(std::string_view bytes) override;
  void on_end() override;
  void on_closed(int error) override;
  void on_drained() override;

 private:
  enum class Phase : std::uint8_t { Reading, Waiting, Closing };

  void on_idle() { server_.forget(*this); }
  void answer_requests();
  /// False when the request that is being received is not complete.
  bool answer_next();
  void send(const http::Response& response, const http::ResponseFraming& framing);
  void close_after_answers();
  void push_deadline();

  AdminServer& server_;
  net::StreamPtr stream_;
  net::Timer deadline_;
  http::RequestParser parser_;
  std::string input_;  // Not answered yet; at most one request and one receive.
  Phase phase_ = Phase::Reading;
  bool has_ended_ = false;      // The peer sends no more.
  bool sent_continue_ = false;  // For the request that is being received.
};

}  // namespace kvferry::admin
