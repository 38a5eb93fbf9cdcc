#include "protocol/memcache/meta_flags.h"

#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache {
namespace {

constexpr std::string_view kSetModes = "EAPRS";
constexpr std::string_view kArithModes = "I+D-";
/// P and L are reserved for proxies and mean nothing here.
constexpr std::string_view kLettersWithoutNumber = "bcfhIklMOPLqstuvx";

template <typename Number>
MetaError read_or(MetaError error, std::string_view text, Number& number) {
  return read_number(text, number) ? MetaError::None : error;
}

/// Reads the text of the flag that `token` is.
MetaError read_flag(std::string_view token, MetaFlags& flags) {
  const std::string_view text = token.substr(1);
  switch (token.front()) {
    case 'T':
      return read_or(MetaError::BadToken, text, flags.exptime);
    case 'N':
      return read_or(MetaError::BadToken, text, flags.vivify_exptime);
    case 'R':
      return read_or(MetaError::BadToken, text, flags.recache_exptime);
    case 'C':
      return read_or(MetaError::BadToken, text, flags.compare_cas);
    case 'E':
      return read_or(MetaError::BadToken, text, flags.new_cas);
    case 'F':
      return read_or(MetaError::BadLine, text, flags.client_flags);
    case 'J':
      return read_or(MetaError::BadInitialValue, text, flags.initial);
    case 'D':
      return read_or(MetaError::BadDelta, text, flags.delta);
    case 'M':
      flags.mode = text.empty() ? '\0' : text.front();
      return MetaError::None;
    case 'O':
      flags.opaque = token;
      return MetaError::None;
    default:
      return kLettersWithoutNumber.find(token.front()) == std::string_view::npos
                 ? MetaError::InvalidFlag
                 : MetaError::None;
  }
}

MetaError take_flag(std::string_view token, MetaFlags& flags) {
  const char letter = token.front();
  if (letter < 'A' || letter > 'z') {
    return MetaError::InvalidFlag;
  }
  if (flags.has(letter)) {
    return MetaError::DuplicateFlag;
  }
  if (flags.letter_count == flags.letter_list.size()) {
    return MetaError::TooManyTokens;
  }
  flags.present |= MetaFlags::bit_of(letter);
  flags.letter_list[flags.letter_count++] = letter;
  return read_flag(token, flags);
}

/// What is checked when every flag has been read.
MetaError check_whole(Command command, const MetaFlags& flags) {
  if (flags.opaque.size() > kOpaqueTokenBytesMax) {
    return MetaError::OpaqueTooLong;
  }
  if (!flags.has('M')) {
    return MetaError::None;
  }
  if (command == Command::Ms && kSetModes.find(flags.mode) == std::string_view::npos) {
    return MetaError::BadSetMode;
  }
  if (command == Command::Ma && kArithModes.find(flags.mode) == std::string_view::npos) {
    return MetaError::BadArithMode;
  }
  return MetaError::None;
}

}  // namespace

std::string_view meta_error_line(MetaError error) noexcept {
  switch (error) {
    case MetaError::InvalidFlag:
      return "CLIENT_ERROR invalid flag\r\n";
    case MetaError::DuplicateFlag:
      return "CLIENT_ERROR duplicate flag\r\n";
    case MetaError::InvalidOrDuplicateFlag:
      return "CLIENT_ERROR invalid or duplicate flag\r\n";
    case MetaError::TooManyTokens:
      return "CLIENT_ERROR options flags are too long\r\n";
    case MetaError::BadLine:
      return "CLIENT_ERROR bad command line format\r\n";
    case MetaError::BadToken:
      return "CLIENT_ERROR bad token in command line format\r\n";
    case MetaError::BadInitialValue:
      return "CLIENT_ERROR invalid numeric initial value\r\n";
    case MetaError::BadDelta:
      return "CLIENT_ERROR invalid numeric delta value\r\n";
    case MetaError::OpaqueTooLong:
      return "CLIENT_ERROR opaque token too long\r\n";
    case MetaError::BadKey:
      return "CLIENT_ERROR error decoding key\r\n";
    case MetaError::BadSetMode:
      return "CLIENT_ERROR invalid mode for ms M token\r\n";
    case MetaError::BadArithMode:
      return "CLIENT_ERROR invalid mode for ma M token\r\n";
    case MetaError::None:
      break;
  }
  return {};
}

MetaFlags parse_meta_flags(const Request& request) noexcept {
  MetaFlags flags;
  TokenWalker words(request.line_text());
  words.next();  // The command.
  words.next();  // The key.
  if (request.command == Command::Ms) {
    words.next();  // The length, which the parser has read.
  }
  std::string_view token = words.next();
  while (!token.empty() && flags.error == MetaError::None) {
    flags.error = take_flag(token, flags);
    token = words.next();
  }
  if (flags.error != MetaError::None) {
    if (request.command == Command::Ma && flags.error != MetaError::TooManyTokens) {
      flags.error = MetaError::InvalidOrDuplicateFlag;
    }
    return flags;
  }
  flags.error = check_whole(request.command, flags);
  return flags;
}

}  // namespace kvferry::memcache
