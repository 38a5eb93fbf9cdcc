#include "route/inspector.h"

#include "protocol/memcache/number.h"

namespace kvferry::route {
namespace {

using Kind = InspectValue::Kind;

InspectValue boolean(bool is_true) {
  return {.kind = Kind::Boolean, .is_true = is_true};
}

InspectValue text_value(std::string_view text) {
  return {.kind = Kind::Text, .text = text};
}

/// Piece number `position` of `key`. Separators at its beginning are skipped; behind the first
/// piece, two in a row have an empty piece between them.
std::string_view find_piece(std::string_view key, char separator, std::int64_t position) {
  if (position < 1) {
    return {};
  }
  while (key.starts_with(separator)) {
    key.remove_prefix(1);
  }
  for (std::int64_t i = 1; i < position; ++i) {
    const std::size_t end = key.find(separator);
    if (end == std::string_view::npos) {
      return {};
    }
    key.remove_prefix(end + 1);
  }
  return key.substr(0, key.find(separator));
}

InspectValues inspect_flag(const InspectStep& step, const FlagToken& flag) {
  InspectValues values{boolean(flag.is_found), InspectValue{}};
  if (!flag.is_found) {
    return values;
  }
  if (step.kind == InspectKind::FlagToken) {
    values[1] = text_value(flag.text);
  } else if (step.kind == InspectKind::FlagIs) {
    values[1] = boolean(flag.text == step.text);
  } else if (step.kind == InspectKind::FlagInteger &&
             memcache::read_number(flag.text, values[1].integer)) {
    values[1].kind = Kind::Integer;
  }
  return values;
}

InspectValue inspect_key(const InspectStep& step, std::string_view key) {
  switch (step.kind) {
    case InspectKind::KeyBegins:
      return boolean(key.size() > step.text.size() && key.starts_with(step.text));
    case InspectKind::KeyIs:
      return boolean(key == step.text);
    default:
      break;
  }
  const std::string_view piece = find_piece(key, step.separator, step.position);
  return piece.empty() ? InspectValue{} : text_value(piece);
}

}  // namespace

std::size_t result_count(InspectKind kind) noexcept {
  return reads_key(kind) || kind == InspectKind::HasFlag ? 1 : 2;
}

InspectValues inspect(const InspectStep& step, const RouteRequest& request) noexcept {
  if (reads_key(step.kind)) {
    return {inspect_key(step, request.key()), InspectValue{}};
  }
  return inspect_flag(step, request.find_flag(step.letter));
}

InspectValues inspect(const InspectStep& step, const RouteReply& reply) noexcept {
  if (reads_key(step.kind)) {
    return {};
  }
  return inspect_flag(step, reply.find_flag(step.letter));
}

}  // namespace kvferry::route
