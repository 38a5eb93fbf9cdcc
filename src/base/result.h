// Result<T>: a value or an Error. Has the member names of std::expected, so it can become an alias
// with C++23.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/check.h"

namespace kvferry::base {

/// What kind of thing went wrong; rooms that need finer codes define their own enum beside it.
enum class ErrorCode : unsigned char {
  InvalidInput,  // Bytes or text from outside that cannot be accepted.
  NotFound,      // A name or an address that does not exist.
  Refused,       // The other side, or the system, said no.
  TimedOut,      // No answer within its time.
  Exhausted,     // A named limit was reached.
  System,        // A system call failed; the detail has its error text.
  Unsupported,   // Understood, and not available here.
};

/// An expected failure. `detail` is a sentence for people: what, which, why, and what to do next.
class [[nodiscard]] Error {
 public:
  Error(ErrorCode code, std::string detail) : detail_(std::move(detail)), code_(code) {}

  /// Makes a System error from `what` and the text of `error_number` (an errno value).
  static Error from_errno(std::string_view what, int error_number);

  ErrorCode code() const noexcept { return code_; }
  const std::string& text() const noexcept { return detail_; }

 private:
  std::string detail_;
  ErrorCode code_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` must read as such.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): `return error;` must read as such.
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & {
    KVF_CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    KVF_CHECK(has_value());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    KVF_CHECK(has_value());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    KVF_CHECK(!has_value());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    KVF_CHECK(!has_value());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): `return error;` must read as such.
  Result(Error error) : error_(std::move(error)) {}

  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  const Error& error() const& {
    KVF_CHECK(error_.has_value());
    return *error_;
  }
  Error&& error() && {
    KVF_CHECK(error_.has_value());
    return std::move(*error_);
  }

 private:
  std::optional<Error> error_;
};

}  // namespace kvferry::base
