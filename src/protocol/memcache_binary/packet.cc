#include "protocol/memcache_binary/packet.h"

#include <algorithm>

namespace kvferry::memcache_binary {
namespace {

constexpr std::size_t kKeyLengthAt = 2;
constexpr std::size_t kExtrasLengthAt = 4;
constexpr std::size_t kStatusAt = 6;
constexpr std::size_t kBodyLengthAt = 8;
constexpr std::size_t kOpaqueAt = 12;
constexpr std::size_t kCasAt = 16;

constexpr std::size_t kOpcodeCount = static_cast<std::size_t>(Opcode::GatKQ) + 1;

constexpr Order loud(Opcode opcode, Shape shape) {
  return {.plain = opcode, .shape = shape};
}
constexpr Order quiet(Opcode plain, Shape shape) {
  return {.plain = plain, .shape = shape, .is_quiet = true};
}
constexpr Order keyed(Opcode plain, Shape shape, bool is_quiet) {
  return {.plain = plain, .shape = shape, .is_quiet = is_quiet, .returns_key = true};
}

constexpr std::array<Order, kOpcodeCount> make_orders() {
  std::array<Order, kOpcodeCount> orders{};
  const auto set = [&orders](Opcode opcode, const Order& order) {
    orders[static_cast<std::size_t>(opcode)] = order;
  };
  const auto pair = [&set](Opcode opcode, Opcode quiet_opcode, Shape shape) {
    set(opcode, loud(opcode, shape));
    set(quiet_opcode, quiet(opcode, shape));
  };
  pair(Opcode::Get, Opcode::GetQ, Shape::Key);
  pair(Opcode::Set, Opcode::SetQ, Shape::Storage);
  pair(Opcode::Add, Opcode::AddQ, Shape::Storage);
  pair(Opcode::Replace, Opcode::ReplaceQ, Shape::Storage);
  pair(Opcode::Delete, Opcode::DeleteQ, Shape::Key);
  pair(Opcode::Increment, Opcode::IncrementQ, Shape::Arith);
  pair(Opcode::Decrement, Opcode::DecrementQ, Shape::Arith);
  pair(Opcode::Quit, Opcode::QuitQ, Shape::Bare);
  pair(Opcode::Flush, Opcode::FlushQ, Shape::Flush);
  pair(Opcode::Append, Opcode::AppendQ, Shape::Join);
  pair(Opcode::Prepend, Opcode::PrependQ, Shape::Join);
  pair(Opcode::Gat, Opcode::GatQ, Shape::Touch);
  set(Opcode::GetK, keyed(Opcode::Get, Shape::Key, false));
  set(Opcode::GetKQ, keyed(Opcode::Get, Shape::Key, true));
  set(Opcode::GatK, keyed(Opcode::Gat, Shape::Touch, false));
  set(Opcode::GatKQ, keyed(Opcode::Gat, Shape::Touch, true));
  set(Opcode::Noop, loud(Opcode::Noop, Shape::Bare));
  set(Opcode::Version, loud(Opcode::Version, Shape::Bare));
  set(Opcode::Stat, loud(Opcode::Stat, Shape::KeyMaybe));
  set(Opcode::Verbosity, loud(Opcode::Verbosity, Shape::Level));
  set(Opcode::Touch, loud(Opcode::Touch, Shape::Touch));
  set(Opcode::SaslListMechs, loud(Opcode::SaslListMechs, Shape::Bare));
  set(Opcode::SaslAuth, loud(Opcode::SaslAuth, Shape::Auth));
  set(Opcode::SaslStep, loud(Opcode::SaslStep, Shape::Auth));
  return orders;
}

constexpr std::array<Order, kOpcodeCount> kOrders = make_orders();

template <typename Number>
void put(HeaderBytes& header, std::size_t at, Number number) noexcept {
  const auto bytes = big_endian(number);
  std::copy(bytes.begin(), bytes.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

std::string_view status_text(Status status) noexcept {
  switch (status) {
    case Status::NotFound:
      return "Not found";
    case Status::Exists:
      return "Data exists for key.";
    case Status::TooLarge:
      return "Too large.";
    case Status::InvalidArguments:
      return "Invalid arguments";
    case Status::NotStored:
      return "Not stored.";
    case Status::NonNumeric:
      return "Non-numeric server-side value for incr or decr";
    case Status::AuthError:
      return "Auth failure.";
    case Status::UnknownCommand:
      return "Unknown command";
    case Status::OutOfMemory:
      return "Out of memory";
    case Status::InternalError:
      return "Internal error";
    case Status::Ok:
      break;
  }
  return {};
}

Order order_of(Opcode opcode) noexcept {
  const auto index = static_cast<std::size_t>(opcode);
  return index < kOrders.size() ? kOrders[index] : Order{};
}

HeaderBytes compose_header(const ResponseHead& head) noexcept {
  HeaderBytes header{};
  header[0] = kResponseMagic;
  header[1] = static_cast<char>(head.opcode);
  put(header, kKeyLengthAt, static_cast<std::uint16_t>(head.key_bytes));
  header[kExtrasLengthAt] = static_cast<char>(head.extras_bytes);
  put(header, kStatusAt, static_cast<std::uint16_t>(head.status));
  put(header, kBodyLengthAt,
      static_cast<std::uint32_t>(head.extras_bytes + head.key_bytes + head.value_bytes));
  put(header, kOpaqueAt, head.opaque);
  put(header, kCasAt, head.cas);
  return header;
}

}  // namespace kvferry::memcache_binary
