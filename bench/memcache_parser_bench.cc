// Cost of cutting memcached requests and replies, all bytes of them being there.
//
//   memcache_parser_bench --benchmark_repetitions=5 --benchmark_report_aggregates_only=true
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "protocol/memcache/meta_flags.h"
#include "protocol/memcache/reply_parser.h"
#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/token_walker.h"
#include "protocol/memcache/value_scanner.h"

namespace kvferry::memcache {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kValueBytes = 100;
constexpr std::size_t kPipelined = 32;

std::string key_of(std::size_t number) {
  std::string key = "application:user:profile:";
  const std::string digits = std::to_string(number * 7919);
  key.append(kKeyBytes - key.size() - digits.size(), '0');
  return key + digits;
}

std::string get_of(std::size_t key_count) {
  std::string line = "get";
  for (std::size_t number = 0; number < key_count; ++number) {
    line += " " + key_of(number);
  }
  return line + "\r\n";
}

std::string set_of(std::size_t number) {
  return "set " + key_of(number) + " 0 0 " + std::to_string(kValueBytes) + "\r\n" +
         std::string(kValueBytes, 'v') + "\r\n";
}

std::string hits_of(std::size_t key_count) {
  std::string reply;
  for (std::size_t number = 0; number < key_count; ++number) {
    reply += "VALUE " + key_of(number) + " 0 " + std::to_string(kValueBytes) + "\r\n" +
             std::string(kValueBytes, 'v') + "\r\n";
  }
  return reply + "END\r\n";
}

/// Parses a pipeline of equal requests, one after the other, as a session does with a full buffer.
void parse_requests(benchmark::State& state, const std::string& request) {
  std::string pipeline;
  for (std::size_t count = 0; count < kPipelined; ++count) {
    pipeline += request;
  }
  RequestParser parser{ParserLimits{}};
  std::string_view rest;
  for (auto _ : state) {
    if (rest.empty()) {
      rest = pipeline;
    }
    const auto parsed = parser.parse(rest);
    benchmark::DoNotOptimize(parsed);
    rest.remove_prefix(parsed.value().size_bytes);
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(request.size()));
}

void parse_replies(benchmark::State& state, ReplyKind kind, const std::string& reply) {
  std::string pipeline;
  for (std::size_t count = 0; count < kPipelined; ++count) {
    pipeline += reply;
  }
  ReplyParser parser;
  std::string_view rest;
  for (auto _ : state) {
    if (rest.empty()) {
      rest = pipeline;
    }
    parser.start(kind);
    const auto parsed = parser.next(rest);
    benchmark::DoNotOptimize(parsed);
    rest.remove_prefix(parsed.value().size_bytes);
  }
  state.SetItemsProcessed(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(reply.size()));
}

void BM_ParseGet(benchmark::State& state) {
  parse_requests(state, get_of(1));
}
BENCHMARK(BM_ParseGet);

void BM_ParseGet10(benchmark::State& state) {
  parse_requests(state, get_of(10));
}
BENCHMARK(BM_ParseGet10);

void BM_ParseSet(benchmark::State& state) {
  parse_requests(state, set_of(1));
}
BENCHMARK(BM_ParseSet);

void BM_ParseSetNoreply(benchmark::State& state) {
  parse_requests(state, "set " + key_of(1) + " 0 0 2 noreply\r\nhi\r\n");
}
BENCHMARK(BM_ParseSetNoreply);

void BM_ParseDelete(benchmark::State& state) {
  parse_requests(state, "delete " + key_of(1) + "\r\n");
}
BENCHMARK(BM_ParseDelete);

void BM_ParseMetaGet(benchmark::State& state) {
  parse_requests(state, "mg " + key_of(1) + " v t O1\r\n");
}
BENCHMARK(BM_ParseMetaGet);

void BM_ParseMetaFlags(benchmark::State& state) {
  const std::string line = "mg " + key_of(1) + " v t f s k O1 T30\r\n";
  RequestParser parser{ParserLimits{}};
  const Request request = parser.parse(line).value();
  for (auto _ : state) {
    auto flags = parse_meta_flags(request);
    benchmark::DoNotOptimize(flags);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_ParseMetaFlags);

void BM_WalkKeys10(benchmark::State& state) {
  const std::string line = get_of(10);
  RequestParser parser{ParserLimits{}};
  const Request request = parser.parse(line).value();
  for (auto _ : state) {
    KeyWalker keys(request.keys);
    for (std::string_view key = keys.next(); !key.empty(); key = keys.next()) {
      benchmark::DoNotOptimize(key);
    }
  }
  state.SetItemsProcessed(state.iterations() * 10);
}
BENCHMARK(BM_WalkKeys10);

void BM_ParseReplyHit(benchmark::State& state) {
  parse_replies(state, ReplyKind::Retrieval, hits_of(1));
}
BENCHMARK(BM_ParseReplyHit);

void BM_ParseReplyHit10(benchmark::State& state) {
  parse_replies(state, ReplyKind::Retrieval, hits_of(10));
}
BENCHMARK(BM_ParseReplyHit10);

void BM_ParseReplyMiss(benchmark::State& state) {
  parse_replies(state, ReplyKind::Retrieval, "END\r\n");
}
BENCHMARK(BM_ParseReplyMiss);

void BM_ParseReplyStored(benchmark::State& state) {
  parse_replies(state, ReplyKind::Line, "STORED\r\n");
}
BENCHMARK(BM_ParseReplyStored);

void BM_ParseReplyMetaValue(benchmark::State& state) {
  parse_replies(state, ReplyKind::Meta,
                "VA 100 t30 O1\r\n" + std::string(kValueBytes, 'v') + "\r\n");
}
BENCHMARK(BM_ParseReplyMetaValue);

void BM_ScanItems10(benchmark::State& state) {
  const std::string reply = hits_of(10);
  ValueScanner scanner;
  for (auto _ : state) {
    scanner.feed(reply);
    for (ScanEvent event = scanner.next(); event.kind != ScanEvent::Kind::NeedChunk;
         event = scanner.next()) {
      benchmark::DoNotOptimize(event);
    }
  }
  state.SetItemsProcessed(state.iterations() * 10);
}
BENCHMARK(BM_ScanItems10);

}  // namespace
}  // namespace kvferry::memcache

BENCHMARK_MAIN();
