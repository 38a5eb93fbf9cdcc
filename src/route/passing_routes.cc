#include "route/passing_routes.h"

namespace kvferry::route {

using call::Call;
using memcache::Command;
using memcache::ReplyCode;
using memcache::Request;

namespace {

constexpr std::size_t kExptimeToken = 4;
constexpr std::string_view kWrongCommandLine = "SERVER_ERROR invalid command for route_ttl\r\n";
constexpr std::string_view kTooLongLine = "SERVER_ERROR request too long for route_ttl\r\n";

}  // namespace

void DirectRoute::send(Call& call, const Request& request) {
  pass(call, request, children().front());
}

void NullRoute::send(Call& call, const Request& request) {
  answer_null(call, request);
}

void RandomRoute::send(Call& call, const Request& request) {
  state_ ^= state_ << 13U;
  state_ ^= state_ >> 7U;
  state_ ^= state_ << 17U;
  pass(call, request, children()[(state_ >> 32U) % children().size()]);
}

bool RateLimitRoute::take_token() {
  const base::SteadyTime now = loop().now();
  if (TokenBucket* own = std::get_if<TokenBucket>(&bucket_)) {
    return own->take(1, now);
  }
  return std::get<std::shared_ptr<SharedTokenBucket>>(bucket_)->take(1, now);
}

void RateLimitRoute::send(Call& call, const Request& request) {
  if (take_token() == fails_until_limit_) {
    host().count(RouteEvent::Refused);
    answer_null(call, request);
    return;
  }
  pass(call, request, children().front());
}

EditError TtlRoute::edit(Command command) {
  if (command != Command::Ms) {
    return edited_.set_token(kExptimeToken, ttl_);
  }
  const EditError error = edited_.replace_flag_token('T', flag_);
  return error == EditError::NoSuchToken ? edited_.add_flag('T', ttl_) : error;
}

void TtlRoute::send(Call& call, const Request& request) {
  const Command command = request.command;
  if (command != Command::Ms && command != Command::Set && command != Command::Add &&
      command != Command::Cas) {
    answer_line(call, request, kWrongCommandLine, ReplyCode::ServerError);
    return;
  }
  edited_.borrow(request);
  if (edit(command) != EditError::None) {
    answer_line(call, request, kTooLongLine, ReplyCode::ServerError);
    return;
  }
  // The parent's own request is for its other children too; this child has to take ours.
  call.shared_request = nullptr;
  const RouteChild& child = children().front();
  if (child.is_route) {
    child.target->send(call, edited_.shown());
  } else {
    keep_value(call, request);
    if (request.quiet || request.noreply) {
      call.quiet = edited_.quietness();
    }
    child.target->send(call, edited_.wire());
  }
  edited_.reset();
}

}  // namespace kvferry::route
