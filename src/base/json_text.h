// Text of JSON values, for whoever composes a little JSON: logs, the admin server, explain.
//
// Bytes that are not UTF-8 cannot stand in JSON; they come out as the four characters \xNN.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kvferry::base {

/// Size of the UTF-8 character at the front of `bytes` (1 to 4); 0 when there is no valid one.
/// Overlong forms, surrogates and values above U+10FFFF are not valid.
std::size_t utf8_character_bytes(std::string_view bytes) noexcept;

/// Appends `text` as a JSON string, quotes included.
void append_json_string(std::string& out, std::string_view text);

/// Appends "\xNN" for one byte, as logs and JSON show bytes that have no character.
void append_hex_escape(std::string& out, char byte);

}  // namespace kvferry::base
