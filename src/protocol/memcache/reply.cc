#include "protocol/memcache/reply.h"

#include <array>
#include <utility>

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

using WordCode = std::pair<std::string_view, ReplyCode>;

constexpr std::array kWords = {
    WordCode("STORED", ReplyCode::Stored),
    WordCode("VALUE", ReplyCode::Value),
    WordCode("END", ReplyCode::End),
    WordCode("HD", ReplyCode::MetaHd),
    WordCode("VA", ReplyCode::MetaVa),
    WordCode("EN", ReplyCode::MetaEn),
    WordCode("DELETED", ReplyCode::Deleted),
    WordCode("NOT_FOUND", ReplyCode::NotFound),
    WordCode("NOT_STORED", ReplyCode::NotStored),
    WordCode("TOUCHED", ReplyCode::Touched),
    WordCode("EXISTS", ReplyCode::Exists),
    WordCode("NS", ReplyCode::MetaNs),
    WordCode("EX", ReplyCode::MetaEx),
    WordCode("NF", ReplyCode::MetaNf),
    WordCode("MN", ReplyCode::MetaMn),
    WordCode("ME", ReplyCode::MetaMe),
    WordCode("OK", ReplyCode::Ok),
    WordCode("VERSION", ReplyCode::Version),
    WordCode("ERROR", ReplyCode::Error),
    WordCode("CLIENT_ERROR", ReplyCode::ClientError),
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
  for (const auto& [word, code] : kWords) {
    if (word.front() == first && has_word(line, word)) {
      return code;
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
