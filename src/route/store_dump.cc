#include "route/store_dump.h"

#include <array>
#include <utility>

#include "protocol/memcache/base64.h"
#include "route/store_events.h"
#include "watch/streams.h"

namespace kvferry::route {
namespace {

/// Lines are handed on in parts of about this size.
constexpr std::size_t kPartBytes = std::size_t{16} * 1024;

}  // namespace

void StoreDump::on_item(const store::ItemView& item) {
  if (form_ == Form::Keys) {
    lines_ += "mg ";
    if (item.is_base64_key) {
      std::array<char, memcache::encoded_base64_bytes(store::kKeyBytesMax)> encoded{};
      lines_.append(memcache::encode_base64_key(item.key, encoded)).append(" b\r\n");
    } else {
      lines_.append(item.key).append("\r\n");
    }
    return;
  }
  lines_ += "key=";
  watch::append_uri(lines_, item.key);
  lines_ += " exp=";
  lines_ += item.exptime == store::kNever ? "-1" : std::to_string(item.exptime.get());
  lines_ += " la=" + std::to_string(now_.get() - item.idle_seconds);
  lines_ += " cas=" + std::to_string(item.cas);
  lines_ += item.was_fetched ? " fetch=yes" : " fetch=no";
  lines_ += " cls=" + std::to_string(kOnlyClass);
  lines_ += " size=" + std::to_string(item.footprint_bytes) + "\n";
}

void StoreDump::run(call::Call& call) {
  const auto visit = store::ItemVisitor::to<&StoreDump::on_item>(this);
  while (store_.walk(place_, now_, visit)) {
    if (lines_.size() < kPartBytes) {
      continue;
    }
    const std::string part = std::exchange(lines_, {});
    const bool is_first = !std::exchange(has_begun_, true);
    if (call.sink->on_reply(call, call::ReplyPart{.bytes = part,
                                                  .code = memcache::ReplyCode::Other,
                                                  .is_first = is_first,
                                                  .is_last = false,
                                                  .is_sure = true}) == call::Flow::Pause) {
      return;
    }
  }
  finish(call, std::exchange(lines_, {}) + (form_ == Form::Keys ? "EN\r\n" : "END\r\n"));
}

void StoreDump::finish(call::Call& call, const std::string& last) {
  const bool is_first = !has_begun_;
  finished_(*this);  // This object is gone now.
  call.sink->on_reply(call, call::ReplyPart{.bytes = last,
                                            .code = memcache::ReplyCode::Other,
                                            .is_first = is_first,
                                            .is_last = true});
}

void StoreDump::resume(call::Call& call) {
  run(call);
}

void StoreDump::discard(call::Call& call) {
  finish(call, {});
}

}  // namespace kvferry::route
