// The writing operations of a shard.
#include <array>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "store/new_record.h"
#include "store/shard.h"

namespace kvferry::store {

namespace {

/// The longest number: 2^64 - 1.
constexpr std::size_t kNumberBytesMax = 20;

/// Reads a decimal number that may be followed by blanks; false when it is none or does not fit.
bool parse_number(std::string_view text, std::uint64_t& number) noexcept {
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end goes with it
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) {
    return false;
  }
  for (const char* at = stop; at != end; ++at) {
    if (*at != ' ') {
      return false;
    }
  }
  return true;
}

}  // namespace

void Shard::fill(Record& record, const Key& key, const NewRecord& item, Instant now) {
  record.begin(item.shape(key));
  record.set(item.marks);
  record.set_cas(item.cas);
  record.set_used_at(now);
  if (item.client_flags != 0) {
    record.set_client_flags(item.client_flags);
  }
  if (item.exptime != kNever) {
    record.set_exptime(item.exptime);
  }
  record.set_key(key.bytes);
  if (item.pieces != nullptr) {
    record.set_first_piece(item.pieces);
  }
  if (!item.inline_value.empty()) {
    std::memcpy(record.inline_value_begin(), item.inline_value.data(), item.inline_value.size());
  }
}

Slot Shard::put(const Key& key, Slot slot, const NewRecord& item, Instant now) {
  const RecordShape shape = item.shape(key);
  const std::size_t bytes = Record::total_bytes_of(shape);
  if (slot) {
    Record& old = slot.record();
    if (!old.has(kLarge) && item.pieces == nullptr && old.total_bytes() == bytes) {
      // Nobody looks at a record without the lock, so it can be written over.
      fill(old, key, item, now);
      space_.note_overwritten(old);
      slot.add_use();
      return slot;
    }
  }

  const QueueName name = slot ? Segment::of(slot.record()).queue : space_.queue_of_new(key);
  if (!space_.has_room(name, bytes)) {
    if (!space_.make_room(name, bytes, now)) {
      return {};
    }
    slot = space_.find(key, now);
  }
  Record& record = space_.append(name, shape);
  fill(record, key, item, now);
  if (!slot) {
    return space_.add(key, record);
  }
  space_.replace(slot, record);
  slot.add_use();
  return slot;
}

Shard::Decision Shard::decide(const Record* old, const StoreOptions& options) {
  const auto refuse = [](StoreStatus status) {
    return Decision{.verdict = Verdict::Refuse, .status = status};
  };
  // A CAS of 0 asks for nothing; no item has it.
  const bool compares = options.has_compare_cas && options.compare_cas != 0;
  switch (options.mode) {
    case StoreMode::Set:
      return Decision{};
    case StoreMode::Add:
      return old == nullptr ? Decision{} : refuse(StoreStatus::NotStored);
    case StoreMode::Replace:
      return old != nullptr ? Decision{} : refuse(StoreStatus::NotStored);
    case StoreMode::Append:
    case StoreMode::Prepend:
      if (old == nullptr) {
        if (compares) {
          return refuse(StoreStatus::NotFound);
        }
        return options.vivify.has_value() ? Decision{} : refuse(StoreStatus::NotStored);
      }
      return compares && options.compare_cas != old->cas() ? refuse(StoreStatus::Exists)
                                                           : Decision{.verdict = Verdict::Join};
    case StoreMode::Cas:
      break;
  }
  if (old == nullptr) {
    return refuse(StoreStatus::NotFound);
  }
  if (compares && options.compare_cas == old->cas()) {
    return Decision{};
  }
  const bool is_older = compares && options.may_invalidate && options.compare_cas < old->cas();
  return is_older ? Decision{.is_stale = true} : refuse(StoreStatus::Exists);
}

Shard::NewRecord Shard::new_record(const Record* old, const StoreOptions& options,
                                   const Decision& decision) {
  NewRecord item{.client_flags = options.client_flags,
                 .exptime = options.exptime,
                 .marks = options.is_base64_key ? std::uint8_t{kBase64Key} : std::uint8_t{0}};
  if (decision.verdict == Verdict::Join) {
    item.client_flags = old->client_flags();
    item.exptime = old->exptime();
    item.marks = static_cast<std::uint8_t>(old->item_marks() & kBase64Key);
  } else if (decision.is_stale) {
    item.exptime = old->exptime();
    item.marks = static_cast<std::uint8_t>(item.marks | kStale | (old->item_marks() & kWon));
  } else if (old == nullptr && options.vivify.has_value()) {
    item.exptime = *options.vivify;
  }
  return item;
}

StoreResult Shard::finish(const Key& key, Slot slot, NewRecord& item, const StoreOptions& options,
                          Instant now) {
  item.cas = cas_or_next(options.new_cas);
  const Slot stored = put(key, slot, item, now);
  const bool is_base64_key = (item.marks & kBase64Key) != 0;
  if (!stored) {
    // What is in there now is no longer what the sender wants to be found.
    const Slot old = options.mode == StoreMode::Set ? space_.find(key, now) : Slot{};
    if (old) {
      space_.remove(key, old);
    }
    return StoreResult{.status = StoreStatus::NoMemory,
                       .is_base64_key = is_base64_key,
                       .value_bytes = item.value_bytes};
  }
  return StoreResult{.status = StoreStatus::Stored,
                     .is_base64_key = is_base64_key,
                     .cas = item.cas,
                     .value_bytes = item.value_bytes};
}

StoreResult Shard::refuse(Slot slot, const StoreOptions& options, const Decision& decision,
                          std::uint64_t value_bytes, Instant now) {
  if (slot && options.mode == StoreMode::Add) {
    use(slot, now);
  }
  return StoreResult{.status = decision.status,
                     .is_base64_key = options.is_base64_key,
                     .value_bytes = value_bytes};
}

std::optional<StoreResult> Shard::store(const Key& key, const StoreOptions& options,
                                        std::string_view value, Instant now) {
  KVF_DCHECK(value.size() <= kInlineBytesMax);
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  const Record* const old = slot ? &slot.record() : nullptr;
  const Decision decision = decide(old, options);
  if (decision.verdict == Verdict::Refuse) {
    return refuse(slot, options, decision, value.size(), now);
  }

  NewRecord item = new_record(old, options, decision);
  item.inline_value = value;
  item.value_bytes = value.size();
  if (decision.verdict == Verdict::Store) {
    return finish(key, slot, item, options, now);
  }
  if (old->value_bytes() + value.size() > kInlineBytesMax) {
    return std::nullopt;
  }
  // Joined outside of the store, because making room may move the old value away.
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): filled as far as it is used
  std::array<char, kInlineBytesMax> joined;
  const std::string_view old_value = old->inline_value();
  const bool is_append = options.mode == StoreMode::Append;
  const std::string_view first = is_append ? old_value : value;
  const std::string_view second = is_append ? value : old_value;
  first.copy(joined.data(), first.size());
  second.copy(joined.data() + first.size(), second.size());
  item.value_bytes = first.size() + second.size();
  item.inline_value = {joined.data(), first.size() + second.size()};
  return finish(key, slot, item, options, now);
}

std::optional<StoreResult> Shard::store(const Key& key, const StoreOptions& options,
                                        PendingValue& value, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  const Record* const old = slot ? &slot.record() : nullptr;
  const Decision decision = decide(old, options);
  if (decision.verdict == Verdict::Join) {
    return std::nullopt;
  }
  if (decision.verdict == Verdict::Refuse) {
    return refuse(slot, options, decision, value.value_bytes(), now);
  }
  NewRecord item = new_record(old, options, decision);
  item.pieces = value.first();
  item.inline_value = value.rest();
  item.value_bytes = value.value_bytes();
  const StoreResult result = finish(key, slot, item, options, now);
  if (result.status == StoreStatus::Stored) {
    space_.release_chain(value.release_to_item());
  }
  return result;
}

void Shard::begin_join(const Key& key, const StoreOptions& options, Instant now, JoinBase& base) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  const Record* const old = slot ? &slot.record() : nullptr;
  const Decision decision = decide(old, options);
  base.status = decision.verdict == Verdict::Refuse ? decision.status : StoreStatus::Stored;
  if (decision.verdict == Verdict::Join) {
    fill_copy(*old, base.item);
  }
}

std::optional<StoreResult> Shard::finish_join(const Key& key, const StoreOptions& options,
                                              const JoinBase& base, PendingValue& joined,
                                              Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  const Record* const old = slot ? &slot.record() : nullptr;
  const Decision decision = decide(old, options);
  if (decision.verdict != Verdict::Join || !has_same_value(*old, base.item)) {
    return std::nullopt;
  }
  NewRecord item = new_record(old, options, decision);
  item.pieces = joined.first();
  item.inline_value = joined.rest();
  item.value_bytes = joined.value_bytes();
  const StoreResult result = finish(key, slot, item, options, now);
  if (result.status == StoreStatus::Stored) {
    space_.release_chain(joined.release_to_item());
  }
  return result;
}

ArithResult Shard::add_delta(const Key& key, const ArithOptions& options, Instant now) {
  const ShardGuard guard(lock_);
  on_time(now);
  Miss miss{};
  const Slot slot = find(key, now, miss);
  if (!slot) {
    return options.vivify.has_value() ? create_number(key, options, *options.vivify, now)
                                      : ArithResult{};
  }
  const Record& record = slot.record();
  ArithResult result{.is_base64_key = record.has(kBase64Key)};
  if (record.value_bytes() == 0) {
    // What holds nothing is no number, whatever its CAS unique.
    result.status = ArithStatus::NonNumeric;
    return result;
  }
  const bool compares = options.has_compare_cas && options.compare_cas != 0;
  if (compares && options.compare_cas != record.cas()) {
    result.status = ArithStatus::Exists;
    return result;
  }
  std::uint64_t number = 0;
  if (record.has(kLarge) || !parse_number(record.inline_value(), number)) {
    result.status = ArithStatus::NonNumeric;
    return result;
  }
  if (options.is_decrement) {
    number = number > options.delta ? number - options.delta : 0;
  } else {
    number += options.delta;  // Wraps at 2^64, as memcached's does.
  }
  return write_number(key, slot, options, number, now);
}

ArithResult Shard::create_number(const Key& key, const ArithOptions& options, Instant exptime,
                                 Instant now) {
  std::array<char, kNumberBytesMax> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), options.initial);
  KVF_CHECK(error == std::errc{});
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  const NewRecord item{.exptime = exptime,
                       .cas = cas_or_next(options.new_cas),
                       .marks = options.is_base64_key ? std::uint8_t{kBase64Key} : std::uint8_t{0},
                       .value_bytes = digits.size(),
                       .inline_value = digits};
  const bool is_stored = static_cast<bool>(put(key, Slot{}, item, now));
  return ArithResult{.status = is_stored ? ArithStatus::Created : ArithStatus::NoMemory,
                     .is_base64_key = options.is_base64_key,
                     .number = options.initial,
                     .cas = item.cas,
                     .exptime = item.exptime,
                     .exptime_before = item.exptime};
}

ArithResult Shard::write_number(const Key& key, Slot slot, const ArithOptions& options,
                                std::uint64_t number, Instant now) {
  std::array<char, kNumberBytesMax> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), number);
  KVF_CHECK(error == std::errc{});
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  const Record& old = slot.record();
  ArithResult result{.status = ArithStatus::Done,
                     .is_base64_key = old.has(kBase64Key),
                     .number = number,
                     .cas = cas_or_next(options.new_cas),
                     .exptime_before = old.exptime()};
  if (digits.size() > old.value_bytes()) {
    slot = put(key, slot,
               NewRecord{.client_flags = old.client_flags(),
                         .exptime = old.exptime(),
                         .cas = result.cas,
                         .marks = static_cast<std::uint8_t>(old.item_marks() & kBase64Key),
                         .value_bytes = digits.size(),
                         .inline_value = digits},
               now);
  } else if (slot = give_cas(key, slot, result.cas, now); slot) {
    // Shorter numbers are padded with blanks to the old length.
    char* const value = slot.record().inline_value_begin();
    std::memset(value, ' ', slot.record().value_bytes());
    digits.copy(value, digits.size());
    use(slot, now);
  }
  if (slot && options.exptime.has_value()) {
    slot = give_exptime(key, slot, *options.exptime, now);
  }
  if (!slot) {
    result.status = ArithStatus::NoMemory;
    return result;
  }
  result.exptime = slot.record().exptime();
  return result;
}

}  // namespace kvferry::store
