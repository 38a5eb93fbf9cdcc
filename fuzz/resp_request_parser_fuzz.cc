// Requests of Redis clients: pieces give what the whole gives, views stay inside the bytes they
// came from, and what was accepted is accepted again when it is composed anew.
//
// Byte 0 chooses limits, byte 1 the cuts; the rest is what a client sends.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/fuzz_support.h"
#include "protocol/resp/request_parser.h"
#include "tests/support/held_stream.h"

namespace kvferry::resp {
namespace {

using fuzz::is_inside;
using fuzz::PieceSizes;
using fuzz::require;

/// What one run came to; equal for every way of cutting.
struct Event {
  RequestError error = RequestError::None;
  std::vector<std::string> args{};
  std::uint32_t first_index = 0;
  std::uint32_t arg_count = 0;
  std::uint64_t streamed_bytes = 0;
  std::uint64_t end_at = 0;  // Position in the stream behind the run.
  bool operator==(const Event&) const = default;
};

ParserLimits limits_of(std::uint8_t byte) {
  ParserLimits limits;
  limits.args_max = (byte & 1) != 0 ? 4 : limits.args_max;
  limits.bulk_bytes_max = (byte & 2) != 0 ? 100 : limits.bulk_bytes_max;
  limits.stream_bytes_min = (byte & 4) != 0 ? 5 : limits.stream_bytes_min;
  limits.is_client_known = (byte & 8) == 0;
  return limits;
}

/// An array of what an inline request, or a whole one, has asked for must be read as the same.
void check_again(const RequestRun& run) {
  if (run.arg_count == 0 || run.arg_count != run.args.size()) {
    return;
  }
  std::string bytes = "*" + std::to_string(run.arg_count) + "\r\n";
  for (const std::string_view arg : run.args) {
    bytes.append("$").append(std::to_string(arg.size())).append("\r\n").append(arg).append("\r\n");
  }
  RequestParser parser(ParserLimits{.stream_bytes_min = kBulkBytesMaxDefault});
  const auto again = parser.parse(bytes);
  require(again.is_done() && again.value().size_bytes == bytes.size());
  require(std::vector(again.value().args.begin(), again.value().args.end()) ==
          std::vector(run.args.begin(), run.args.end()));
}

class Player {
 public:
  explicit Player(const ParserLimits& limits) : limits_(limits), parser_(limits) {}

  std::vector<Event> play(std::string_view stream, PieceSizes sizes) {
    while (!stream.empty() && !stream_.is_closed()) {
      const std::size_t size = sizes.next(stream.size());
      stream_.feed(stream.substr(0, size), [this] { return take_step(); });
      stream.remove_prefix(size);
    }
    return events_;
  }

 private:
  bool take_step() {
    const std::string copy(stream_.held());  // Elsewhere at each call.
    const auto parsed = parser_.parse(copy);
    if (parsed.is_need_more()) {
      return false;
    }
    if (parsed.is_failed()) {
      std::string line;
      append_error_line(parsed.error(), line);
      require(line.empty() == (parsed.error().error == RequestError::Browser));
      events_.push_back(Event{.error = parsed.error().error, .end_at = stream_.position()});
      stream_.close();
      return true;
    }
    on_run(parsed.value(), copy);
    return true;
  }

  void on_run(const RequestRun& run, std::string_view bytes) {
    require(run.size_bytes > 0 && run.size_bytes <= bytes.size());
    require(run.arg_count <= limits_.args_max || run.is_inline);
    require(run.is_first() == (expected_index_ == 0) && run.first_index == expected_index_);
    require(run.first_index + run.args.size() <= run.arg_count);
    Event event{.first_index = run.first_index,
                .arg_count = run.arg_count,
                .streamed_bytes = run.streamed_bytes};
    for (const std::string_view arg : run.args) {
      require(run.is_inline || is_inside(arg, bytes.substr(0, run.size_bytes)));
      require(run.is_inline || arg.size() < limits_.stream_bytes_min);
      event.args.emplace_back(arg);
    }
    check_again(run);
    const std::size_t count = run.args.size() + (run.streamed_bytes != 0 ? 1 : 0);
    expected_index_ = run.is_last() ? 0 : run.first_index + static_cast<std::uint32_t>(count);
    stream_.consume(run.size_bytes, run.streamed_bytes == 0 ? 0 : run.streamed_bytes + 2);
    event.end_at = stream_.position();
    events_.push_back(event);
  }

  ParserLimits limits_;
  RequestParser parser_;
  test::HeldStream stream_;
  std::vector<Event> events_;
  std::uint32_t expected_index_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::require_same_in_pieces<Player>(&limits_of, data, size);
  return 0;
}

}  // namespace kvferry::resp
