// Inspecting: reading one thing of a request or a reply, as a step that is prepared once and run
// for each request.
//
// Source:    docs/lua.md, "Inspectors".
// Lifetime:  texts of results are views of what was inspected.
// Threads:   pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "route/route_reply.h"
#include "route/route_request.h"

namespace kvferry::route {

enum class InspectKind : std::uint8_t {
  KeyPiece,     // Text: a piece of the key between separators, or nothing.
  KeyBegins,    // Boolean: the key begins with a text and is longer.
  KeyIs,        // Boolean.
  HasFlag,      // Boolean.
  FlagToken,    // Boolean, and the flag's text, which may be empty, or nothing.
  FlagInteger,  // Boolean, and the number, or nothing.
  FlagIs,       // Boolean, and whether the flag's text is the given one, or nothing.
};
inline bool reads_key(InspectKind kind) noexcept {
  return kind <= InspectKind::KeyIs;
}
std::size_t result_count(InspectKind kind) noexcept;

struct InspectStep {
  InspectKind kind{};
  char letter = 0;            // Of the flag.
  char separator = '/';       // Of KeyPiece.
  std::int64_t position = 1;  // Of KeyPiece, from 1; others name no piece.
  bool has_map = false;       // Of KeyPiece: the piece is a key of a table that the caller has.
  std::string text{};         // What is compared with.
};

struct InspectValue {
  enum class Kind : std::uint8_t { Nothing, Boolean, Text, Integer };
  Kind kind = Kind::Nothing;
  bool is_true = false;
  std::int64_t integer = 0;
  std::string_view text{};
};

/// The first result_count() values count.
using InspectValues = std::array<InspectValue, 2>;

/// Requests without flags have none.
InspectValues inspect(const InspectStep& step, const RouteRequest& request) noexcept;
/// The same for flags of replies; steps that read a key find none.
InspectValues inspect(const InspectStep& step, const RouteReply& reply) noexcept;

}  // namespace kvferry::route
