// The reply lines of the store that have nothing variable in them.
#pragma once

#include <string_view>

#include "protocol/memcache/reply.h"
#include "store/operations.h"

namespace kvferry::route {

struct Line {
  std::string_view text;
  memcache::ReplyCode code;
};

inline constexpr Line kNoMemoryStoring{"SERVER_ERROR out of memory storing object\r\n",
                                       memcache::ReplyCode::ServerError};
inline constexpr Line kNoMemory{"SERVER_ERROR out of memory\r\n", memcache::ReplyCode::ServerError};
inline constexpr Line kTooLarge{"SERVER_ERROR object too large for cache\r\n",
                                memcache::ReplyCode::ServerError};
inline constexpr Line kNonNumeric{
    "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
    memcache::ReplyCode::ClientError};
inline constexpr Line kNotFound{"NOT_FOUND\r\n", memcache::ReplyCode::NotFound};

/// Of the classic storage commands.
inline Line line_of(store::StoreStatus status) noexcept {
  switch (status) {
    case store::StoreStatus::Stored:
      return {"STORED\r\n", memcache::ReplyCode::Stored};
    case store::StoreStatus::NotStored:
      return {"NOT_STORED\r\n", memcache::ReplyCode::NotStored};
    case store::StoreStatus::Exists:
      return {"EXISTS\r\n", memcache::ReplyCode::Exists};
    case store::StoreStatus::NotFound:
      return kNotFound;
    case store::StoreStatus::TooLarge:
      return kTooLarge;
    case store::StoreStatus::NoMemory:
      break;
  }
  return kNoMemoryStoring;
}

/// Of incr and decr, where there is no number to answer.
inline Line line_of(store::ArithStatus status) noexcept {
  switch (status) {
    case store::ArithStatus::NotFound:
      return kNotFound;
    case store::ArithStatus::NonNumeric:
      return kNonNumeric;
    default:
      return kNoMemory;
  }
}

/// Of touch.
inline Line line_of(store::TouchStatus status) noexcept {
  switch (status) {
    case store::TouchStatus::Done:
      return {"TOUCHED\r\n", memcache::ReplyCode::Touched};
    case store::TouchStatus::NotFound:
      return kNotFound;
    case store::TouchStatus::NoMemory:
      break;
  }
  return kNoMemory;
}

}  // namespace kvferry::route
