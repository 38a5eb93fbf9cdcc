#include "route/store_target.h"

#include <memory>

#include "base/check.h"
#include "protocol/memcache/number.h"
#include "protocol/memcache/storage_args.h"
#include "route/store_replies.h"

namespace kvferry::route {

namespace {

using memcache::Command;
using memcache::ReplyCode;

/// What one key of a retrieval can add to the text: its line, a value that is not large, line ends
/// and END.
constexpr std::size_t kEntryBytesMax = 512 + store::kInlineBytesMax;
static_assert(kEntryBytesMax * 2 < ReplyText::kCapacityBytes);

store::StoreMode mode_of(Command command) {
  switch (command) {
    case Command::Add:
      return store::StoreMode::Add;
    case Command::Replace:
      return store::StoreMode::Replace;
    case Command::Append:
      return store::StoreMode::Append;
    case Command::Prepend:
      return store::StoreMode::Prepend;
    case Command::Cas:
      return store::StoreMode::Cas;
    default:
      return store::StoreMode::Set;
  }
}

}  // namespace

StoreTarget::StoreTarget(store::Store& store, base::MemoryBudget& budget,
                         const StoreTargetOptions& options)
    : store_(store),
      options_(options),
      events_(options.watch),
      deliveries_(sizeof(Delivery), budget),
      uploads_(sizeof(Upload), budget) {}

StoreTarget::~StoreTarget() = default;

void StoreTarget::send(call::Call& call, const memcache::Request& request) {
  if (is_observed()) [[unlikely]] {
    observe(call, request);
  }
  switch (request.command) {
    case Command::Get:
    case Command::Gets:
    case Command::Gat:
    case Command::Gats:
      return on_retrieval(call, request);
    case Command::Set:
    case Command::Add:
    case Command::Replace:
    case Command::Append:
    case Command::Prepend:
    case Command::Cas:
      return on_storage(call, request);
    case Command::Mg:
    case Command::Ms:
    case Command::Md:
    case Command::Ma:
    case Command::Me:
      return on_meta(call, request);
    case Command::Incr:
    case Command::Decr:
      return on_arith(call, request);
    case Command::Touch:
      return on_touch(call, request);
    case Command::Delete:
      return on_delete(call, request);
    case Command::FlushAll:
      return on_flush_all(call, request);
    case Command::LruCrawler:
      return on_dump(call, request);
    case Command::Mn:
      call::answer(call, "MN\r\n", ReplyCode::MetaMn);
      return;
    default:
      call::answer(call, "ERROR\r\n", ReplyCode::Error);
      return;
  }
}

void StoreTarget::forget(std::string_view key) {
  if (!key.empty() && key.size() <= store::kKeyBytesMax) {
    store_.remove(store::Key(key), store::DeleteOptions{}, now_);
  }
}

void StoreTarget::on_value_too_large(std::string_view key) {
  stats_.count(StoreCount::TooLarge);
  forget(key);
}

void StoreTarget::trim() noexcept {
  deliveries_.trim();
  uploads_.trim();
}

void StoreTarget::answer_text(call::Call& call, ReplyCode code) {
  call::answer(call, text_.take(), code);
}

// Retrieval.

struct StoreTarget::GetVisit {
  StoreTarget& target;
  call::Call& call;
  Retrieval& retrieval;
  Delivery*& delivery;

  void on_item(const store::ItemView& item) {
    ReplyText& text = target.text_;
    text.add("VALUE ");
    text.add(item.key);
    text.add(' ');
    text.add_number(item.client_flags);
    text.add(' ');
    text.add_number(item.value_bytes);
    if (retrieval.has_cas) {
      text.add(' ');
      text.add_number(item.cas);
    }
    text.add("\r\n");
    if (item.is_large) {
      target.need_delivery(call, delivery).take_value(item);
      return;
    }
    text.add(item.value);
    text.add("\r\n");
  }
};

void StoreTarget::on_retrieval(call::Call& call, const memcache::Request& request) {
  Retrieval retrieval;
  retrieval.keys = memcache::KeyWalker(request.keys);
  retrieval.has_cas = request.command == Command::Gets || request.command == Command::Gats;
  retrieval.is_touch = request.command == Command::Gat || request.command == Command::Gats;
  if (retrieval.is_touch) {
    const memcache::TouchArgs args = memcache::parse_touch_args(request);
    if (args.error != memcache::ArgsError::None) {
      call::answer(call, memcache::args_error_line(args.error), ReplyCode::ClientError);
      return;
    }
    retrieval.exptime = store::instant_of_exptime(args.exptime, now_);
  }
  continue_retrieval(call, &retrieval, nullptr);
}

void StoreTarget::continue_retrieval(call::Call& call, Retrieval* retrieval, Delivery* delivery) {
  for (;;) {
    if (delivery != nullptr && delivery->has_value_ && !send_value(*delivery)) {
      return;  // Paused; resume() comes back here.
    }
    const std::string_view key = retrieval->keys.next();
    if (key.empty()) {
      break;
    }
    look_up(key, *retrieval, call, delivery);
    const bool is_full = text_.room_bytes() < kEntryBytesMax;
    if (is_full) {
      need_delivery(call, delivery);
    }
    if (delivery != nullptr && retrieval != &delivery->retrieval_) {
      delivery->retrieval_ = *retrieval;
      retrieval = &delivery->retrieval_;
    }
    if (is_full && send_part(call, *retrieval, text_.take(), false) == call::Flow::Pause) {
      delivery->keep_keys();
      return;
    }
  }
  if (!retrieval->is_meta) {
    text_.add("END\r\n");
  }
  Retrieval last = *retrieval;
  if (delivery != nullptr) {
    release(*delivery);
  }
  send_part(call, last, text_.take(), true);
}

void StoreTarget::look_up(std::string_view key, Retrieval& retrieval, call::Call& call,
                          Delivery*& delivery) {
  GetVisit visit{*this, call, retrieval, delivery};
  store::ReadOptions options;
  if (retrieval.is_touch) {
    options.exptime = retrieval.exptime;
  }
  const store::ReadResult result = store_.read(store::Key(key), options, now_,
                                               store::ItemVisitor::to<&GetVisit::on_item>(&visit));
  retrieval.has_hit = retrieval.has_hit || result.status == store::ReadStatus::Hit;
  count_read(result, retrieval.is_touch);
}

void StoreTarget::count_read(const store::ReadResult& result, bool is_touch) {
  const bool is_hit = result.status == store::ReadStatus::Hit;
  stats_.count(StoreCount::CmdGet);
  if (is_touch) {
    stats_.count(StoreCount::CmdTouch);
    stats_.count(is_hit ? StoreCount::TouchHits : StoreCount::TouchMisses);
  } else {
    stats_.count(is_hit ? StoreCount::GetHits : StoreCount::GetMisses);
  }
  if (!is_hit && result.miss != store::Miss::Absent) {
    stats_.count(result.miss == store::Miss::Expired ? StoreCount::GetExpired
                                                     : StoreCount::GetFlushed);
  }
}

bool StoreTarget::send_value(Delivery& delivery) {
  call::Call& call = *delivery.call_;
  for (;;) {
    const std::string_view bytes = text_.empty() ? delivery.pieces_.take() : text_.take();
    if (bytes.empty()) {
      break;
    }
    if (send_part(call, delivery.retrieval_, bytes, false) == call::Flow::Pause) {
      delivery.keep_keys();
      return false;
    }
  }
  delivery.has_value_ = false;
  delivery.pieces_.release();
  text_.add(std::string_view(delivery.rest_.data(), delivery.rest_bytes_));
  text_.add("\r\n");
  return true;
}

call::Flow StoreTarget::send_part(call::Call& call, Retrieval& retrieval, std::string_view bytes,
                                  bool is_last) {
  const bool is_first = !retrieval.has_begun;
  retrieval.has_begun = true;
  if (!is_last) {
    // A write behind this request must not change what its other keys will bring.
    call.is_half_done = !retrieval.keys.rest().empty();
  }
  const ReplyCode of_values = retrieval.has_hit ? ReplyCode::Value : ReplyCode::End;
  return call.sink->on_reply(
      call, call::ReplyPart{.bytes = bytes,
                            .code = retrieval.is_meta ? ReplyCode::MetaVa : of_values,
                            .is_first = is_first,
                            .is_last = is_last});
}

Delivery& StoreTarget::need_delivery(call::Call& call, Delivery*& delivery) {
  if (delivery == nullptr) {
    delivery = std::construct_at(static_cast<Delivery*>(deliveries_.acquire()), *this, call);
    call.source = delivery;
  }
  return *delivery;
}

void StoreTarget::release(Delivery& delivery) noexcept {
  delivery.~Delivery();
  deliveries_.release(&delivery);
}

void StoreTarget::release(Upload& upload) noexcept {
  upload.~Upload();
  uploads_.release(&upload);
}

// Storing.

void StoreTarget::on_storage(call::Call& call, const memcache::Request& request) {
  const memcache::StorageArgs args = memcache::parse_storage_args(request);
  if (args.error != memcache::ArgsError::None) {
    call::answer(call, memcache::args_error_line(args.error), ReplyCode::ClientError);
    return;
  }
  StorageOrder order;
  order.key = request.key;
  order.options.mode = mode_of(request.command);
  order.options.client_flags = args.client_flags;
  order.options.exptime = store::instant_of_exptime(args.exptime, now_);
  order.options.has_compare_cas = request.command == Command::Cas;
  order.options.compare_cas = args.cas_unique;
  run_storage(call, request, order);
}

void StoreTarget::run_storage(call::Call& call, const memcache::Request& request,
                              const StorageOrder& order) {
  if (!request.has_complete_value) {
    begin_upload(call, order, request.value_bytes);
    return;
  }
  const store::StoreResult result =
      store_.store(store::Key(order.key), order.options, request.value, now_);
  answer_stored(call, order, result);
}

void StoreTarget::begin_upload(call::Call& call, const StorageOrder& order,
                               std::uint64_t value_bytes) {
  store::PendingValue pending;
  if (value_bytes > store::kInlineBytesMax) {
    const store::StoreStatus status =
        store_.begin_value(store::Key(order.key), value_bytes, pending);
    if (status != store::StoreStatus::Stored) {
      if (order.options.mode == store::StoreMode::Set) {
        forget(order.key);
      }
      answer_stored(call, order, store::StoreResult{.status = status, .value_bytes = value_bytes});
      return;
    }
  }
  auto* const upload =
      std::construct_at(static_cast<Upload*>(uploads_.acquire()), *this, order, value_bytes);
  upload->pending_ = std::move(pending);
  call.body_sink = upload;
}

void StoreTarget::finish_upload(call::Call& call, Upload& upload) {
  if (!upload.is_end_good_ || upload.missing_bytes_ > 0) {
    release(upload);
    call::answer(call, "CLIENT_ERROR bad data chunk\r\n", ReplyCode::ClientError);
    return;
  }
  const StorageOrder& order = upload.order_;
  const store::Key key(order.key);
  store::StoreResult result{.status = store::StoreStatus::NoMemory,
                            .value_bytes = upload.value_bytes_};
  if (upload.is_small()) {
    const std::string_view value(upload.small_.data(),
                                 static_cast<std::size_t>(upload.value_bytes_));
    result = store_.store(key, order.options, value, now_);
  } else if (upload.has_memory_) {
    result = store_.store(key, order.options, upload.pending_, now_);
  } else if (order.options.mode == store::StoreMode::Set) {
    forget(order.key);
  }
  // Composed before the upload goes, since it holds the key; sent after, since nothing may be held
  // when the last part is out.
  const ReplyCode code = compose_stored(call, order, result);
  release(upload);
  answer_text(call, code);
}

void StoreTarget::answer_stored(call::Call& call, const StorageOrder& order,
                                const store::StoreResult& result) {
  const ReplyCode code = compose_stored(call, order, result);
  answer_text(call, code);
}

ReplyCode StoreTarget::compose_stored(const call::Call& call, const StorageOrder& order,
                                      const store::StoreResult& result) {
  count_stored(order, result);
  if (events_.wants(watch::Stream::Mutations)) [[unlikely]] {
    report_stored(call, order, result);
  }
  if (order.is_meta) {
    return compose_meta_stored(order, result);
  }
  const Line line = line_of(result.status);
  text_.add(line.text);
  return line.code;
}

void StoreTarget::count_stored(const StorageOrder& order, const store::StoreResult& result) {
  using store::StoreStatus;
  if (result.status == StoreStatus::TooLarge) {
    stats_.count(StoreCount::TooLarge);
    return;
  }
  if (result.status == StoreStatus::NoMemory) {
    stats_.count(StoreCount::NoMemory);
    return;
  }
  stats_.count(StoreCount::CmdSet);
  if (order.options.mode == store::StoreMode::Cas) {
    stats_.count(result.status == StoreStatus::Stored     ? StoreCount::CasHits
                 : result.status == StoreStatus::NotFound ? StoreCount::CasMisses
                                                          : StoreCount::CasBadval);
  }
}

// Other classic commands.

void StoreTarget::on_arith(call::Call& call, const memcache::Request& request) {
  const memcache::ArithArgs args = memcache::parse_arith_args(request);
  if (args.error != memcache::ArgsError::None) {
    call::answer(call, memcache::args_error_line(args.error), ReplyCode::ClientError);
    return;
  }
  const bool is_decrement = request.command == Command::Decr;
  const store::ArithResult result = store_.add_delta(
      store::Key(request.key),
      store::ArithOptions{.is_decrement = is_decrement, .delta = args.delta}, now_);
  count_arith(result.status, is_decrement);
  if (result.status == store::ArithStatus::Done) {
    text_.add_number(result.number);
    text_.add("\r\n");
    answer_text(call, ReplyCode::Number);
    return;
  }
  const Line line = line_of(result.status);
  call::answer(call, line.text, line.code);
}

void StoreTarget::count_arith(store::ArithStatus status, bool is_decrement) {
  if (status == store::ArithStatus::Done) {
    stats_.count(is_decrement ? StoreCount::DecrHits : StoreCount::IncrHits);
  } else if (status == store::ArithStatus::NotFound) {
    stats_.count(is_decrement ? StoreCount::DecrMisses : StoreCount::IncrMisses);
  }
}

void StoreTarget::on_touch(call::Call& call, const memcache::Request& request) {
  const memcache::TouchArgs args = memcache::parse_touch_args(request);
  if (args.error != memcache::ArgsError::None) {
    call::answer(call, memcache::args_error_line(args.error), ReplyCode::ClientError);
    return;
  }
  const store::TouchStatus status =
      store_.touch(store::Key(request.key), store::instant_of_exptime(args.exptime, now_), now_);
  stats_.count(StoreCount::CmdTouch);
  stats_.count(status == store::TouchStatus::NotFound ? StoreCount::TouchMisses
                                                      : StoreCount::TouchHits);
  const Line line = line_of(status);
  call::answer(call, line.text, line.code);
}

void StoreTarget::on_delete(call::Call& call, const memcache::Request& request) {
  // An old form had a time here, and noreply may follow; more words are no form of it.
  if (!memcache::token_at(request.line_text(), 4).empty()) {
    call::answer(call, "CLIENT_ERROR bad command line format\r\n", ReplyCode::ClientError);
    return;
  }
  const store::DeleteResult result =
      store_.remove(store::Key(request.key), store::DeleteOptions{}, now_);
  const bool is_done = result.status == store::DeleteStatus::Done;
  if (is_done && events_.wants(watch::Stream::Deletions)) [[unlikely]] {
    report_deleted(request.key, "delete", result);
  }
  stats_.count(is_done ? StoreCount::DeleteHits : StoreCount::DeleteMisses);
  call::answer(call, is_done ? "DELETED\r\n" : "NOT_FOUND\r\n",
               is_done ? ReplyCode::Deleted : ReplyCode::NotFound);
}

void StoreTarget::on_flush_all(call::Call& call, const memcache::Request& request) {
  if (!options_.is_flush_enabled) {
    call::answer(call, "CLIENT_ERROR flush_all not allowed\r\n", ReplyCode::ClientError);
    return;
  }
  const std::string_view word = memcache::token_at(request.line_text(), 1);
  std::int32_t delay = 0;
  if (!word.empty() && word != "noreply" && !memcache::read_number(word, delay)) {
    call::answer(call, "CLIENT_ERROR invalid exptime argument\r\n", ReplyCode::ClientError);
    return;
  }
  stats_.count(StoreCount::CmdFlush);
  const store::Instant when = store::instant_of_exptime(delay, now_);
  store_.flush(when, now_);
  if (options_.near_stores != nullptr) {
    options_.near_stores->flush(when, now_);
  }
  call::answer(call, "OK\r\n", ReplyCode::Ok);
}

}  // namespace kvferry::route
