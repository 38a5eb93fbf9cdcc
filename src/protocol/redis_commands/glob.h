// Patterns as Redis knows them: KEYS, PSUBSCRIBE, COMMAND LIST FILTERBY PATTERN.
//
//   *  any bytes     ?  one byte     [abc] [a-z] [^a]  one of these bytes, or none of them     \x
//   x itself
//
// Time: at most the length of the pattern times that of the text; a new '*' forgets the one before
// it. Source:    redis-server 7.0. Threads:   pure function.
#pragma once

#include <cstdint>
#include <string_view>

namespace kvferry::redis {

enum class LetterCase : std::uint8_t { Matters, Ignored };

/// Whether all of `text` fits `pattern`.
bool matches_glob(std::string_view pattern, std::string_view text, LetterCase letter_case) noexcept;

}  // namespace kvferry::redis
