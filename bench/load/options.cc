#include "load/options.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <string_view>
#include <utility>

namespace kvferry::load {
namespace {

constexpr const char* kUsage =
    "usage: kvferry-load --port PORT [options]\n"
    "  --host ADDRESS        IPv4 address (127.0.0.1)\n"
    "  --op OPERATION        get, set, mix (nine gets, one set), mget, fill (each key set once)\n"
    "  --connections N       (50)\n"
    "  --depth N             requests in flight on each connection (1)\n"
    "  --seconds S           measured time (3); --warmup S before it (0.25)\n"
    "  --requests N          stop after so many requests\n"
    "  --keys N              number of different keys (20000)\n"
    "  --key-bytes N         length of a key, 16 to 250 (32)\n"
    "  --value-bytes N       length of a value (100)\n"
    "  --keys-per-get N      for mget (10)\n"
    "  --seed N              (1)\n"
    "  --stall S             give up after so long without a byte (5)\n"
    "  --verify              compare every byte of every reply with what belongs to its key\n"
    "  --reconnect           open closed connections again, and count them\n"
    "  --error-keys          list the keys that were answered with errors\n"
    "  --timeline S          list good and bad answers per interval of S seconds\n"
    "  --marks               print a line when measuring starts and one when it stops\n"
    "The result is one line of JSON.\n";

enum Letter : std::uint8_t {
  kHost = 1,
  kPort,
  kOp,
  kConnections,
  kDepth,
  kSeconds,
  kWarmup,
  kRequests,
  kKeys,
  kKeyBytes,
  kValueBytes,
  kKeysPerGet,
  kSeed,
  kStall,
  kVerify,
  kReconnect,
  kErrorKeys,
  kTimeline,
  kMarks,
};

constexpr option with_argument(const char* name, Letter letter) {
  return {.name = name, .has_arg = required_argument, .flag = nullptr, .val = letter};
}
constexpr option alone(const char* name, Letter letter) {
  return {.name = name, .has_arg = no_argument, .flag = nullptr, .val = letter};
}

constexpr std::array<option, 20> kLongOptions{{
    with_argument("host", kHost),
    with_argument("port", kPort),
    with_argument("op", kOp),
    with_argument("connections", kConnections),
    with_argument("depth", kDepth),
    with_argument("seconds", kSeconds),
    with_argument("warmup", kWarmup),
    with_argument("requests", kRequests),
    with_argument("keys", kKeys),
    with_argument("key-bytes", kKeyBytes),
    with_argument("value-bytes", kValueBytes),
    with_argument("keys-per-get", kKeysPerGet),
    with_argument("seed", kSeed),
    with_argument("stall", kStall),
    alone("verify", kVerify),
    alone("reconnect", kReconnect),
    alone("error-keys", kErrorKeys),
    with_argument("timeline", kTimeline),
    alone("marks", kMarks),
    option{},
}};

std::optional<Operation> find_operation(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, Operation>, 5> kNames{{
      {"get", Operation::Get},
      {"set", Operation::Set},
      {"mix", Operation::Mix},
      {"mget", Operation::MultiGet},
      {"fill", Operation::Fill},
  }};
  for (const auto& [name, operation] : kNames) {
    if (word == name) {
      return operation;
    }
  }
  return std::nullopt;
}

std::uint64_t number(const char* text) {
  return std::strtoull(text, nullptr, 10);
}

double decimal(const char* text) {
  return std::strtod(text, nullptr);
}

// Options that are not a plain size; false when `letter` is none of them or its argument is wrong.
bool apply_other(int letter, const char* text, Options& options) {
  switch (letter) {
    case kHost:
      options.host = text;
      return true;
    case kOp: {
      const auto operation = find_operation(text);
      options.operation = operation.value_or(Operation::Get);
      return operation.has_value();
    }
    case kSeconds:
      options.seconds = decimal(text);
      return true;
    case kWarmup:
      options.warmup_seconds = decimal(text);
      return true;
    case kStall:
      options.stall_seconds = decimal(text);
      return true;
    case kTimeline:
      options.timeline_seconds = decimal(text);
      return true;
    case kVerify:
      options.verify = true;
      return true;
    case kReconnect:
      options.reconnect = true;
      return true;
    case kErrorKeys:
      options.error_keys = true;
      return true;
    case kMarks:
      options.marks = true;
      return true;
    default:
      return false;
  }
}

bool apply(int letter, const char* text, Options& options) {
  switch (letter) {
    case kPort:
      options.port = static_cast<std::uint16_t>(number(text));
      return true;
    case kConnections:
      options.connections = number(text);
      return true;
    case kDepth:
      options.depth = number(text);
      return true;
    case kRequests:
      options.requests_max = number(text);
      return true;
    case kKeys:
      options.keys = static_cast<std::uint32_t>(number(text));
      return true;
    case kKeyBytes:
      options.key_bytes = number(text);
      return true;
    case kValueBytes:
      options.value_bytes = number(text);
      return true;
    case kKeysPerGet:
      options.keys_per_get = number(text);
      return true;
    case kSeed:
      options.seed = number(text);
      return true;
    default:
      return apply_other(letter, text, options);
  }
}

bool is_sound(const Options& options) {
  return options.connections > 0 && options.depth > 0 && options.keys > 0 &&
         options.keys <= 100'000'000 && options.key_bytes >= 16 && options.key_bytes <= 250 &&
         options.keys_per_get > 0 && options.port != 0;
}

}  // namespace

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  int letter = 0;
  while ((letter = getopt_long(argc, argv, "", kLongOptions.data(), nullptr)) != -1) {
    if (!apply(letter, optarg, options)) {
      static_cast<void>(std::fputs(kUsage, stderr));
      return std::nullopt;
    }
  }
  if (optind != argc || !is_sound(options)) {
    static_cast<void>(std::fputs(kUsage, stderr));
    return std::nullopt;
  }
  return options;
}

}  // namespace kvferry::load
