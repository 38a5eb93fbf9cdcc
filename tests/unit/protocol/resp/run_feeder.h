// Feeds a RequestParser as a session does, and tells in words what it made of the bytes. They lie
// in a new allocation of their exact size at each call, so that a sanitizer sees every read outside
// of them and every view that outlived them.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/resp/request_parser.h"
#include "tests/support/held_stream.h"
#include "tests/support/splitter.h"

namespace kvferry::resp {

class RunFeeder {
 public:
  explicit RunFeeder(const ParserLimits& limits) : parser_(limits) {}

  void feed(std::string_view piece) {
    stream_.feed(piece, [this] { return take_step(); });
  }

  /// One entry a run: its arguments with '|' between them, "<n>" for one of n bytes that is
  /// streamed, "..." in front of a run that goes on with a request and behind one that does not end
  /// it. The line of an error, or "closed" without one.
  const std::vector<std::string>& told() const { return told_; }
  std::string_view left_over() const { return stream_.held(); }
  RequestParser& parser() { return parser_; }

 private:
  bool take_step() {
    const std::string_view held = stream_.held();
    const auto copy = std::make_unique<char[]>(held.size());
    std::memcpy(copy.get(), held.data(), held.size());
    const auto parsed = parser_.parse({copy.get(), held.size()});
    if (parsed.is_need_more()) {
      return false;
    }
    if (parsed.is_done()) {
      on_run(parsed.value());
    } else {
      on_failure(parsed.error());
    }
    return true;
  }

  void on_run(const RequestRun& run) {
    std::string text = run.is_first() ? "" : "...|";
    for (const std::string_view arg : run.args) {
      text.append(arg).append("|");
    }
    if (run.streamed_bytes != 0) {
      text.append("<").append(std::to_string(run.streamed_bytes)).append(">|");
    }
    text += run.is_last() ? "" : "...|";
    if (run.arg_count != 0) {
      text.pop_back();
      told_.push_back(text);
    }
    stream_.consume(run.size_bytes, run.streamed_bytes == 0 ? 0 : run.streamed_bytes + 2);
  }

  void on_failure(const ParseFailure& failure) {
    std::string line;
    append_error_line(failure, line);
    told_.push_back(line.empty() ? "closed" : line.substr(0, line.size() - 2));
    stream_.close();
  }

  RequestParser parser_;
  test::HeldStream stream_;
  std::vector<std::string> told_;
};

inline std::vector<std::string> tell(const test::Pieces& pieces, const ParserLimits& limits = {}) {
  RunFeeder feeder(limits);
  for (const std::string_view piece : pieces) {
    feeder.feed(piece);
  }
  return feeder.told();
}

}  // namespace kvferry::resp
