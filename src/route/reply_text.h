// ReplyText: a buffer that the replies of the embedded store are composed in, one a worker.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/check.h"

namespace kvferry::route {

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): text is read as far as it was written
class ReplyText {
 public:
  static constexpr std::size_t kCapacityBytes = std::size_t{32} * 1024;

  void add(std::string_view bytes) noexcept {
    KVF_CHECK(bytes.size() <= room_bytes());
    if (!bytes.empty()) {
      std::memcpy(text_.data() + size_, bytes.data(), bytes.size());
    }
    size_ += bytes.size();
  }
  void add(char byte) noexcept { add(std::string_view(&byte, 1)); }
  void add_number(std::uint64_t number) noexcept {
    const auto [end, error] =
        std::to_chars(text_.data() + size_, text_.data() + text_.size(), number);
    KVF_CHECK(error == std::errc{});
    size_ = static_cast<std::size_t>(end - text_.data());
  }
  /// A blank, a letter, a number: how meta replies say things.
  void add_flag(char letter, std::uint64_t number) noexcept {
    add(' ');
    add(letter);
    add_number(number);
  }

  bool empty() const noexcept { return size_ == 0; }
  std::size_t room_bytes() const noexcept { return text_.size() - size_; }
  /// What was added, which is then no longer in here; valid until the next add().
  std::string_view take() noexcept {
    const std::string_view text(text_.data(), size_);
    size_ = 0;
    return text;
  }

 private:
  std::array<char, kCapacityBytes> text_;
  std::size_t size_ = 0;
};

}  // namespace kvferry::route
