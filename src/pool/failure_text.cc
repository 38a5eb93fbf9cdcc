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
    case FailureKind::Handshake:
      return "handshake";
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
    case FailureKind::Handshake:
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
    case FailureKind::Handshake:
      return "could not connect to backend: " + std::string(failure.detail);
  }
  return "backend failure";
}

/// The kind, and what happened; both as docs of the proxy list them.
std::string redis_reason(const PoolOptions& options, const Failure& failure) {
  constexpr std::string_view kMayHaveRun = "; the command may have run";
  switch (failure.kind) {
    case FailureKind::Timeout:
      return "TIMEOUT kvferry: " + reason(options, failure) + std::string(kMayHaveRun);
    case FailureKind::Closed:
      return failure.may_have_run
                 ? "UNAVAIL kvferry: connection lost after the command was sent; it may have run"
                 : "UNAVAIL kvferry: connection lost before the command was sent";
    case FailureKind::BadReply:
      return "BADREPLY kvferry: backend reply was not valid RESP; connection closed";
    case FailureKind::Overload:
      return "OVERLOAD kvferry: backend queue is full (" + std::to_string(options.max_inflight) +
             " calls)";
    case FailureKind::Unresolved:
      return "UNAVAIL kvferry: could not connect to backend: its name has no address";
    case FailureKind::ConnectTimeout:
      return "UNAVAIL kvferry: could not connect to backend: no connection within " +
             std::to_string(options.connect_timeout.count()) + " ms";
    case FailureKind::ConnectRefused:
    case FailureKind::Handshake:
    case FailureKind::Down:
      return "UNAVAIL kvferry: " + reason(options, failure);
    case FailureKind::Draining:
      return "UNAVAIL kvferry: " + reason(options, failure) +
             std::string(failure.may_have_run ? kMayHaveRun : "");
  }
  return "UNAVAIL kvferry: backend failure";
}

std::string redis_failure_line(const PoolOptions& options, const std::string& label,
                               const Failure& failure) {
  if (options.error_style == ErrorStyle::Twemproxy) {
    return "-ERR " + std::generic_category().message(twemproxy_error(failure)) + "\r\n";
  }
  return "-" + redis_reason(options, failure) + redis_place(options, label) + "\r\n";
}

}  // namespace

std::string redis_place(const PoolOptions& options, const std::string& label) {
  switch (options.redis.error_detail) {
    case ErrorDetail::None:
      return {};
    case ErrorDetail::Pool:
      return " (pool " + options.name + ")";
    case ErrorDetail::Full:
      break;
  }
  return " (pool " + options.name + (label.empty() ? "" : ", backend " + label) + ")";
}

std::string failure_line(const PoolOptions& options, const std::string& label,
                         const Failure& failure) {
  if (options.protocol == Protocol::Redis) {
    return redis_failure_line(options, label, failure);
  }
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
