// Greeting: what a fresh connection to a Redis server says before its first call, and what the
// answers mean.
//
//   AUTH [user] password    when the pool has a password
//   HELLO 3                 on lanes of version 3
//   SELECT n                unless n is 0
//
// AUTH comes first so that servers without HELLO (before 6.0) are authenticated nevertheless; such
// a lane stays in version 2, which clients of version 3 can read.
//
// Errors:    refusals are constants: the line of the server may name what clients must not see.
// Threads:   values and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "pool/options.h"
#include "protocol/resp/reply_writer.h"

namespace kvferry::pool {

struct Greeting {
  enum class Step : std::uint8_t { Auth, Hello, Select };

  std::string bytes;  // Empty: nothing is said. Holds the password.
  std::array<Step, 3> steps{};
  std::uint8_t step_count = 0;  // As many replies are expected.

  bool empty() const noexcept { return step_count == 0; }
  friend bool operator==(const Greeting&, const Greeting&) = default;
};

/// `database` is the backend's.
Greeting redis_greeting(const RedisOptions& options, resp::Version version, std::uint32_t database);

/// What greeting_refusal() says when the credentials are wrong, or missing.
inline constexpr std::string_view kCredentialsRejected = "credentials rejected";

/// Why the reply to `step`, which begins with `line`, ends the connection; empty when it does not.
std::string_view greeting_refusal(Greeting::Step step, std::string_view line) noexcept;

}  // namespace kvferry::pool
