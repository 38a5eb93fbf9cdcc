// "Did you mean": the nearest known word.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace kvferry::config {

/// Changes of single characters up to which a word counts as misspelt.
inline constexpr std::size_t kSuggestDistanceMax = 2;

/// Insertions, deletions, replacements and swaps of neighbours that turn `left` into `right`, at
/// most kSuggestDistanceMax + 1.
std::size_t edit_distance(std::string_view left, std::string_view right);

/// The nearest of `words` within kSuggestDistanceMax of `text`; of equals one of the same length,
/// else the first; empty when there is none. A word must also share more than half of its
/// characters, or every short word would be near.
std::string_view suggest(std::string_view text, std::span<const std::string_view> words);

}  // namespace kvferry::config
