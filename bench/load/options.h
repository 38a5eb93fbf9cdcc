// Command line of the load generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace kvferry::load {

enum class Operation : std::uint8_t {
  Get,
  Set,
  Mix,       // One set among ten requests, gets otherwise.
  MultiGet,  // One get of several keys.
  Fill,      // Every key set once, in order; ends by itself.
};

struct Options {
  std::string host = "127.0.0.1";  // An IPv4 address.
  std::uint16_t port = 11211;
  Operation operation = Operation::Get;
  std::size_t connections = 50;
  std::size_t depth = 1;  // Requests in flight on each connection.
  double seconds = 3;
  double warmup_seconds = 0.25;    // Not measured.
  std::uint64_t requests_max = 0;  // Stop after so many; 0: by time alone.
  std::uint32_t keys = 20000;
  std::size_t key_bytes = 32;
  std::size_t value_bytes = 100;
  std::size_t keys_per_get = 10;
  std::uint64_t seed = 1;
  double stall_seconds = 5;     // No byte on any connection for so long ends the run with status 4.
  bool verify = false;          // Compare every key, flag and byte of each reply.
  bool reconnect = false;       // A closed connection is counted and opened again.
  bool marks = false;           // Print a line when measuring starts and one when it stops.
  bool error_keys = false;      // Name the keys whose requests were answered with errors.
  double timeline_seconds = 0;  // Width of the intervals of the "timeline" list; 0: none.
};

/// Nothing when the arguments are wrong; the reason has been written to standard error then.
std::optional<Options> parse_options(int argc, char** argv);

}  // namespace kvferry::load
