#include "pool/request_bytes.h"

#include "protocol/memcache/token_walker.h"

namespace kvferry::pool {
namespace {

void append_word(std::string& out, std::string_view word) {
  if (!out.empty()) {
    out += ' ';
  }
  out += word;
}

/// All words but the noreply at the end: a server takes the last word for it, however often it is
/// there.
void append_classic(std::string& out, std::string_view text) {
  constexpr std::string_view kNoreply = " noreply";
  while (text.ends_with(' ') || text.ends_with(kNoreply)) {
    text.remove_suffix(text.ends_with(' ') ? 1 : kNoreply.size());
  }
  memcache::TokenWalker walker(text);
  for (std::string_view word = walker.next(); !word.empty(); word = walker.next()) {
    append_word(out, word);
  }
}

/// All words but the flags q: one that is left would silence the server.
void append_meta(std::string& out, std::string_view text, std::size_t fixed_words) {
  memcache::TokenWalker walker(text);
  for (std::string_view word = walker.next(); !word.empty(); word = walker.next()) {
    if (fixed_words > 0) {
      --fixed_words;
    } else if (word.front() == 'q') {
      continue;
    }
    append_word(out, word);
  }
}

}  // namespace

std::string_view unmute(const memcache::Request& request, std::string& scratch) {
  scratch.clear();
  if (request.noreply) {
    append_classic(scratch, request.line_text());
  } else {
    // Command and key, and the length of ms.
    append_meta(scratch, request.line_text(), request.command == memcache::Command::Ms ? 3 : 2);
  }
  scratch += "\r\n";
  if (request.has_complete_value && request.size_bytes > request.line.size()) {
    scratch.append(request.line.data() + request.line.size(),
                   request.size_bytes - request.line.size());
  }
  return scratch;
}

}  // namespace kvferry::pool
