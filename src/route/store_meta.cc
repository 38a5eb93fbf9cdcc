// The meta commands of StoreTarget.
#include <array>
#include <charconv>
#include <limits>

#include "protocol/memcache/base64.h"
#include "protocol/memcache/meta_flags.h"
#include "route/meta_exptime.h"
#include "route/store_replies.h"
#include "route/store_target.h"

namespace kvferry::route {

namespace {

using memcache::Command;
using memcache::MetaError;
using memcache::MetaFlags;
using memcache::ReplyCode;

store::StoreMode mode_of(const MetaFlags& flags) {
  switch (flags.mode) {
    case 'E':
      return store::StoreMode::Add;
    case 'A':
      return store::StoreMode::Append;
    case 'P':
      return store::StoreMode::Prepend;
    case 'R':
      return flags.has('C') ? store::StoreMode::Cas : store::StoreMode::Replace;
    default:
      return flags.has('C') ? store::StoreMode::Cas : store::StoreMode::Set;
  }
}

void answer_error(call::Call& call, MetaError error) {
  call::answer(call, memcache::meta_error_line(error), ReplyCode::ClientError);
}

}  // namespace

void StoreTarget::on_meta(call::Call& call, const memcache::Request& request) {
  stats_.count(StoreCount::CmdMeta);
  const MetaFlags flags = memcache::parse_meta_flags(request);
  if (flags.error != MetaError::None) {
    answer_error(call, flags.error);
    return;
  }
  std::string_view key = request.key;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  std::array<char, memcache::kDecodedKeyBytesMax> decoded;
  if (flags.has('b')) {
    const auto plain = memcache::decode_base64_key(request.key, decoded);
    if (!plain.has_value() || plain->empty()) {
      answer_error(call, MetaError::BadKey);
      return;
    }
    key = *plain;
  }
  switch (request.command) {
    case Command::Mg:
      return on_meta_get(call, request, key, flags);
    case Command::Ms:
      return on_meta_set(call, request, key, flags);
    case Command::Md:
      return on_meta_delete(call, request, key, flags);
    case Command::Ma:
      return on_meta_arith(call, request, key, flags);
    default:
      return on_meta_debug(call, key);
  }
}

void StoreTarget::add_exptime(store::Instant exptime) {
  if (exptime == store::kNever) {
    text_.add(" t-1");
    return;
  }
  text_.add_flag('t', exptime > now_ ? exptime.get() - now_.get() : 0);
}

void StoreTarget::add_key(std::string_view key, bool is_base64) {
  if (!is_base64) {
    text_.add(key);
    return;
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  std::array<char, memcache::encoded_base64_bytes(store::kKeyBytesMax)> encoded;
  text_.add(memcache::encode_base64_key(key, encoded));
}

void StoreTarget::add_echoes(const MetaFlags& flags, char letter, std::string_view key,
                             bool is_base64) {
  if (letter == 'O') {
    text_.add(' ');
    text_.add(flags.opaque);
  } else if (letter == 'k') {
    text_.add(" k");
    add_key(key, is_base64);
    if (is_base64) {
      text_.add(" b");
    }
  }
}

// mg

struct StoreTarget::MetaGetVisit {
  StoreTarget& target;
  call::Call& call;
  const MetaFlags& flags;
  Delivery* delivery = nullptr;
  ReplyCode code = ReplyCode::MetaHd;

  void on_item(const store::ItemView& item) {
    ReplyText& text = target.text_;
    const bool is_same = flags.has('C') && flags.compare_cas == item.cas;
    const bool has_value = flags.has('v') && !is_same;
    if (has_value) {
      code = ReplyCode::MetaVa;
      text.add("VA ");
      text.add_number(item.value_bytes);
    } else {
      text.add("HD");
    }
    target.add_item_flags(item, flags);
    text.add("\r\n");
    if (!has_value) {
      return;
    }
    if (item.is_large) {
      target.need_delivery(call, delivery).take_value(item);
      return;
    }
    text.add(item.value);
    text.add("\r\n");
  }
};

void StoreTarget::add_item_flags(const store::ItemView& item, const MetaFlags& flags) {
  ShownExptime exptime(flags, now_, item.exptime_before, item.is_new);
  for (const char letter : flags.letters()) {
    switch (letter) {
      case 'N':
      case 'T':
        exptime.pass(letter);
        break;
      case 't':
        add_exptime(exptime.get());
        break;
      case 's':
        text_.add_flag('s', item.value_bytes);
        break;
      case 'f':
        text_.add_flag('f', item.client_flags);
        break;
      case 'c':
        text_.add_flag('c', item.cas);
        break;
      case 'h':
        text_.add_flag('h', item.was_fetched ? 1 : 0);
        break;
      case 'l':
        text_.add_flag('l', item.idle_seconds);
        break;
      default:
        add_echoes(flags, letter, item.key, item.is_base64_key);
        break;
    }
  }
  text_.add(item.was_won ? " Z" : "");
  text_.add(item.is_stale ? " X" : "");
  text_.add(item.has_won ? " W" : "");
}

void StoreTarget::on_meta_get(call::Call& call, const memcache::Request& request,
                              std::string_view key, const MetaFlags& flags) {
  store::ReadOptions options;
  options.is_use = !flags.has('u');
  options.is_leasing = true;
  options.is_base64_key = flags.has('b');
  options.vivify_cas = flags.new_cas;
  if (flags.has('T')) {
    options.exptime = store::instant_of_exptime(flags.exptime, now_);
  }
  if (flags.has('N')) {
    options.vivify = exptime_of_new(flags, now_);
  }
  if (flags.has('R')) {
    options.recache_below = store::instant_of_exptime(flags.recache_exptime, now_);
    options.recache_sees_exptime = is_before(flags, 'T', 'R');
  }
  MetaGetVisit visit{*this, call, flags};
  const store::ReadResult result = store_.read(
      store::Key(key), options, now_, store::ItemVisitor::to<&MetaGetVisit::on_item>(&visit));
  count_read(result, flags.has('T'));
  if (result.status == store::ReadStatus::NoMemory) {
    stats_.count(StoreCount::NoMemory);
    call::answer(call, kNoMemory.text, kNoMemory.code);
    return;
  }
  if (result.status == store::ReadStatus::Miss) {
    text_.add("EN");
    add_request_echoes(request, flags);
    text_.add("\r\n");
    answer_text(call, ReplyCode::MetaEn);
    return;
  }
  if (visit.delivery == nullptr) {
    answer_text(call, visit.code);
    return;
  }
  visit.delivery->retrieval_.is_meta = true;
  continue_retrieval(call, &visit.delivery->retrieval_, visit.delivery);
}

void StoreTarget::add_request_echoes(const memcache::Request& request, const MetaFlags& flags) {
  for (const char letter : flags.letters()) {
    if (letter == 'k') {
      // As asked with: there is no item that would know better.
      text_.add(" k");
      text_.add(request.key);
      text_.add(flags.has('b') ? " b" : "");
    } else {
      add_echoes(flags, letter, {}, false);
    }
  }
}

// ms

void StoreTarget::on_meta_set(call::Call& call, const memcache::Request& request,
                              std::string_view key, const MetaFlags& flags) {
  StorageOrder order;
  order.is_meta = true;
  order.key = key;
  order.flags = flags;
  store::StoreOptions& options = order.options;
  options.mode = mode_of(flags);
  options.has_compare_cas = flags.has('C');
  options.compare_cas = flags.compare_cas;
  options.may_invalidate = flags.has('I');
  options.is_base64_key = flags.has('b');
  options.client_flags = flags.client_flags;
  options.exptime = store::instant_of_exptime(flags.exptime, now_);
  options.new_cas = flags.new_cas;
  if (flags.has('N')) {
    options.vivify = store::instant_of_exptime(flags.vivify_exptime, now_);
  }
  run_storage(call, request, order);
}

ReplyCode StoreTarget::compose_meta_stored(const StorageOrder& order,
                                           const store::StoreResult& result) {
  ReplyCode code = ReplyCode::MetaHd;
  switch (result.status) {
    case store::StoreStatus::Stored:
      text_.add("HD");
      break;
    case store::StoreStatus::NotStored:
      text_.add("NS");
      code = ReplyCode::MetaNs;
      break;
    case store::StoreStatus::Exists:
      text_.add("EX");
      code = ReplyCode::MetaEx;
      break;
    case store::StoreStatus::NotFound:
      text_.add("NF");
      code = ReplyCode::MetaNf;
      break;
    default: {
      const Line line = line_of(result.status);
      text_.add(line.text);
      return line.code;
    }
  }
  for (const char letter : order.flags.letters()) {
    switch (letter) {
      case 'c':
        text_.add_flag('c', result.cas);
        break;
      case 's':
        text_.add_flag('s', result.value_bytes);
        break;
      default:
        add_echoes(order.flags, letter, order.key, result.is_base64_key);
        break;
    }
  }
  text_.add("\r\n");
  return code;
}

// md

void StoreTarget::on_meta_delete(call::Call& call, const memcache::Request& request,
                                 std::string_view key, const MetaFlags& flags) {
  store::DeleteOptions options;
  options.has_compare_cas = flags.has('C');
  options.compare_cas = flags.compare_cas;
  options.is_invalidation = flags.has('I');
  options.is_clearing = flags.has('x');
  options.new_cas = flags.new_cas;
  options.client_flags = flags.client_flags;
  if (flags.has('T')) {
    options.exptime = store::instant_of_exptime(flags.exptime, now_);
  }
  const store::DeleteResult result = store_.remove(store::Key(key), options, now_);
  ReplyCode code = ReplyCode::MetaHd;
  switch (result.status) {
    case store::DeleteStatus::Done:
      stats_.count(StoreCount::DeleteHits);
      if (!options.is_invalidation && !options.is_clearing &&
          events_.wants(watch::Stream::Deletions)) [[unlikely]] {
        report_deleted(key, "md", result);
      }
      text_.add("HD");
      break;
    case store::DeleteStatus::NotFound:
      stats_.count(StoreCount::DeleteMisses);
      text_.add("NF");
      code = ReplyCode::MetaNf;
      break;
    case store::DeleteStatus::Exists:
      text_.add("EX");
      code = ReplyCode::MetaEx;
      break;
    case store::DeleteStatus::NoMemory:
      call::answer(call, kNoMemory.text, kNoMemory.code);
      return;
  }
  if (result.status == store::DeleteStatus::NotFound) {
    add_request_echoes(request, flags);
  } else {
    for (const char letter : flags.letters()) {
      add_echoes(flags, letter, key, result.is_base64_key);
    }
  }
  text_.add("\r\n");
  answer_text(call, code);
}

// ma

void StoreTarget::on_meta_arith(call::Call& call, const memcache::Request& request,
                                std::string_view key, const MetaFlags& flags) {
  store::ArithOptions options;
  options.is_decrement = flags.mode == 'D' || flags.mode == '-';
  options.has_compare_cas = flags.has('C');
  options.compare_cas = flags.compare_cas;
  options.is_base64_key = flags.has('b');
  options.delta = flags.delta;
  options.initial = flags.initial;
  options.new_cas = flags.new_cas;
  if (flags.has('T')) {
    options.exptime = store::instant_of_exptime(flags.exptime, now_);
  }
  if (flags.has('N')) {
    options.vivify = exptime_of_new(flags, now_);
  }
  const store::ArithResult result = store_.add_delta(store::Key(key), options, now_);
  count_arith(result.status, options.is_decrement);
  switch (result.status) {
    case store::ArithStatus::Done:
    case store::ArithStatus::Created:
      return answer_number(call, key, flags, result);
    case store::ArithStatus::NotFound:
      text_.add("NF");
      add_request_echoes(request, flags);
      text_.add("\r\n");
      return answer_text(call, ReplyCode::MetaNf);
    case store::ArithStatus::Exists:
      text_.add("EX");
      for (const char letter : flags.letters()) {
        add_echoes(flags, letter, key, result.is_base64_key);
      }
      text_.add("\r\n");
      return answer_text(call, ReplyCode::MetaEx);
    default: {
      const Line line = line_of(result.status);
      call::answer(call, line.text, line.code);
      return;
    }
  }
}

void StoreTarget::answer_number(call::Call& call, std::string_view key, const MetaFlags& flags,
                                const store::ArithResult& result) {
  std::array<char, std::numeric_limits<std::uint64_t>::digits10 + 1> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), result.number).ptr;
  const std::string_view number(digits.data(), static_cast<std::size_t>(end - digits.data()));
  if (flags.has('v')) {
    text_.add("VA ");
    text_.add_number(number.size());
  } else {
    text_.add("HD");
  }
  ShownExptime exptime(flags, now_, result.exptime_before,
                       result.status == store::ArithStatus::Created);
  for (const char letter : flags.letters()) {
    switch (letter) {
      case 'N':
      case 'T':
        exptime.pass(letter);
        break;
      case 't':
        add_exptime(exptime.get());
        break;
      case 'c':
        text_.add_flag('c', result.cas);
        break;
      default:
        add_echoes(flags, letter, key, result.is_base64_key);
        break;
    }
  }
  text_.add("\r\n");
  if (flags.has('v')) {
    text_.add(number);
    text_.add("\r\n");
  }
  answer_text(call, flags.has('v') ? ReplyCode::MetaVa : ReplyCode::MetaHd);
}

// me

struct StoreTarget::DebugVisit {
  StoreTarget& target;

  void on_item(const store::ItemView& item) {
    ReplyText& text = target.text_;
    text.add("ME ");
    target.add_key(item.key, item.is_base64_key);
    text.add(" exp=");
    if (item.exptime == store::kNever) {
      text.add("-1");
    } else {
      text.add_number(item.exptime.get() - target.now_.get());
    }
    text.add(" la=");
    text.add_number(item.idle_seconds);
    text.add(" cas=");
    text.add_number(item.cas);
    text.add(item.was_fetched ? " fetch=yes cls=" : " fetch=no cls=");
    text.add_number(kOnlyClass);
    text.add(" size=");
    text.add_number(item.footprint_bytes);
    text.add("\r\n");
  }
};

void StoreTarget::on_meta_debug(call::Call& call, std::string_view key) {
  DebugVisit visit{*this};
  const store::ReadResult result =
      store_.read(store::Key(key), store::ReadOptions{.is_use = false}, now_,
                  store::ItemVisitor::to<&DebugVisit::on_item>(&visit));
  if (result.status != store::ReadStatus::Hit) {
    call::answer(call, "EN\r\n", ReplyCode::MetaEn);
    return;
  }
  answer_text(call, ReplyCode::MetaMe);
}

}  // namespace kvferry::route
