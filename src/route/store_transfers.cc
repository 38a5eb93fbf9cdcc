#include "route/store_transfers.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "route/store_target.h"

namespace kvferry::route {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

/// Copies `text` into `place` and returns the copy.
std::string_view keep(std::string_view text, std::span<char> place) noexcept {
  KVF_CHECK(text.size() <= place.size());
  text.copy(place.data(), text.size());
  return {place.data(), text.size()};
}

}  // namespace

void Delivery::take_value(const store::ItemView& item) noexcept {
  pieces_ = item.pin();
  rest_bytes_ = keep(item.value, rest_).size();
  has_value_ = true;
}

void Delivery::keep_keys() {
  if (!owns_keys_) {
    kept_keys_ = retrieval_.keys.rest();
    retrieval_.keys = memcache::KeyWalker(kept_keys_);
    owns_keys_ = true;
  }
}

void Delivery::resume(call::Call& call) {
  KVF_DCHECK(call_ == &call);
  target_.continue_retrieval(call, &retrieval_, this);
}

void Delivery::discard(call::Call& call) {
  KVF_DCHECK(call_ == &call);
  Retrieval retrieval = retrieval_;
  StoreTarget& target = target_;
  target.release(*this);  // This object is gone now.
  StoreTarget::send_part(call, retrieval, {}, true);
}

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): its texts are filled as used
Upload::Upload(StoreTarget& target, const StorageOrder& order, std::uint64_t value_bytes) noexcept
    : target_(target), order_(order), value_bytes_(value_bytes), missing_bytes_(value_bytes) {
  order_.key = keep(order.key, key_text_);
  order_.flags.opaque = keep(order.flags.opaque, opaque_text_);
}

bool Upload::take(std::string_view bytes) noexcept {
  if (!is_small()) {
    return pending_.append(bytes, target_.now());
  }
  bytes.copy(small_.data() + (value_bytes_ - missing_bytes_), bytes.size());
  return true;
}

call::Flow Upload::on_body(call::Call& call, std::string_view bytes, bool is_last) {
  const auto value_part =
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), missing_bytes_));
  if (value_part > 0 && has_memory_ && !take(bytes.substr(0, value_part))) {
    // The rest is read and dropped, so that the answer comes in its place.
    has_memory_ = false;
    pending_.drop();
  }
  missing_bytes_ -= value_part;
  for (const char byte : bytes.substr(value_part)) {
    is_end_good_ = is_end_good_ && end_bytes_ < kLineEnd.size() && byte == kLineEnd[end_bytes_];
    ++end_bytes_;
  }
  if (is_last) {
    target_.finish_upload(call, *this);
  }
  return call::Flow::Continue;
}

void Upload::on_body_lost(call::Call& call) {
  is_end_good_ = false;
  target_.finish_upload(call, *this);
}

}  // namespace kvferry::route
