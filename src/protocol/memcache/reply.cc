#include "protocol/memcache/reply.h"

namespace kvferry::memcache {
namespace {

/// Whether `line` begins with `word` and the word ends there.
bool has_word(std::string_view line, std::string_view word) {
  if (!line.starts_with(word)) {
    return false;
  }
  const char after = line.size() == word.size() ? ' ' : line[word.size()];
  return after == ' ' || after == '\r' || after == '\n';
}

struct NamedCode {
  std::string_view word;
  ReplyCode code;
};

constexpr NamedCode kWords[] = {
    {"STORED", ReplyCode::Stored},
    {"VALUE", ReplyCode::Value},
    {"END", ReplyCode::End},
    {"HD", ReplyCode::MetaHd},
    {"VA", ReplyCode::MetaVa},
    {"EN", ReplyCode::MetaEn},
    {"DELETED", ReplyCode::Deleted},
    {"NOT_FOUND", ReplyCode::NotFound},
    {"NOT_STORED", ReplyCode::NotStored},
    {"TOUCHED", ReplyCode::Touched},
    {"EXISTS", ReplyCode::Exists},
    {"NS", ReplyCode::MetaNs},
    {"EX", ReplyCode::MetaEx},
    {"NF", ReplyCode::MetaNf},
    {"MN", ReplyCode::MetaMn},
    {"ME", ReplyCode::MetaMe},
    {"OK", ReplyCode::Ok},
    {"VERSION", ReplyCode::Version},
    {"ERROR", ReplyCode::Error},
    {"CLIENT_ERROR", ReplyCode::ClientError},
};

constexpr std::string_view kServerError = "SERVER_ERROR";

}  // namespace

ReplyKind reply_kind_of(Command command) noexcept {
  if (is_retrieval(command)) {
    return ReplyKind::Retrieval;
  }
  return is_meta(command) ? ReplyKind::Meta : ReplyKind::Line;
}

ReplyCode find_reply_code(std::string_view line) noexcept {
  if (line.empty()) {
    return ReplyCode::None;
  }
  const char first = line.front();
  if (first >= '0' && first <= '9') {
    return ReplyCode::Number;
  }
  if (first < 'A' || first > 'Z') {
    return ReplyCode::None;
  }
  for (const NamedCode& entry : kWords) {
    if (entry.word.front() == first && has_word(line, entry.word)) {
      return entry.code;
    }
  }
  // Some of its texts have a colon behind the word: "SERVER_ERROR: shutdown not enabled".
  return line.starts_with(kServerError) ? ReplyCode::ServerError : ReplyCode::Other;
}

std::string_view reply_error_text(ReplyError error) noexcept {
  switch (error) {
    case ReplyError::Unexpected:
      return "unexpected reply";
    case ReplyError::BadLength:
      return "bad value length";
    case ReplyError::BadValueEnd:
      return "value not ended by CR LF";
    case ReplyError::LineTooLong:
      return "reply line too long";
    case ReplyError::None:
      break;
  }
  return "none";
}

}  // namespace kvferry::memcache
