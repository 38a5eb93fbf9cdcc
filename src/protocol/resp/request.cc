#include "protocol/resp/request.h"

namespace kvferry::resp {

namespace {

std::string_view text_of(RequestError error) {
  switch (error) {
    case RequestError::None:
    case RequestError::Browser:
      return {};
    case RequestError::BadCount:
      return "invalid multibulk length";
    case RequestError::BadLength:
      return "invalid bulk length";
    case RequestError::NoBulk:
      return "expected '$', got ";
    case RequestError::CountLineTooLong:
      return "too big mbulk count string";
    case RequestError::LengthLineTooLong:
      return "too big bulk count string";
    case RequestError::InlineTooLong:
      return "too big inline request";
    case RequestError::UnbalancedQuotes:
      return "unbalanced quotes in request";
    case RequestError::UnknownClientCount:
      return "unauthenticated multibulk length";
    case RequestError::UnknownClientLength:
      return "unauthenticated bulk length";
    case RequestError::NoLineEnd:
      return "expected CRLF after bulk";
  }
  return {};
}

}  // namespace

void append_error_line(const ParseFailure& failure, std::string& line) {
  const std::string_view text = text_of(failure.error);
  if (text.empty()) {
    return;
  }
  line.append("-ERR Protocol error: ").append(text);
  if (failure.error == RequestError::NoBulk) {
    // An error is one line, whatever was found.
    const bool ends_lines = failure.found == '\r' || failure.found == '\n';
    line.append({'\'', ends_lines ? ' ' : failure.found, '\''});
  }
  line.append("\r\n");
}

}  // namespace kvferry::resp
