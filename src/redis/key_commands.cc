// Commands about keys, one and all.
#include <charconv>
#include <string>
#include <system_error>
#include <vector>

#include "protocol/resp/glob.h"
#include "protocol/resp/integer.h"
#include "redis/store_commands.h"

namespace kvferry::redis {

namespace {

/// A cursor of SCAN has the shard in its top bits. The place where a walk begins is 0, and no later
/// one is.
constexpr unsigned kShardShift = 48;

std::uint64_t cursor_of(const store::WalkPlace& place) {
  return std::uint64_t{place.shard} << kShardShift | place.bucket;
}

store::WalkPlace place_of(std::uint64_t cursor) {
  return {.shard = static_cast<std::size_t>(cursor >> kShardShift),
          .bucket = static_cast<std::size_t>(cursor & ((std::uint64_t{1} << kShardShift) - 1))};
}

bool read_cursor(std::string_view text, std::uint64_t& cursor) {
  const char* const end = text.data() + text.size();
  // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the end goes with it.
  const auto [stop, error] = std::from_chars(text.data(), end, cursor);
  return error == std::errc{} && stop == end;
}

struct ScanOptions {
  std::int64_t count = kScanCountDefault;
  std::string_view pattern = "*";
  bool has_strings = true;  // TYPE asks for them, or for everything.
};

/// Empty when they are read, else the error.
std::string_view read_scan_options(std::span<const std::string_view> words, ScanOptions& options) {
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (i + 1 == words.size()) {
      return kSyntaxError;
    }
    const std::string_view said = words[i + 1];
    if (is_word(words[i], "count")) {
      if (!resp::read_integer(said, options.count)) {
        return kNoIntegerError;
      }
      if (options.count < 1) {
        return kSyntaxError;
      }
    } else if (is_word(words[i], "match")) {
      options.pattern = said;
    } else if (is_word(words[i], "type")) {
      options.has_strings = is_word(said, "string");
    } else {
      return kSyntaxError;
    }
  }
  return {};
}

struct KeyCollector {
  const ScanOptions& options;
  std::vector<std::string> keys;
  std::int64_t seen = 0;

  void on_item(const store::ItemView& item) {
    ++seen;
    if (options.has_strings && resp::matches_glob(options.pattern, item.key)) {
      keys.emplace_back(item.key);
    }
  }
};

/// Chooses one of the items that it is shown, each as likely as the others.
struct KeyChooser {
  std::uint64_t random;
  std::string key;
  std::uint64_t count = 0;

  void on_item(const store::ItemView& item) {
    ++count;
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    if ((random >> 33) % count == 0) {
      key.assign(item.key);
    }
  }
};

}  // namespace

StoreCommands::Look StoreCommands::look_at(Request& request, std::string_view key, Access access) {
  struct Visit {
    Look look{};
    void on_item(const store::ItemView& item) {
      look = {.is_found = true, .value_bytes = item.value_bytes, .exptime = item.exptime};
    }
  };
  Visit visit;
  store_.read(store::Key(key), store::ReadOptions{.is_use = access == Access::Counts}, request.now,
              store::ItemVisitor::to<&Visit::on_item>(&visit));
  return visit.look;
}

void StoreCommands::remove(Request& request) {
  std::int64_t count = 0;
  for (const std::string_view key : request.args.subspan(1)) {
    const store::DeleteResult result = store_.remove(store::Key(key), {}, request.now);
    count += result.status == store::DeleteStatus::Done ? 1 : 0;
  }
  request.reply.integer(count);
}

void StoreCommands::count_existing(Request& request) {
  const Access access = request.command == "touch" ? Access::Counts : Access::DoesNot;
  std::int64_t count = 0;
  for (const std::string_view key : request.args.subspan(1)) {
    count += look_at(request, key, access).is_found ? 1 : 0;
  }
  request.reply.integer(count);
}

void StoreCommands::type(Request& request) {
  const bool is_found = look_at(request, request.args[1], Access::DoesNot).is_found;
  request.reply.simple(is_found ? "string" : "none");
}

void StoreCommands::scan(Request& request) {
  std::uint64_t cursor = 0;
  if (!read_cursor(request.args[1], cursor)) {
    request.reply.error("ERR invalid cursor");
    return;
  }
  ScanOptions options;
  if (const std::string_view error = read_scan_options(request.args.subspan(2), options);
      !error.empty()) {
    request.reply.error(error);
    return;
  }
  store::WalkPlace place = place_of(cursor);
  KeyCollector found{.options = options, .keys = {}};
  bool goes_on = true;
  const std::int64_t places_max = options.count > kScanPlacesMax / kScanPlacesPerItem
                                      ? kScanPlacesMax
                                      : options.count * kScanPlacesPerItem;
  for (std::int64_t i = 0; i < places_max && found.seen < options.count && goes_on; ++i) {
    goes_on =
        store_.walk(place, request.now, store::ItemVisitor::to<&KeyCollector::on_item>(&found));
  }
  request.reply.array(2);
  request.reply.bulk(std::to_string(goes_on ? cursor_of(place) : 0));
  request.reply.array(found.keys.size());
  for (const std::string& key : found.keys) {
    request.reply.bulk(key);
  }
}

void StoreCommands::count_all(Request& request) {
  const store::StoreStats stats = store_.snapshot();
  request.reply.integer(static_cast<std::int64_t>(stats.curr_items - stats.hidden_items));
}

void StoreCommands::random_key(Request& request) {
  random_state_ = random_state_ * 6364136223846793005ULL + 1442695040888963407ULL;
  KeyChooser chooser{.random = random_state_, .key = {}};
  if (store_.visit_any(random_state_ >> 16, request.now,
                       store::ItemVisitor::to<&KeyChooser::on_item>(&chooser))) {
    request.reply.bulk(chooser.key);
  } else {
    request.reply.null();
  }
}

void StoreCommands::flush(Request& request) {
  const std::span<const std::string_view> words = request.args.subspan(1);
  if (words.size() > 1 ||
      (!words.empty() && !is_word(words.front(), "async") && !is_word(words.front(), "sync"))) {
    request.reply.error(kSyntaxError);
    return;
  }
  store_.flush(store::kNever, request.now);
  request.reply.simple("OK");
}

}  // namespace kvferry::redis
