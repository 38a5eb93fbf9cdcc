#include "pool/failure_text.h"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

namespace kvferry::pool {

std::string_view failure_name(FailureKind kind) noexcept {
  switch (kind) {
    case FailureKind::Unresolved:
      return "unresolved";
    case FailureKind::ConnectRefused:
      return "connect_refused";
    case FailureKind::ConnectTimeout:
      return "connect_timeout";
    case FailureKind::Timeout:
      return "timeout";
    case FailureKind::Closed:
      return "closed";
    case FailureKind::BadReply:
      return "bad_reply";
    case FailureKind::Overload:
      return "overload";
    case FailureKind::Down:
      return "down";
    case FailureKind::Draining:
      return "draining";
  }
  return "unknown";
}

namespace {

/// The errno whose text twemproxy would write for this kind of failure.
int twemproxy_error(const Failure& failure) {
  if (failure.error != 0) {
    return failure.error;
  }
  switch (failure.kind) {
    case FailureKind::Timeout:
    case FailureKind::ConnectTimeout:
      return ETIMEDOUT;
    case FailureKind::Closed:
      return ECONNRESET;
    case FailureKind::BadReply:
      return EINVAL;
    case FailureKind::Overload:
      return ENOMEM;
    case FailureKind::Unresolved:
    case FailureKind::ConnectRefused:
    case FailureKind::Down:
    case FailureKind::Draining:
      return ECONNREFUSED;
  }
  return ECONNREFUSED;
}

std::string reason(const PoolOptions& options, const Failure& failure) {
  const auto after = [&](base::Millis limit) { return std::to_string(limit.count()) + " ms"; };
  switch (failure.kind) {
    case FailureKind::Unresolved:
      return "the name of the backend has no address";
    case FailureKind::ConnectRefused:
      if (failure.error == EPROTO) {
        return "could not connect to backend: TLS failed";
      }
      return "could not connect to backend: " +
             std::generic_category().message(failure.error == 0 ? ECONNREFUSED : failure.error);
    case FailureKind::ConnectTimeout:
      return "could not connect to backend within " + after(options.connect_timeout);
    case FailureKind::Timeout:
      return "no answer within " + after(options.timeout.value_or(base::Millis(0)));
    case FailureKind::Closed:
      return "connection to backend lost";
    case FailureKind::BadReply:
      return "backend reply was not valid";
    case FailureKind::Overload:
      return "backend queue is full";
    case FailureKind::Down:
      return "no usable backend";
    case FailureKind::Draining:
      return "backend was removed";
  }
  return "backend failure";
}

}  // namespace

std::string failure_line(const PoolOptions& options, const std::string& label,
                         const Failure& failure) {
  if (options.error_style == ErrorStyle::Twemproxy) {
    return "SERVER_ERROR " + std::generic_category().message(twemproxy_error(failure)) + "\r\n";
  }
  std::string line = "SERVER_ERROR kvferry: " + reason(options, failure);
  if (failure.may_have_run) {
    line += "; the command may have run";
  }
  line += " (pool " + options.name;
  if (!label.empty()) {
    line += ", backend " + label;
  }
  return line + ")\r\n";
}

}  // namespace kvferry::pool
