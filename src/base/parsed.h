// Parsed<T, E>: the three-way answer of an incremental parser: done, need more bytes, or failed.
#pragma once

#include <utility>

#include "base/check.h"

namespace kvferry::base {

template <typename T, typename E>
class [[nodiscard]] Parsed {
 public:
  static Parsed done(T value) noexcept { return Parsed(State::Done, std::move(value), E{}); }
  static Parsed need_more() noexcept { return Parsed(State::NeedMore, T{}, E{}); }
  static Parsed failed(E error) noexcept { return Parsed(State::Failed, T{}, error); }

  bool is_done() const noexcept { return state_ == State::Done; }
  bool is_need_more() const noexcept { return state_ == State::NeedMore; }
  bool is_failed() const noexcept { return state_ == State::Failed; }

  const T& value() const noexcept {
    KVF_DCHECK(is_done());
    return value_;
  }
  T& value() noexcept {
    KVF_DCHECK(is_done());
    return value_;
  }
  E error() const noexcept {
    KVF_DCHECK(is_failed());
    return error_;
  }

 private:
  enum class State : unsigned char { Done, NeedMore, Failed };
  Parsed(State state, T value, E error) noexcept
      : value_(std::move(value)), error_(error), state_(state) {}

  T value_;
  E error_;
  State state_;
};

}  // namespace kvferry::base
