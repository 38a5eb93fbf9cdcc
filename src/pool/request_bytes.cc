#include "pool/request_bytes.h"

#include "protocol/memcache/token_walker.h"

namespace kvferry::pool {
namespace {

/// Copies the words of `text` but for the one at `skipped`, a blank between them.
void append_words_but(std::string& out, std::string_view text, std::string_view skipped) {
  memcache::TokenWalker walker(text);
  bool is_first = true;
  for (std::string_view word = walker.next(); !word.empty(); word = walker.next()) {
    if (word.data() == skipped.data()) {
      continue;
    }
    if (!is_first) {
      out += ' ';
    }
    is_first = false;
    out += word;
  }
}

/// The word that asks for silence: `noreply` at the end of a classic line, the flag q of a meta
/// line.
std::string_view quiet_word(const memcache::Request& request) {
  memcache::TokenWalker walker(request.line_text());
  std::string_view last;
  if (request.noreply) {
    for (std::string_view word = walker.next(); !word.empty(); word = walker.next()) {
      last = word;
    }
    return last;
  }
  walker.next();
  walker.next();
  if (request.command == memcache::Command::Ms) {
    walker.next();
  }
  for (std::string_view word = walker.next(); !word.empty(); word = walker.next()) {
    if (word.front() == 'q') {
      return word;
    }
  }
  return last;
}

}  // namespace

std::string_view unmute(const memcache::Request& request, std::string& scratch) {
  scratch.clear();
  append_words_but(scratch, request.line_text(), quiet_word(request));
  scratch += "\r\n";
  if (request.has_complete_value && request.size_bytes > request.line.size()) {
    scratch.append(request.line.data() + request.line.size(),
                   request.size_bytes - request.line.size());
  }
  return scratch;
}

}  // namespace kvferry::pool
