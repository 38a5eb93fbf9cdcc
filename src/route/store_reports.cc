// What StoreTarget shows to those that look on: watchers, counters by prefix, and dumps.
#include <algorithm>
#include <array>

#include "protocol/memcache/base64.h"
#include "route/store_target.h"

namespace kvferry::route {

using memcache::Command;
using memcache::ReplyCode;

namespace {

struct SizeVisit {
  std::uint32_t value_bytes = 0;
  void on_item(const store::ItemView& item) { value_bytes = item.value_bytes; }
};

}  // namespace

/// Looks at the keys of `request` as they are before it: memcached reports one look-up for each.
void StoreTarget::observe(const call::Call& call, const memcache::Request& request) {
  std::array<char, memcache::kDecodedKeyBytesMax> decoded{};
  memcache::KeyWalker keys(request.keys);
  for (std::string_view key = keys.next(); !key.empty(); key = keys.next()) {
    if (request.base64_key) {
      const auto plain = memcache::decode_base64_key(key, decoded);
      if (!plain.has_value()) {
        return;  // The command will say so.
      }
      key = *plain;
    }
    if (!key.empty() && key.size() <= store::kKeyBytesMax) {
      observe_key(request.command, call.client_fd, key);
    }
  }
}

void StoreTarget::observe_key(memcache::Command command, int client_fd, std::string_view key) {
  SizeVisit visit;
  const store::ReadResult result =
      store_.read(store::Key(key), store::ReadOptions{.is_use = false}, now_,
                  store::ItemVisitor::to<&SizeVisit::on_item>(&visit));
  if (events_.wants(watch::Stream::Fetchers)) {
    events_.write_fetch(key, result, visit.value_bytes, client_fd);
  }
  PrefixStats* const prefixes = options_.prefixes;
  if (prefixes == nullptr || !prefixes->is_on()) {
    return;
  }
  if (memcache::is_retrieval(command) || command == Command::Mg) {
    prefixes->count_get(key, result.status == store::ReadStatus::Hit);
  } else if (memcache::has_value(command)) {
    prefixes->count_set(key);
  } else if (command == Command::Delete || command == Command::Md) {
    prefixes->count_delete(key);
  }
}

void StoreTarget::report_stored(const call::Call& call, const StorageOrder& order,
                                const store::StoreResult& result) const {
  events_.write_store(StoreEvents::Stored{.key = order.key,
                                          .mode = order.options.mode,
                                          .exptime = order.options.exptime,
                                          .status = result.status,
                                          .value_bytes = result.value_bytes},
                      now_, call.client_fd);
}

void StoreTarget::report_deleted(std::string_view key, std::string_view command,
                                 const store::DeleteResult& result) const {
  events_.write_delete(key, command, result.value_bytes);
}

/// lru_crawler metadump <classes>, lru_crawler mgdump <classes>: with one class any list is all.
void StoreTarget::on_dump(call::Call& call, const memcache::Request& request) {
  const std::string_view word = memcache::token_at(request.line_text(), 1);
  const bool is_meta = word == "metadump";
  if ((!is_meta && word != "mgdump") || memcache::token_at(request.line_text(), 2).empty()) {
    call::answer(call, "ERROR\r\n", ReplyCode::Error);
    return;
  }
  if (!options_.is_dump_enabled) {
    call::answer(call, "ERROR metadump not allowed\r\n", ReplyCode::Error);
    return;
  }
  dumps_.push_back(
      std::make_unique<StoreDump>(store_, is_meta ? StoreDump::Form::Meta : StoreDump::Form::Keys,
                                  now_, StoreDump::Finished::to<&StoreTarget::forget_dump>(this)));
  call.source = dumps_.back().get();
  dumps_.back()->run(call);
}

void StoreTarget::forget_dump(StoreDump& dump) {
  std::erase_if(dumps_, [&](const auto& each) { return each.get() == &dump; });
}

}  // namespace kvferry::route
