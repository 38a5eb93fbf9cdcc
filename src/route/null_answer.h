// The answer to a request for an item that does not exist, as a server without any items gives it.
//
// Source: memcached protocol.txt; docs/routelib.md, "route_null".
#pragma once

#include <string_view>

#include "protocol/memcache/command.h"
#include "protocol/memcache/reply.h"

namespace kvferry::route {

struct NullAnswer {
  std::string_view line;  // With its line end; empty for commands that ask for no item.
  memcache::ReplyCode code = memcache::ReplyCode::None;
};

constexpr NullAnswer null_answer(memcache::Command command) {
  using memcache::Command;
  using memcache::ReplyCode;
  switch (command) {
    case Command::Get:
    case Command::Gets:
    case Command::Gat:
    case Command::Gats:
      return {.line = "END\r\n", .code = ReplyCode::End};
    case Command::Set:
    case Command::Add:
    case Command::Replace:
    case Command::Append:
    case Command::Prepend:
    case Command::Cas:
      return {.line = "NOT_STORED\r\n", .code = ReplyCode::NotStored};
    case Command::Mg:
      return {.line = "EN\r\n", .code = ReplyCode::MetaEn};
    case Command::Ms:
      return {.line = "NS\r\n", .code = ReplyCode::MetaNs};
    case Command::Md:
    case Command::Ma:
      return {.line = "NF\r\n", .code = ReplyCode::MetaNf};
    case Command::Incr:
    case Command::Decr:
    case Command::Touch:
    case Command::Delete:
      return {.line = "NOT_FOUND\r\n", .code = ReplyCode::NotFound};
    default:
      return {};
  }
}

}  // namespace kvferry::route
