#include "load/traffic.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace kvferry::load {
namespace {

constexpr std::size_t kDigits = 8;
constexpr std::size_t kAlphabet = 26;
constexpr std::size_t kLineBytesMax = 4096;

void append_number(std::uint64_t number, std::string& out) {
  std::array<char, 20> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), end);
}

std::array<char, kDigits> digits_of(std::uint32_t number) {
  std::array<char, kDigits> digits{};
  for (std::size_t i = kDigits; i-- > 0;) {
    digits[i] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  return digits;
}

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

bool to_number(std::string_view text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_error_line(std::string_view line) {
  return line == "ERROR" || line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR");
}

}  // namespace

Dataset::Dataset(const Options& options) : key_stem_("kvload:"), value_bytes_(options.value_bytes) {
  key_stem_.resize(options.key_bytes - kDigits, ':');
  letters_.resize(value_bytes_ + kAlphabet);
  for (std::size_t i = 0; i < letters_.size(); ++i) {
    letters_[i] = static_cast<char>('a' + i % kAlphabet);
  }
}

void Dataset::append_key(std::uint32_t number, std::string& out) const {
  const auto digits = digits_of(number);
  out.append(key_stem_).append(digits.data(), digits.size());
}

std::string Dataset::key_of(std::uint32_t number) const {
  std::string key;
  append_key(number, key);
  return key;
}

bool Dataset::is_key_of(std::uint32_t number, std::string_view key) const {
  const auto digits = digits_of(number);
  return key.size() == key_stem_.size() + kDigits && key.starts_with(key_stem_) &&
         key.ends_with(std::string_view(digits.data(), digits.size()));
}

// The window moves with the key, so two values differ nearly everywhere, not only in their digits.
std::string_view Dataset::filler_of(std::uint32_t number) const {
  return std::string_view(letters_).substr(number % kAlphabet, value_bytes_);
}

// Digits stand at both ends, so a value that lost or gained bytes in between is seen.
void Dataset::append_value(std::uint32_t number, std::string& out) const {
  const std::size_t begin = out.size();
  out.append(filler_of(number));
  if (value_bytes_ >= 2 * kDigits) {
    const auto digits = digits_of(number);
    std::memcpy(out.data() + begin, digits.data(), kDigits);
    std::memcpy(out.data() + out.size() - kDigits, digits.data(), kDigits);
  }
}

bool Dataset::is_value_of(std::uint32_t number, std::string_view value) const {
  const std::string_view filler = filler_of(number);
  if (value.size() != value_bytes_) {
    return false;
  }
  if (value_bytes_ < 2 * kDigits) {
    return value == filler;
  }
  const auto digits = digits_of(number);
  const std::string_view tag(digits.data(), digits.size());
  const std::size_t middle = value_bytes_ - 2 * kDigits;
  return value.starts_with(tag) && value.ends_with(tag) &&
         value.substr(kDigits, middle) == filler.substr(kDigits, middle);
}

RequestMaker::RequestMaker(const Options& options, const Dataset& dataset)
    : operation_(options.operation),
      keys_(options.keys),
      keys_per_get_(options.keys_per_get),
      value_bytes_(options.value_bytes),
      dataset_(dataset),
      state_((options.seed + 1) * 0x9E3779B97F4A7C15ULL) {}

// splitmix64: good enough spread, a few instructions.
std::uint32_t RequestMaker::random() {
  std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15ULL;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBULL;
  return static_cast<std::uint32_t>(mixed >> 32);
}

std::uint32_t RequestMaker::random_key() {
  return static_cast<std::uint32_t>((std::uint64_t{random()} * keys_) >> 32);
}

void RequestMaker::make_set(std::uint32_t number, std::string& out) {
  out.append("set ");
  dataset_.append_key(number, out);
  out.push_back(' ');
  append_number(Dataset::flags_of(number), out);
  out.append(" 0 ");
  append_number(value_bytes_, out);
  out.append("\r\n");
  dataset_.append_value(number, out);
  out.append("\r\n");
}

bool RequestMaker::make(std::string& out, Pending& pending) {
  pending.keys.clear();
  pending.hits = 0;
  pending.next_key = 0;
  if (operation_ == Operation::Fill) {
    if (fill_next_ == keys_) {
      return false;
    }
    pending.is_set = true;
    pending.keys.push_back(fill_next_++);
    make_set(pending.keys.front(), out);
    return true;
  }
  pending.is_set =
      operation_ == Operation::Set || (operation_ == Operation::Mix && random() % 10 == 0);
  if (pending.is_set) {
    pending.keys.push_back(random_key());
    make_set(pending.keys.front(), out);
    return true;
  }
  const std::size_t count = operation_ == Operation::MultiGet ? keys_per_get_ : 1;
  out.append("get");
  for (std::size_t i = 0; i < count; ++i) {
    pending.keys.push_back(random_key());
    out.push_back(' ');
    dataset_.append_key(pending.keys.back(), out);
  }
  out.append("\r\n");
  return true;
}

namespace {

ReplyStep wrong(std::string_view text) {
  return {ReplyEvent::Wrong, 0, text};
}

// Looks for the key behind the last one found: servers answer in the order of the request.
bool find_key(std::string_view key, const Dataset& dataset, Pending& pending,
              std::uint32_t& number) {
  while (pending.next_key < pending.keys.size()) {
    number = pending.keys[pending.next_key++];
    if (dataset.is_key_of(number, key)) {
      return true;
    }
  }
  return false;
}

ReplyStep read_value(std::string_view bytes, std::size_t line_bytes, std::string_view line,
                     bool verify, const Dataset& dataset, Pending& pending) {
  line.remove_prefix(std::string_view("VALUE ").size());
  const std::string_view key = take_word(line);
  std::uint64_t flags = 0;
  std::uint64_t size = 0;
  if (!to_number(take_word(line), flags) || !to_number(take_word(line), size) || !line.empty()) {
    return wrong("broken VALUE line");
  }
  if (pending.is_set) {
    return wrong("VALUE as the answer to a set");
  }
  if (size > bytes.size() - line_bytes || bytes.size() - line_bytes - size < 2) {
    return {};
  }
  const std::string_view value = bytes.substr(line_bytes, size);
  if (bytes.substr(line_bytes + size, 2) != "\r\n") {
    return wrong("value does not end where its length says");
  }
  if (verify) {
    std::uint32_t number = 0;
    if (!find_key(key, dataset, pending, number)) {
      return wrong("key that was not asked for, or out of order");
    }
    if (flags != Dataset::flags_of(number) || !dataset.is_value_of(number, value)) {
      return wrong("value of another key, or damaged");
    }
  }
  if (++pending.hits > pending.keys.size()) {
    return wrong("more values than keys");
  }
  return {ReplyEvent::Partial, line_bytes + size + 2, {}};
}

}  // namespace

ReplyStep read_reply(std::string_view bytes, bool verify, const Dataset& dataset,
                     Pending& pending) {
  const std::size_t newline = bytes.substr(0, kLineBytesMax).find('\n');
  if (newline == std::string_view::npos) {
    return bytes.size() < kLineBytesMax ? ReplyStep{} : wrong("line without an end");
  }
  if (newline == 0 || bytes[newline - 1] != '\r') {
    return wrong("line end without a carriage return");
  }
  const std::string_view line = bytes.substr(0, newline - 1);
  if (line.starts_with("VALUE ")) {
    return read_value(bytes, newline + 1, line, verify, dataset, pending);
  }
  if (is_error_line(line)) {
    return {ReplyEvent::Refused, newline + 1, line};
  }
  if (line == (pending.is_set ? "STORED" : "END")) {
    return {ReplyEvent::Answered, newline + 1, {}};
  }
  return wrong(pending.is_set ? "a set was not answered with STORED"
                              : "a get was not answered with END");
}

}  // namespace kvferry::load
