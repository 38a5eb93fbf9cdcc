#include "protocol/memcache/request.h"

namespace kvferry::memcache {

std::string_view error_line(RequestError error, ErrorWords words) noexcept {
  const bool is_store = words == ErrorWords::Store;
  switch (error) {
    case RequestError::UnknownCommand:
      return "ERROR\r\n";
    case RequestError::BadLine:
      return is_store ? "CLIENT_ERROR bad command line format\r\n"
                      : "CLIENT_ERROR parsing request\r\n";
    case RequestError::KeyTooLong:
      return is_store ? "CLIENT_ERROR bad command line format\r\n"
                      : "CLIENT_ERROR key too long\r\n";
    case RequestError::LineTooLong:
      return "CLIENT_ERROR line too long\r\n";
    case RequestError::BadDataChunk:
      return "CLIENT_ERROR bad data chunk\r\n";
    case RequestError::TooManyTokens:
      return "CLIENT_ERROR options flags are too long\r\n";
    case RequestError::BadFlag:
      return is_store ? "CLIENT_ERROR invalid flag\r\n" : "CLIENT_ERROR parsing request\r\n";
    case RequestError::TooLarge:
      return "SERVER_ERROR object too large for cache\r\n";
    case RequestError::None:
    case RequestError::NotText:
    case RequestError::Unterminated:
      break;
  }
  return {};
}

}  // namespace kvferry::memcache
