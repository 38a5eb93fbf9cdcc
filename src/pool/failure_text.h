// The error lines that a pool makes itself, in the wording that the pool asks for.
//
// Kvferry style says what failed, where, and whether the command may have run; twemproxy style is
// what twemproxy writes: the text of a system error. Clients of Redis get the same facts as an
// error of their protocol, whose first word is the kind.
#pragma once

#include <string>
#include <string_view>

#include "pool/options.h"
#include "pool/stats.h"

namespace kvferry::pool {

/// What is told about one failed call.
struct Failure {
  FailureKind kind = FailureKind::Down;
  int error = 0;                // errno of the cause, 0 when there is none.
  bool may_have_run = false;    // Bytes of the request may have reached the backend.
  std::string_view evidence{};  // What the backend sent, of BadReply and Handshake; for the log,
                                // valid during the call.
  std::string_view detail{};    // Of Handshake: which part of it, a constant (pool/greeting.h).
};

/// One line, with its line end, in the protocol of the pool. `label` is the backend's.
std::string failure_line(const PoolOptions& options, const std::string& label,
                         const Failure& failure);

/// The parenthesis at the end of an error line for clients of Redis, a blank before it; empty where
/// the pool wants none.
std::string redis_place(const PoolOptions& options, const std::string& label);

}  // namespace kvferry::pool
