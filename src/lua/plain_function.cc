#include "lua/plain_function.h"

#include <utility>

#include "route/route_request.h"

namespace kvferry::lua {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;

namespace {

// A stripped dump: the header (with the number of upvalues behind it), then of the function: source
// (none), two line numbers, parameters, vararg, stack size, code, constants.
constexpr std::size_t kHeaderBytes = 4 + 1 + 1 + 6 + 1 + 1 + 1 + 8 + 8 + 1;
constexpr std::size_t kInstructionBytes = 4;
constexpr unsigned char kShortString = 0x04;
constexpr unsigned char kLongString = 0x14;

constexpr const char* kForwardSources[] = {
    "local c, h; return function(r) return c:enqueue_and_wait(r, h) end",
    "local c, h; return function(r) local s = c:enqueue_and_wait(r, h) return s end",
};
constexpr const char* kTextSource = "return function(r) return 'x' end";

/// Reads a dump from the front. Out of bounds it gives zeros, and is_bad.
struct DumpReader {
  std::string_view rest;
  bool is_bad = false;

  unsigned char byte() {
    if (rest.empty()) {
      is_bad = true;
      return 0;
    }
    const auto first = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    return first;
  }
  /// Seven bits a byte, the most significant first; the last byte has its top bit set.
  std::size_t number() {
    std::size_t value = 0;
    for (int i = 0; i < 10; ++i) {
      const unsigned char each = byte();
      value = (value << 7U) | (each & 0x7FU);
      if ((each & 0x80U) != 0 || is_bad) {
        return value;
      }
    }
    is_bad = true;
    return 0;
  }
  void skip(std::size_t bytes) {
    if (bytes > rest.size()) {
      is_bad = true;
      bytes = rest.size();
    }
    rest.remove_prefix(bytes);
  }
};

/// The parts of a dump that say what the function does; empty when it is no such dump.
struct DumpParts {
  std::string_view code;       // With parameters, vararg and stack size before it.
  std::string_view constants;  // Texts only; otherwise empty.
  bool has_text_constants = false;
};

DumpParts parts_of(std::string_view dump) {
  DumpReader reader{dump};
  reader.skip(kHeaderBytes);
  reader.skip(reader.number() == 0 ? 0 : dump.size());  // A source: not stripped.
  reader.number();
  reader.number();
  const char* begin = reader.rest.data();
  reader.skip(3);
  reader.skip(reader.number() * kInstructionBytes);
  const char* constants = reader.rest.data();
  DumpParts parts;
  parts.code = std::string_view(begin, static_cast<std::size_t>(constants - begin));
  parts.has_text_constants = true;
  const std::size_t count = reader.number();
  for (std::size_t i = 0; i < count && !reader.is_bad; ++i) {
    const unsigned char kind = reader.byte();
    if (kind != kShortString && kind != kLongString) {
      parts.has_text_constants = false;
      break;
    }
    const std::size_t size = reader.number();
    reader.skip(size == 0 ? dump.size() : size - 1);
  }
  parts.constants =
      std::string_view(constants, static_cast<std::size_t>(reader.rest.data() - constants));
  return reader.is_bad ? DumpParts{} : parts;
}

int append(lua_State* /*lua*/, const void* bytes, std::size_t size, void* out) {
  static_cast<std::string*>(out)->append(static_cast<const char*>(bytes), size);
  return 0;
}

/// The stripped dump of the function at the top of the stack.
std::string dump(lua_State* lua) {
  std::string bytes;
  lua_dump(lua, &append, &bytes, 1);
  return bytes;
}

/// The dump of the function that `source` returns.
std::string dump_of(lua_State* lua, const char* source) {
  if (luaL_loadstring(lua, source) != LUA_OK || lua_pcall(lua, 0, 1, 0) != LUA_OK) {
    lua_pop(lua, 1);
    return {};
  }
  std::string bytes = dump(lua);
  lua_pop(lua, 1);
  return bytes;
}

}  // namespace

PlainShapes::PlainShapes(lua_State* lua) {
  for (const char* source : kForwardSources) {
    const std::string bytes = dump_of(lua, source);
    const DumpParts parts = parts_of(bytes);
    if (!parts.code.empty()) {
      forwards_.push_back(std::string(parts.code).append(parts.constants));
    }
  }
  const std::string bytes = dump_of(lua, kTextSource);
  text_code_ = parts_of(bytes).code;
}

PlainKind PlainShapes::recognise(lua_State* lua, int index) const {
  if (lua_iscfunction(lua, index) != 0) {
    return PlainKind::None;
  }
  lua_pushvalue(lua, index);
  const std::string bytes = dump(lua);
  lua_pop(lua, 1);
  const DumpParts parts = parts_of(bytes);
  if (parts.code.empty() || !parts.has_text_constants) {
    return PlainKind::None;
  }
  const std::string whole = std::string(parts.code).append(parts.constants);
  for (const std::string& forward : forwards_) {
    if (whole == forward) {
      return PlainKind::Forward;
    }
  }
  return parts.code == text_code_ ? PlainKind::Text : PlainKind::None;
}

void PlainForward::send(Call& call, const memcache::Request& request, call::Target& target) {
  stats_.active.add(1);
  if (!request.value.empty()) {
    call.held_bytes = static_cast<std::uint32_t>(request.value.size());
    stats_.buffer_bytes.add(call.held_bytes);
  }
  call.outer_sink = std::exchange(call.sink, this);
  if (!request.quiet && !request.noreply) [[likely]] {
    target.send(call, request);
    return;
  }
  route::RouteRequest blanked;
  blanked.borrow(request);
  call.quiet = blanked.quietness();
  target.send(call, blanked.wire());
}

Flow PlainForward::on_reply(Call& call, const ReplyPart& part) {
  call::ReplySink& sink = *call.outer_sink;
  if (!part.is_last) {
    return sink.on_reply(call, part);
  }
  call.sink = &sink;
  stats_.active.sub(1);
  if (call.held_bytes != 0) {
    stats_.buffer_bytes.sub(std::exchange(call.held_bytes, 0));
  }
  if (part.code == ReplyCode::Other) [[unlikely]] {
    // A word that is no answer; the client is not to see it.
    sink.on_reply(call, ReplyPart{.bytes = "SERVER_ERROR backend failure\r\n",
                                  .code = ReplyCode::ServerError,
                                  .is_first = part.is_first,
                                  .is_last = true,
                                  .origin = call::ReplyOrigin::Failure});
  } else {
    sink.on_reply(call, part);
  }
  on_done_();
  return Flow::Continue;
}

}  // namespace kvferry::lua
