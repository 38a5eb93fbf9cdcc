// Commands without a key: answered by the server that reads them.
#include <charconv>
#include <string>

#include "front/session.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::front {

using memcache::Command;
using memcache::ReplyCode;

namespace {

constexpr std::string_view kErrorLine = "ERROR\r\n";
constexpr std::string_view kBadLine = "CLIENT_ERROR bad command line format\r\n";

/// The words after the command, blanks at both ends cut off.
std::string_view arguments_of(const memcache::Request& request) {
  memcache::TokenWalker walker(request.line_text());
  walker.next();
  std::string_view rest = walker.rest();
  while (rest.starts_with(' ')) {
    rest.remove_prefix(1);
  }
  while (rest.ends_with(' ')) {
    rest.remove_suffix(1);
  }
  return rest;
}

/// The commands of lru_crawler that list what the store holds.
bool is_dump(const memcache::Request& request) {
  const std::string_view word = memcache::token_at(request.line_text(), 1);
  return word == "metadump" || word == "mgdump";
}

}  // namespace

void Session::answer_locally(const memcache::Request& request) {
  switch (request.command) {
    case Command::Mn:
      answer_with("MN\r\n", ReplyCode::MetaMn);
      return;
    case Command::Version: {
      std::string line = "VERSION ";
      line.append(service_.context_.commands.version()).append("\r\n");
      answer_with(line, ReplyCode::Version);
      return;
    }
    case Command::Quit:
      if (!arguments_of(request).empty() && !service_.options_.quits_with_words) {
        break;  // Not even noreply is known to it.
      }
      phase_ = Phase::Ending;
      return;
    case Command::Stats:
      answer_stats(arguments_of(request));
      return;
    case Command::Verbosity:
      set_verbosity(request);
      return;
    case Command::LruCrawler:
      if (service_.options_.allows_admin && is_dump(request)) {
        service_.target_->send(make_call(request), request);
        return;
      }
      if (service_.options_.allows_admin && administer(request)) {
        return;
      }
      break;
    case Command::FlushAll:
      if (service_.options_.allows_admin) {
        service_.target_->send(make_call(request), request);
        return;
      }
      break;
    case Command::Watch:
      start_watching(arguments_of(request));
      return;
    default:
      if (service_.options_.allows_admin && administer(request)) {
        return;
      }
      break;
  }
  if (!request.noreply || request.command == Command::Quit) {
    answer_with(kErrorLine, ReplyCode::Error);
  }
}

bool Session::administer(const memcache::Request& request) {
  std::string reply;
  if (!service_.context_.commands.administer(request, reply)) {
    return false;
  }
  if (!request.noreply && !reply.empty()) {
    answer_with(reply, reply.starts_with("OK") ? ReplyCode::Ok : ReplyCode::Error);
  }
  return true;
}

/// The first request must be a set (of any key) whose value is "user password".
void Session::authenticate(const memcache::Request& request) {
  if (request.command != Command::Set || !request.has_complete_value ||
      request.value.size() > kAuthenticationBytesMax) {
    answer_with("CLIENT_ERROR unauthenticated\r\n", ReplyCode::ClientError);
    phase_ = Phase::Ending;
    return;
  }
  // A listener may have lost its credentials since; then everybody may.
  const auto& credentials = service_.options_.credentials;
  is_locked_ = credentials != nullptr && !credentials->allow(request.value);
  service_.stats_->authentications.add(1);
  if (is_locked_) {
    service_.stats_->authentications_failed.add(1);
    answer_with("CLIENT_ERROR authentication failure\r\n", ReplyCode::ClientError);
  } else {
    answer_with("STORED\r\n", ReplyCode::Stored);
  }
}

void Session::answer_stats(std::string_view words) {
  std::string reply;
  if (!service_.context_.commands.stats(words, reply)) {
    reply = kErrorLine;
  }
  answer_with(reply, reply == kErrorLine ? ReplyCode::Error : ReplyCode::Other);
}

void Session::set_verbosity(const memcache::Request& request) {
  const std::string_view word = memcache::token_at(request.line_text(), 1);
  unsigned level = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), level);
  if (word.empty() || error != std::errc{} || end != word.data() + word.size()) {
    if (!request.noreply) {
      answer_with(kBadLine, ReplyCode::ClientError);
    }
    return;
  }
  service_.context_.commands.set_verbosity(level);
  if (!request.noreply) {
    answer_with("OK\r\n", ReplyCode::Ok);
  }
}

}  // namespace kvferry::front
