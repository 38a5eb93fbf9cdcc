// The size of a reply that is one line or one bulk string, found without a scanner: most replies
// are, and this is several times as fast.
//
// Threads:   pure function.
#pragma once

#include <cstddef>
#include <string_view>

namespace kvferry::resp {

/// Lines and lengths above these are left to the scanner.
inline constexpr std::size_t kShortLineBytesMax = 256;
inline constexpr std::size_t kShortDigitsMax = 6;

/// Size of the reply that `bytes`, which are not empty, begin with, when it is short and whole;
/// 0: ask a ReplyScanner, which agrees wherever this finds one.
std::size_t short_reply_size(std::string_view bytes) noexcept;

}  // namespace kvferry::resp
