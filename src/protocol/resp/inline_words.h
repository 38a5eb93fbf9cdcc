// The words of an inline request: what people type, and old scripts send.
//
//   set "a key" 'it''s'     blanks separate; quotes may begin anywhere in a word, and end it
//   "\x41\n\"\\"            escapes, in double quotes; in single quotes only \'
//
// Source:    redis-server 7.0.
// Threads:   pure function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvferry::resp {

/// A word within the decoded bytes.
struct WordPlace {
  std::size_t begin;
  std::size_t size;
};

/// Appends the words of `line`, which has no line end, to `bytes`, and where they lie to `places`.
/// False when a quote is not closed, or closed in the middle of a word.
bool read_inline_words(std::string_view line, std::string& bytes, std::vector<WordPlace>& places);

}  // namespace kvferry::resp
