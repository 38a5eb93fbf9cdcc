// StoreCommands: runs the commands of Redis that are about strings, exptimes and keys against the
// embedded store.
//
// Source:    redis.io, commands; texts and results as redis-server 7.0 gives them, apart from what
// README.md lists. Threads:   one user at a time; any number of them may share the store.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/resp/reply_writer.h"
#include "redis/expiry.h"
#include "store/store.h"

namespace kvferry::redis {

/// How often an edit is begun again because others have changed the item meanwhile. Each time one
/// of them has got on, so with a handful of workers this is never reached.
inline constexpr int kEditTries = 10'000;
/// Items that SCAN shows when nothing is said, and places that it looks at for each of them.
inline constexpr std::int64_t kScanCountDefault = 10;
inline constexpr std::int64_t kScanPlacesPerItem = 10;
inline constexpr std::int64_t kScanPlacesMax = 1'000'000;
/// A buffer that has grown beyond this is given back after the command.
inline constexpr std::size_t kScratchBytesKept = std::size_t{64} * 1024;

class StoreCommands {
 public:
  /// `store` outlives it.
  explicit StoreCommands(store::Store& store) : store_(store) {}

  /// Runs the command that args[0] names, in any case, and writes its one reply. False, with
  /// nothing written: it is none of these commands. `now_ms`: milliseconds of the UNIX calendar.
  bool run(std::span<const std::string_view> args, std::int64_t now_ms, resp::ReplyWriter& reply);

 private:
  /// A request that is being run.
  struct Request {
    std::string_view command;  // In small letters.
    std::span<const std::string_view> args;
    std::int64_t now_ms;
    store::Instant now;
    resp::ReplyWriter& reply;
  };
  using Handler = void (StoreCommands::*)(Request&);
  struct Command {
    std::string_view name;
    int arity;  // With the name; negative: at least so many.
    Handler handler;
    // Which arguments are keys, as COMMAND tells it; first 0: none.
    int first_key = 1;
    int last_key = 1;
    int key_step = 1;
  };
  static const Command* find(std::string_view name);
  static bool has_good_count(const Command& command, std::size_t count);
  static bool has_good_keys(const Command& command, std::span<const std::string_view> args);

  // Values.
  void get(Request& request);
  void set(Request& request);
  void get_delete(Request& request);
  void get_expire(Request& request);
  void get_set(Request& request);
  void set_expire(Request& request);
  void set_if_absent(Request& request);
  void get_many(Request& request);
  void set_many(Request& request);
  void set_many_if_absent(Request& request);
  void append(Request& request);
  void length(Request& request);
  void get_range(Request& request);
  void set_range(Request& request);
  // Numbers.
  void increment(Request& request);
  void increment_by(Request& request);
  void decrement(Request& request);
  void decrement_by(Request& request);
  void increment_by_float(Request& request);
  // Exptimes.
  void expire(Request& request);
  void time_to_live(Request& request);
  void expire_time(Request& request);
  void persist(Request& request);
  // Keys.
  void remove(Request& request);
  void count_existing(Request& request);
  void type(Request& request);
  void scan(Request& request);
  void count_all(Request& request);
  void random_key(Request& request);
  void flush(Request& request);

  // What they share.

  /// What SET and GETEX say besides.
  struct SetOptions {
    bool if_absent = false;
    bool if_present = false;
    bool returns_old = false;
    bool keeps_expiry = false;
    bool persists = false;
    std::optional<ExpiryForm> form{};
    std::string_view expiry{};
  };
  enum class OptionSet : std::uint8_t { Set, GetEx };
  /// False when `args` are no options; nothing is written then.
  static bool read_options(std::span<const std::string_view> args, OptionSet known,
                           SetOptions& options);
  static bool read_option(std::string_view word, OptionSet known, SetOptions& options);
  /// What an edit makes of an item.
  enum class Edit : std::uint8_t { Keep, Store, Remove, SetExptime };
  /// Calls `decide(copy, options)`, whose new value is then in value_, until its result could be
  /// carried out. False: it could not, and the error is written.
  template <typename Decide>
  bool edit(Request& request, std::string_view key, Decide decide);
  store::EditStatus carry_out(Request& request, const store::Key& key, Edit edit,
                              const store::EditOptions& options);
  void delta(Request& request, std::int64_t delta);
  /// The whole value of a copy, in value_.
  void load_value(store::ItemCopy& copy);
  /// Writes the value of `key`, or null.
  void write_value(Request& request, std::string_view key);
  bool store_value(Request& request, std::string_view key, std::string_view value,
                   store::Instant exptime);
  static void write_error(Request& request, ExpiryError error);
  static void write_error(Request& request, store::EditStatus status);
  /// What is asked of an item without its value.
  struct Look {
    bool is_found = false;
    std::uint64_t value_bytes = 0;
    store::Instant exptime = store::kNever;
  };
  /// Whether a look counts as an access, which keeps the item from eviction.
  enum class Access : std::uint8_t { Counts, DoesNot };
  Look look_at(Request& request, std::string_view key, Access access);

  store::Store& store_;
  store::ItemCopy copy_;
  std::string value_;  // Of an edit: the old value, then the new one.
  std::string old_value_;
  std::uint64_t random_state_ = 0x9e3779b97f4a7c15;
};

inline constexpr std::string_view kSyntaxError = "ERR syntax error";
inline constexpr std::string_view kNoIntegerError = "ERR value is not an integer or out of range";

/// Whether `word` is `lower` but for its case; `lower` has small letters only.
bool is_word(std::string_view word, std::string_view lower) noexcept;

template <typename Decide>
bool StoreCommands::edit(Request& request, std::string_view key_bytes, Decide decide) {
  const store::Key key(key_bytes);
  for (int i = 0; i < kEditTries; ++i) {
    store_.copy(key, request.now, copy_);
    store::EditOptions options{.client_flags = copy_.is_found ? copy_.client_flags : 0,
                               .exptime = copy_.is_found ? copy_.exptime : store::kNever};
    const Edit edit = decide(copy_, options);
    if (edit == Edit::Keep) {
      return true;
    }
    const store::EditStatus status = carry_out(request, key, edit, options);
    if (status == store::EditStatus::Done) {
      return true;
    }
    if (status != store::EditStatus::Changed) {
      write_error(request, status);
      return false;
    }
  }
  write_error(request, store::EditStatus::Changed);
  return false;
}

}  // namespace kvferry::redis
