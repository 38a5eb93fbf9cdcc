#include "pool/redis_scan.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "pool/failure_text.h"
#include "pool/merge_text.h"
#include "protocol/resp/array_walker.h"
#include "protocol/resp/integer.h"
#include "protocol/resp/request_writer.h"

namespace kvferry::pool {

using call::Call;
using call::Flow;
using call::ReplyPart;
using memcache::ReplyCode;
using redis::Request;

namespace {

constexpr std::string_view kOver = "*2\r\n$1\r\n0\r\n*0\r\n";

/// Indexes of the backends, by label.
std::vector<std::uint32_t> shards_in_order(const RedisScan::Kept& kept) {
  std::vector<std::uint32_t> order(kept.list().size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t left, std::uint32_t right) {
    return kept.list()[left]->server().label < kept.list()[right]->server().label;
  });
  return order;
}

/// FNV-1a over the labels, each with an end of its own, folded.
std::uint32_t fingerprint_of(const RedisScan::Kept& kept, const std::vector<std::uint32_t>& order) {
  std::uint32_t hash = 2166136261U;
  const auto mix = [&hash](unsigned char byte) { hash = (hash ^ byte) * 16777619U; };
  for (const std::uint32_t index : order) {
    for (const char byte : kept.list()[index]->server().label) {
      mix(static_cast<unsigned char>(byte));
    }
    mix('\n');
  }
  return (hash ^ (hash >> 15U)) % ScanCursor::kFingerprints;
}

/// The bytes of "$3\r\nabc\r\n" between its ends.
std::string_view bulk_text(std::string_view bulk) {
  const std::size_t begin = bulk.find('\n') + 1;
  return bulk.size() < begin + 2 ? std::string_view() : bulk.substr(begin, bulk.size() - begin - 2);
}

}  // namespace

void RedisScan::start(const PoolContext& context, const Kept& kept, Call& parent,
                      const Request& request) {
  auto cursor = request.args.size() > 1 ? ScanCursor::parse(request.args[1]) : std::nullopt;
  if (!cursor) {
    call::answer(parent, "-ERR invalid cursor\r\n", ReplyCode::ServerError);
    return;
  }
  const std::vector<std::uint32_t> order = shards_in_order(kept);
  if (order.size() > ScanCursor::kShardsMax) {
    call::answer(parent,
                 "-ERR kvferry: the pool has too many shards for SCAN" +
                     redis_place(kept.options(), {}) + "\r\n",
                 ReplyCode::ServerError);
    return;
  }
  if (cursor->shard >= order.size()) {
    call::answer(parent, kOver, ReplyCode::Value);  // There were more shards once.
    return;
  }
  cursor->fingerprint = fingerprint_of(kept, order);
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): owns itself until the last part
  auto* const scan = new RedisScan(context, kept, parent, *cursor);
  parent.source = scan;
  scan->send(order[cursor->shard], request);
  // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): its call holds it
}

void RedisScan::send(std::uint32_t backend, const Request& request) {
  std::vector<std::string_view> words(request.args.begin(), request.args.end());
  const std::string cursor = std::to_string(cursor_.backend_cursor);
  words[1] = cursor;
  std::string bytes;
  resp::append_request(words, bytes);
  Call& call = context_.calls.acquire();
  call_ = &call;
  call.sink = this;
  call.started = parent_.started;
  call.lane = parent_.lane;
  call.command = parent_.command;
  call.client_fd = parent_.client_fd;
  kept_.list()[backend]->lane(request.version, request.database).forward(call, bytes);
}

std::string RedisScan::translate(std::string_view bytes) const {
  resp::ArrayWalker walker;
  const resp::ArrayWalker::Step head = walker.next(bytes);
  if (head.found != resp::ArrayWalker::Found::Head || walker.count() != 2) {
    return {};
  }
  bytes.remove_prefix(head.taken_bytes);
  const resp::ArrayWalker::Step element = walker.next(bytes);
  std::int64_t number = 0;
  const std::string_view text = bulk_text(bytes.substr(0, element.taken_bytes));
  if (element.found != resp::ArrayWalker::Found::Element || !resp::read_integer(text, number) ||
      number < 0 || static_cast<std::uint64_t>(number) > ScanCursor::kBackendCursorMax) {
    return {};
  }
  ScanCursor next = cursor_;
  next.backend_cursor = static_cast<std::uint64_t>(number);
  const bool is_shard_done = number == 0;
  next.shard += is_shard_done ? 1 : 0;
  const bool is_over = next.shard >= kept_.list().size();
  std::string out = "*2\r\n";
  resp::write_bulk(std::to_string(is_over ? 0 : next.number()),
                   [&](std::string_view piece) { out += piece; });
  return out += bytes.substr(element.taken_bytes);
}

Flow RedisScan::on_reply(Call& call, const ReplyPart& part) {
  Call& parent = parent_;
  ReplyPart passed = part;
  std::string first;
  if (part.is_first && !memcache::is_error(part.code)) {
    first = translate(part.bytes);
    is_bad_ = first.empty();
    passed.bytes = first;
  }
  if (is_bad_) {
    if (!part.is_last) {
      return Flow::Continue;
    }
    first = bad_part_line(kept_.options());
    passed = ReplyPart{
        .bytes = first, .code = ReplyCode::ServerError, .is_first = true, .is_last = true};
  }
  if (part.is_last) {
    context_.calls.release(call);
    delete this;  // NOLINT(cppcoreguidelines-owning-memory): see start()
  }
  return parent.sink->on_reply(parent, passed);
}

void RedisScan::on_blocked(Call& /*call*/) {
  parent_.sink->on_blocked(parent_);
}

void RedisScan::resume(Call& /*call*/) {
  call_->source->resume(*call_);
}

void RedisScan::discard(Call& /*call*/) {
  call_->source->discard(*call_);
}

}  // namespace kvferry::pool
