#include "route/near_copies.h"

#include <array>
#include <cstring>

namespace kvferry::route {

namespace {

/// What stands before the value of a copy.
struct CopyHead {
  std::int64_t fresh_until_us;  // Of the steady clock.
  std::uint64_t cas;
  std::uint32_t client_flags;
  std::uint32_t known;  // Bits of Known.
};
enum Known : std::uint32_t { kKnowsFlags = 1, kKnowsCas = 2 };

std::int64_t micros_of(base::SteadyTime time) {
  return std::chrono::duration_cast<base::Micros>(time.time_since_epoch()).count();
}

bool is_fresh(std::string_view bytes, base::SteadyTime now) {
  CopyHead head{};
  if (bytes.size() < sizeof(head)) {
    return false;  // A reservation.
  }
  std::memcpy(&head, bytes.data(), sizeof(head));
  return micros_of(now) < head.fresh_until_us;
}

/// False: it is not fresh.
bool parse(std::string_view bytes, base::SteadyTime now, NearItem& item) {
  if (!is_fresh(bytes, now)) {
    return false;
  }
  CopyHead head{};
  std::memcpy(&head, bytes.data(), sizeof(head));
  item.value = bytes.substr(sizeof(head));
  if ((head.known & kKnowsFlags) != 0) {
    item.client_flags = head.client_flags;
  }
  if ((head.known & kKnowsCas) != 0) {
    item.cas = head.cas;
  }
  return true;
}

void trim(std::string& buffer) {
  if (buffer.capacity() > kNearBufferBytesKept) {
    buffer = std::string();
  }
}

}  // namespace

/// Takes the item while it is locked; what is large is only pinned.
struct NearCopies::Visit {
  std::string& bytes;
  std::string& rest;  // What lies behind the pieces.
  base::SteadyTime now;
  Token token = kNoToken;
  store::ItemRef pieces{};

  void on_item(const store::ItemView& item) {
    token = item.cas;
    if (item.is_large) {
      pieces = item.pin();
      rest.assign(item.value);
    } else if (is_fresh(item.value, now)) {
      bytes.assign(item.value);
    }
  }
};

NearCopies::Found NearCopies::look_up(std::string_view key, base::SteadyTime now) {
  trim(found_);
  found_.clear();
  Visit visit{.bytes = found_, .rest = rest_, .now = now};
  const store::Instant store_now = clock_.now();
  const store::ReadOptions options{.vivify = store::Instant{store_now.get() + kReservationSeconds}};
  store_->read(store::Key(key), options, store_now,
               store::ItemVisitor::to<&Visit::on_item>(&visit));
  if (visit.pieces) {
    while (visit.pieces.has_more()) {
      found_.append(visit.pieces.take());
      if (!is_fresh(found_, now)) {
        break;
      }
    }
    found_.append(rest_);
  }
  Found found{.token = visit.token};
  NearItem item;
  if (parse(found_, now, item)) {
    found.item = item;
  }
  return found;
}

void NearCopies::fill(std::string_view key, Token token, const NearItem& item,
                      base::SteadyTime read_at) {
  const CopyHead head{
      .fresh_until_us = micros_of(read_at + options_.ttl),
      .cas = item.cas.value_or(0),
      .client_flags = item.client_flags.value_or(0),
      .known = (item.client_flags ? kKnowsFlags : 0U) | (item.cas ? kKnowsCas : 0U),
  };
  std::array<char, sizeof(head)> head_bytes{};
  std::memcpy(head_bytes.data(), &head, sizeof(head));
  written_.assign(head_bytes.data(), head_bytes.size());
  written_.append(item.value);
  const store::Instant now = clock_.now();
  const auto seconds = std::chrono::ceil<base::Seconds>(options_.ttl).count();
  // The store counts seconds, and its clock is not ours: one second more, and the head decides.
  const store::StoreOptions options{
      .mode = store::StoreMode::Cas,
      .has_compare_cas = true,
      .exptime = store::Instant{now.get() + static_cast<std::uint32_t>(seconds) + 1},
      .compare_cas = token};
  store_->store(store::Key(key), options, written_, now);
  trim(written_);
}

void NearCopies::give_up(std::string_view key, Token token) {
  store_->remove(store::Key(key),
                 store::DeleteOptions{.has_compare_cas = true, .compare_cas = token}, clock_.now());
}

void NearCopies::forget(std::string_view key) {
  if (can_keep(key)) {
    store_->remove(store::Key(key), store::DeleteOptions{}, clock_.now());
  }
}

}  // namespace kvferry::route
