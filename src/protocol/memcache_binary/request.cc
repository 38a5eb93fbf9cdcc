#include "protocol/memcache_binary/request.h"

namespace kvferry::memcache_binary {
namespace {

using Outcome = base::Parsed<Request, ParseFailure>;

struct Lengths {
  std::size_t key = 0;
  std::size_t extras = 0;
  std::uint64_t body = 0;

  std::size_t head() const noexcept { return kHeaderBytes + extras + key; }
  std::uint64_t value() const noexcept { return body - extras - key; }
};

constexpr std::size_t kExptimeBytes = 4;
constexpr std::size_t kArithBytes = 20;
constexpr std::size_t kStorageBytes = 8;

bool is_fitting(Shape shape, const Lengths& lengths) noexcept {
  const bool has_key = lengths.key != 0;
  const bool has_value = lengths.value() != 0;
  switch (shape) {
    case Shape::Unknown:
      return true;
    case Shape::Bare:
      return lengths.body == 0;
    case Shape::Key:
      return has_key && !has_value && lengths.extras == 0;
    case Shape::KeyMaybe:
      return !has_value && lengths.extras == 0;
    case Shape::Touch:
      return has_key && !has_value && lengths.extras == kExptimeBytes;
    case Shape::Arith:
      return has_key && !has_value && lengths.extras == kArithBytes;
    case Shape::Storage:
      return has_key && lengths.extras == kStorageBytes;
    case Shape::Join:
      return has_key && lengths.extras == 0;
    case Shape::Flush:
      return !has_key && !has_value && (lengths.extras == 0 || lengths.extras == kExptimeBytes);
    case Shape::Level:
      return !has_key && !has_value && lengths.extras == kExptimeBytes;
    case Shape::Auth:
      return has_key && lengths.extras == 0 && lengths.value() <= kAuthValueBytesMax;
  }
  return false;
}

}  // namespace

Status status_of(RequestError error) noexcept {
  switch (error) {
    case RequestError::BadArguments:
      return Status::InvalidArguments;
    case RequestError::TooLarge:
      return Status::TooLarge;
    default:
      return Status::UnknownCommand;
  }
}

base::Parsed<Request, ParseFailure> parse_request(std::string_view bytes,
                                                  const memcache::ParserLimits& limits) noexcept {
  if (!bytes.empty() && bytes.front() != kRequestMagic) {
    ParseFailure failure;
    failure.size_bytes = 1;
    return Outcome::failed(failure);
  }
  if (bytes.size() < kHeaderBytes) {
    return Outcome::need_more();
  }
  Request request;
  request.opcode = static_cast<Opcode>(bytes[1]);
  request.order = order_of(request.opcode);
  request.opaque = read_big_endian<std::uint32_t>(bytes.substr(12));
  request.cas = read_big_endian<std::uint64_t>(bytes.substr(16));
  const Lengths lengths{.key = read_big_endian<std::uint16_t>(bytes.substr(2)),
                        .extras = static_cast<unsigned char>(bytes[4]),
                        .body = read_big_endian<std::uint32_t>(bytes.substr(8))};
  ParseFailure failure;
  failure.opcode = request.opcode;
  failure.opaque = request.opaque;
  failure.size_bytes = kHeaderBytes;
  if (lengths.key + lengths.extras > lengths.body) {
    failure.error = RequestError::BadLengths;
    return Outcome::failed(failure);
  }
  failure.skip_bytes = lengths.body;
  if (request.order.shape == Shape::Unknown) {
    failure.error = RequestError::UnknownOpcode;
    return Outcome::failed(failure);
  }
  if (lengths.key > memcache::kKeyBytesMax || !is_fitting(request.order.shape, lengths)) {
    failure.error = RequestError::BadArguments;
    return Outcome::failed(failure);
  }
  request.value_bytes = lengths.value();
  const bool is_item = request.order.shape != Shape::Auth;  // Which has a limit of its own.
  const bool is_too_large = is_item && request.value_bytes > limits.value_bytes_max;
  request.has_complete_value = !is_item || request.value_bytes <= limits.stream_bytes_min;
  // No overflow: a length of the wire has 32 bits.
  request.size_bytes = lengths.head();
  if (request.has_complete_value && !is_too_large) {
    request.size_bytes += static_cast<std::size_t>(request.value_bytes);
  }
  if (bytes.size() < request.size_bytes) {
    return Outcome::need_more();
  }
  request.extras = bytes.substr(kHeaderBytes, lengths.extras);
  request.key = bytes.substr(kHeaderBytes + lengths.extras, lengths.key);
  if (is_too_large) {
    failure.error = RequestError::TooLarge;
    failure.key = request.key;
    failure.size_bytes = request.size_bytes;
    failure.skip_bytes = request.value_bytes;
    return Outcome::failed(failure);
  }
  if (request.has_complete_value) {
    request.value = bytes.substr(lengths.head(), static_cast<std::size_t>(request.value_bytes));
  }
  return Outcome::done(request);
}

}  // namespace kvferry::memcache_binary
