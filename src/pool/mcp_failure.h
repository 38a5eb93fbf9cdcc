// Why a connection to a backend of a script failed, in the words of memcached's built-in proxy.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvferry::pool {

enum class McpFailure : std::uint8_t {
  Timeout,          // Silence while answers were due.
  Disconnected,     // The peer closed the connection.
  ClosedSock,       // Bytes although nothing was due.
  Connecting,       // No connection could be made.
  ConnTimeout,      // None was made in time.
  ReadValidate,     // No answer, or none that is one, to the question for the version.
  BadValidate,      // Another answer to it.
  Writing,          // A system call failed.
  Reading,          // A system call failed.
  Parsing,          // An answer that is none.
  UnhandledReply,   // An answer that no routed request has.
  MissingEnd,       // More or less than one value in an answer.
  TrailingData,     // Bytes behind the last answer that was due.
  InvalidProtocol,  // The server did not understand a request.
  OutOfMemory,      // The answer may not be kept.
};
inline constexpr std::size_t kMcpFailures = static_cast<std::size_t>(McpFailure::OutOfMemory) + 1;

/// The word in the log line.
std::string_view mcp_failure_word(McpFailure failure) noexcept;

/// Whether a connection that ends like this has been a connection: only such failures can flap.
constexpr bool is_flap_failure(McpFailure failure) noexcept {
  return failure == McpFailure::Timeout || failure == McpFailure::Disconnected ||
         failure == McpFailure::Writing || failure == McpFailure::Reading;
}

/// What a call is answered with when its backend has failed.
inline constexpr std::string_view kMcpFailureLine = "SERVER_ERROR backend failure\r\n";

/// As many of the bytes that could not be read are logged.
inline constexpr std::size_t kMcpUnreadBytesMax = 100;

}  // namespace kvferry::pool
