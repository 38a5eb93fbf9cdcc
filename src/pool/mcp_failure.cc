#include "pool/mcp_failure.h"

namespace kvferry::pool {

std::string_view mcp_failure_word(McpFailure failure) noexcept {
  switch (failure) {
    case McpFailure::Timeout:
      return "timeout";
    case McpFailure::Disconnected:
      return "disconnected";
    case McpFailure::ClosedSock:
      return "closedsock";
    case McpFailure::Connecting:
      return "connecting";
    case McpFailure::ConnTimeout:
      return "conntimeout";
    case McpFailure::ReadValidate:
      return "readvalidate";
    case McpFailure::BadValidate:
      return "badvalidate";
    case McpFailure::Writing:
      return "writing";
    case McpFailure::Reading:
      return "reading";
    case McpFailure::Parsing:
      return "parsing";
    case McpFailure::UnhandledReply:
      return "unhandledres";
    case McpFailure::MissingEnd:
      return "missingend";
    case McpFailure::TrailingData:
      return "trailingdata";
    case McpFailure::InvalidProtocol:
      return "invalidprotocol";
    case McpFailure::OutOfMemory:
      return "outofmemory";
  }
  return "unknown";
}

}  // namespace kvferry::pool
