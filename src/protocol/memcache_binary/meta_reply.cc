#include "protocol/memcache_binary/meta_reply.h"

#include <algorithm>

#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::memcache_binary {
namespace {

using memcache::ReplyCode;

constexpr std::string_view kServerError = "SERVER_ERROR";
constexpr std::string_view kClientError = "CLIENT_ERROR";

MetaReply failure(Status status) noexcept {
  return {.status = status, .text = status_text(status)};
}

/// The words of a line behind its first one, `word`; what stands for `status` when there are none.
std::string_view words_of(std::string_view line, std::string_view word, Status status) noexcept {
  line.remove_prefix(std::min(line.size(), word.size()));
  while (line.starts_with(' ') || line.starts_with(':')) {
    line.remove_prefix(1);
  }
  return line.empty() ? status_text(status) : line;
}

/// Why nothing was stored, in memcached's statuses, which depend on what was asked for.
Status unstored_status(Opcode plain) noexcept {
  switch (plain) {
    case Opcode::Add:
      return Status::Exists;
    case Opcode::Replace:
      return Status::NotFound;
    default:
      return Status::NotStored;
  }
}

MetaReply read_server_error(std::string_view line) noexcept {
  const std::string_view words = words_of(line, kServerError, Status::InternalError);
  if (words.starts_with("object too large")) {
    return failure(Status::TooLarge);
  }
  if (words.starts_with("out of memory")) {
    return failure(Status::OutOfMemory);
  }
  return {.status = Status::InternalError, .text = words};
}

MetaReply read_client_error(Opcode plain, std::string_view line) noexcept {
  const std::string_view words = words_of(line, kClientError, Status::InvalidArguments);
  if (words.find("non-numeric") != std::string_view::npos) {
    return failure(Status::NonNumeric);
  }
  if (plain == Opcode::Flush) {
    return failure(Status::AuthError);  // It is switched off.
  }
  return {.status = Status::InvalidArguments, .text = words};
}

MetaReply read_success(ReplyCode code, std::string_view line) noexcept {
  MetaReply reply;
  memcache::TokenWalker words(line);
  words.next_short();
  if (code == ReplyCode::MetaVa && !memcache::read_number(words.next_short(), reply.value_bytes)) {
    return failure(Status::InternalError);
  }
  for (std::string_view word = words.next_short(); !word.empty(); word = words.next_short()) {
    const bool is_good = word.front() == 'f'
                             ? memcache::read_number(word.substr(1), reply.client_flags)
                         : word.front() == 'c' ? memcache::read_number(word.substr(1), reply.cas)
                                               : true;
    if (!is_good) {
      return failure(Status::InternalError);
    }
  }
  return reply;
}

}  // namespace

MetaReply read_meta_reply(Opcode plain, ReplyCode code, std::string_view line) noexcept {
  switch (code) {
    case ReplyCode::MetaHd:
    case ReplyCode::MetaVa:
      return read_success(code, line);
    case ReplyCode::Ok:
      return {};
    case ReplyCode::MetaEn:
      return failure(Status::NotFound);
    case ReplyCode::MetaNf:
      return failure(plain == Opcode::Append || plain == Opcode::Prepend ? Status::NotStored
                                                                         : Status::NotFound);
    case ReplyCode::MetaEx:
      return failure(Status::Exists);
    case ReplyCode::MetaNs:
      return failure(unstored_status(plain));
    case ReplyCode::Error:
      return failure(Status::UnknownCommand);
    case ReplyCode::ClientError:
      return read_client_error(plain, line);
    case ReplyCode::ServerError:
      return read_server_error(line);
    default:
      return failure(Status::InternalError);
  }
}

}  // namespace kvferry::memcache_binary
