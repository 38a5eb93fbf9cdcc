// Commands that read and write values.
#include <algorithm>
#include <cstddef>
#include <fmt/format.h>

#include "protocol/resp/integer.h"
#include "redis/store_commands.h"

namespace kvferry::redis {

using store::EditOptions;
using store::EditStatus;
using store::ItemCopy;
using store::Key;

namespace {

/// Copies the value of an item, and keeps the pieces of a large one.
struct ValueReader {
  std::string& value;
  store::ItemRef pieces;

  void on_item(const store::ItemView& item) {
    value.assign(item.value);  // What lies behind the pieces, of a large one.
    if (item.is_large) {
      pieces = item.pin();
    }
  }
};

/// The place of an exptime-like option's value, and whether the word is one.
std::optional<ExpiryForm> form_of(std::string_view word) {
  if (is_word(word, "ex")) {
    return ExpiryForm{.is_in_seconds = true, .is_relative = true};
  }
  if (is_word(word, "px")) {
    return ExpiryForm{.is_in_seconds = false, .is_relative = true};
  }
  if (is_word(word, "exat")) {
    return ExpiryForm{.is_in_seconds = true, .is_relative = false};
  }
  if (is_word(word, "pxat")) {
    return ExpiryForm{.is_in_seconds = false, .is_relative = false};
  }
  return std::nullopt;
}

}  // namespace

bool StoreCommands::read_option(std::string_view word, OptionSet known, SetOptions& options) {
  const bool has_expiry = options.form.has_value();
  if (known == OptionSet::GetEx) {
    const bool is_good = is_word(word, "persist") && !has_expiry;
    options.persists = options.persists || is_good;
    return is_good;
  }
  if (is_word(word, "nx") && !options.if_present) {
    options.if_absent = true;
  } else if (is_word(word, "xx") && !options.if_absent) {
    options.if_present = true;
  } else if (is_word(word, "get")) {
    options.returns_old = true;
  } else if (is_word(word, "keepttl") && !has_expiry) {
    options.keeps_expiry = true;
  } else {
    return false;
  }
  return true;
}

bool StoreCommands::read_options(std::span<const std::string_view> args, OptionSet known,
                                 SetOptions& options) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::optional<ExpiryForm> form = form_of(args[i]);
    if (!form.has_value()) {
      if (!read_option(args[i], known, options)) {
        return false;
      }
      continue;
    }
    if (options.form.has_value() || options.keeps_expiry || options.persists ||
        i + 1 == args.size()) {
      return false;
    }
    options.form = form;
    options.expiry = args[++i];
  }
  return true;
}

void StoreCommands::write_value(Request& request, std::string_view key) {
  ValueReader reader{.value = value_, .pieces = {}};
  const store::ReadResult result = store_.read(
      Key(key), {}, request.now, store::ItemVisitor::to<&ValueReader::on_item>(&reader));
  if (result.status != store::ReadStatus::Hit) {
    request.reply.null();
    return;
  }
  if (!reader.pieces) {
    request.reply.bulk(value_);
    return;
  }
  old_value_.clear();
  while (reader.pieces.has_more()) {
    old_value_.append(reader.pieces.take());
  }
  old_value_.append(value_);
  request.reply.bulk(old_value_);
}

bool StoreCommands::store_value(Request& request, std::string_view key, std::string_view value,
                                store::Instant exptime) {
  const store::StoreResult result =
      store_.store(Key(key), store::StoreOptions{.exptime = exptime}, value, request.now);
  if (result.status == store::StoreStatus::Stored) {
    return true;
  }
  write_error(request, result.status == store::StoreStatus::TooLarge ? EditStatus::TooLarge
                                                                     : EditStatus::NoMemory);
  return false;
}

void StoreCommands::get(Request& request) {
  write_value(request, request.args[1]);
}

void StoreCommands::set(Request& request) {
  SetOptions options;
  if (!read_options(request.args.subspan(3), OptionSet::Set, options)) {
    request.reply.error(kSyntaxError);
    return;
  }
  store::Instant exptime = store::kNever;
  if (options.form.has_value()) {
    const Expiry expiry = read_expiry(options.expiry, *options.form, false, request.now_ms);
    if (expiry.error != ExpiryError::None) {
      write_error(request, expiry.error);
      return;
    }
    exptime = instant_of(expiry.at_ms);
  }
  if (!options.if_absent && !options.if_present && !options.returns_old && !options.keeps_expiry) {
    if (store_value(request, request.args[1], request.args[2], exptime)) {
      request.reply.simple("OK");
    }
    return;
  }
  bool was_found = false;
  bool is_stored = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& stored) {
    was_found = copy.is_found;
    is_stored = was_found ? !options.if_absent : !options.if_present;
    if (options.returns_old) {
      load_value(copy);
      old_value_.swap(value_);
    }
    value_.assign(request.args[2]);
    stored.client_flags = 0;
    stored.exptime = options.keeps_expiry ? stored.exptime : exptime;
    return is_stored ? Edit::Store : Edit::Keep;
  });
  if (!is_done) {
    return;
  }
  if (options.returns_old && was_found) {
    request.reply.bulk(old_value_);
  } else if (options.returns_old || !is_stored) {
    request.reply.null();
  } else {
    request.reply.simple("OK");
  }
}

void StoreCommands::get_delete(Request& request) {
  bool was_found = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& /*stored*/) {
    was_found = copy.is_found;
    load_value(copy);
    return was_found ? Edit::Remove : Edit::Keep;
  });
  if (is_done && was_found) {
    request.reply.bulk(value_);
  } else if (is_done) {
    request.reply.null();
  }
}

void StoreCommands::get_expire(Request& request) {
  SetOptions options;
  if (!read_options(request.args.subspan(2), OptionSet::GetEx, options)) {
    request.reply.error(kSyntaxError);
    return;
  }
  Expiry expiry;
  if (options.form.has_value()) {
    expiry = read_expiry(options.expiry, *options.form, false, request.now_ms);
  }
  if (expiry.error != ExpiryError::None) {
    write_error(request, expiry.error);
    return;
  }
  if (!options.form.has_value() && !options.persists) {
    write_value(request, request.args[1]);
    return;
  }
  bool was_found = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& stored) {
    was_found = copy.is_found;
    load_value(copy);
    if (!was_found) {
      return Edit::Keep;
    }
    if (!options.persists && expiry.at_ms <= request.now_ms) {
      return Edit::Remove;
    }
    stored.exptime = options.persists ? store::kNever : instant_of(expiry.at_ms);
    return Edit::SetExptime;
  });
  if (is_done && was_found) {
    request.reply.bulk(value_);
  } else if (is_done) {
    request.reply.null();
  }
}

void StoreCommands::get_set(Request& request) {
  bool was_found = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& stored) {
    was_found = copy.is_found;
    load_value(copy);
    old_value_.swap(value_);
    value_.assign(request.args[2]);
    stored = EditOptions{};
    return Edit::Store;
  });
  if (is_done && was_found) {
    request.reply.bulk(old_value_);
  } else if (is_done) {
    request.reply.null();
  }
}

void StoreCommands::set_expire(Request& request) {
  const ExpiryForm form{.is_in_seconds = request.command == "setex", .is_relative = true};
  const Expiry expiry = read_expiry(request.args[2], form, false, request.now_ms);
  if (expiry.error != ExpiryError::None) {
    write_error(request, expiry.error);
    return;
  }
  if (store_value(request, request.args[1], request.args[3], instant_of(expiry.at_ms))) {
    request.reply.simple("OK");
  }
}

void StoreCommands::set_if_absent(Request& request) {
  const store::StoreResult result =
      store_.store(Key(request.args[1]), store::StoreOptions{.mode = store::StoreMode::Add},
                   request.args[2], request.now);
  switch (result.status) {
    case store::StoreStatus::Stored:
      request.reply.integer(1);
      break;
    case store::StoreStatus::TooLarge:
      write_error(request, EditStatus::TooLarge);
      break;
    case store::StoreStatus::NoMemory:
      write_error(request, EditStatus::NoMemory);
      break;
    default:
      request.reply.integer(0);
      break;
  }
}

void StoreCommands::get_many(Request& request) {
  request.reply.array(request.args.size() - 1);
  for (const std::string_view key : request.args.subspan(1)) {
    write_value(request, key);
  }
}

void StoreCommands::set_many(Request& request) {
  if (request.args.size() % 2 == 0) {
    request.reply.error("ERR wrong number of arguments for 'mset' command");
    return;
  }
  for (std::size_t i = 1; i < request.args.size(); i += 2) {
    if (!store_value(request, request.args[i], request.args[i + 1], store::kNever)) {
      return;
    }
  }
  request.reply.simple("OK");
}

void StoreCommands::set_many_if_absent(Request& request) {
  if (request.args.size() % 2 == 0) {
    request.reply.error("ERR wrong number of arguments for 'msetnx' command");
    return;
  }
  for (std::size_t i = 1; i < request.args.size(); i += 2) {
    if (look_at(request, request.args[i], Access::DoesNot).is_found) {
      request.reply.integer(0);
      return;
    }
  }
  for (std::size_t i = 1; i < request.args.size(); i += 2) {
    if (!store_value(request, request.args[i], request.args[i + 1], store::kNever)) {
      return;
    }
  }
  request.reply.integer(1);
}

void StoreCommands::append(Request& request) {
  std::size_t bytes = 0;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& /*stored*/) {
    load_value(copy);
    value_.append(request.args[2]);
    bytes = value_.size();
    return Edit::Store;
  });
  if (is_done) {
    request.reply.integer(static_cast<std::int64_t>(bytes));
  }
}

void StoreCommands::length(Request& request) {
  const Look look = look_at(request, request.args[1], Access::Counts);
  request.reply.integer(static_cast<std::int64_t>(look.value_bytes));
}

void StoreCommands::get_range(Request& request) {
  std::int64_t first = 0;
  std::int64_t last = 0;
  if (!resp::read_integer(request.args[2], first) || !resp::read_integer(request.args[3], last)) {
    request.reply.error(kNoIntegerError);
    return;
  }
  store_.copy(Key(request.args[1]), request.now, copy_);
  load_value(copy_);
  const auto size = static_cast<std::int64_t>(value_.size());
  const bool is_backwards = first < 0 && last < 0 && first > last;
  // Counted from the end, and cut to what is there.
  first = std::max<std::int64_t>(first < 0 ? std::max(first, -size) + size : first, 0);
  last = std::max<std::int64_t>(last < 0 ? std::max(last, -size - 1) + size : last, 0);
  last = std::min(last, size - 1);
  if (is_backwards || first > last || size == 0) {
    request.reply.bulk({});
    return;
  }
  request.reply.bulk(std::string_view(value_).substr(static_cast<std::size_t>(first),
                                                     static_cast<std::size_t>(last - first + 1)));
}

void StoreCommands::set_range(Request& request) {
  std::int64_t offset = 0;
  if (!resp::read_integer(request.args[2], offset)) {
    request.reply.error(kNoIntegerError);
    return;
  }
  if (offset < 0) {
    request.reply.error("ERR offset is out of range");
    return;
  }
  const std::string_view part = request.args[3];
  const std::uint64_t end = static_cast<std::uint64_t>(offset) + part.size();
  std::size_t bytes = 0;
  bool is_too_large = false;
  const bool is_done = edit(request, request.args[1], [&](ItemCopy& copy, EditOptions& /*stored*/) {
    bytes = copy.is_found ? static_cast<std::size_t>(copy.value_bytes) : 0;
    if (part.empty()) {
      return Edit::Keep;
    }
    is_too_large = store_.is_too_large(request.args[1].size(), std::max<std::uint64_t>(end, bytes));
    if (is_too_large) {
      return Edit::Keep;
    }
    load_value(copy);
    value_.resize(std::max<std::size_t>(value_.size(), static_cast<std::size_t>(end)), '\0');
    part.copy(value_.data() + offset, part.size());
    bytes = value_.size();
    return Edit::Store;
  });
  if (is_too_large) {
    request.reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  } else if (is_done) {
    request.reply.integer(static_cast<std::int64_t>(bytes));
  }
}

}  // namespace kvferry::redis
