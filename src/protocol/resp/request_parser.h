// RequestParser: cuts requests out of the bytes of a Redis client, in whatever pieces they come.
//
// The caller keeps the bytes from the begin of a run on, gives all of them at each call, and takes
// size_bytes of them away when one is done. Bytes that were looked at are not looked at again.
// Source:    see request.h.
// Lifetime:  views that it returns die with the next call, or with the bytes.
// Threads:   one user at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"
#include "protocol/resp/inline_words.h"
#include "protocol/resp/request.h"

namespace kvferry::resp {

/// Room for so many arguments is kept from one request to the next.
inline constexpr std::size_t kArgsKept = 256;
/// And for so many decoded bytes of inline requests.
inline constexpr std::size_t kInlineBytesKept = 1024;

struct ParserLimits {
  std::uint32_t args_max = kArgsMaxDefault;
  std::uint64_t bulk_bytes_max = kBulkBytesMaxDefault;
  /// Arguments from this length on are not waited for.
  std::uint64_t stream_bytes_min = std::uint64_t{64} * 1024;
  bool is_client_known = true;  // It has authenticated itself, or need not.
};

class RequestParser {
 public:
  using Outcome = base::Parsed<RequestRun, ParseFailure>;

  explicit RequestParser(const ParserLimits& limits) noexcept : limits_(limits) {}

  /// Looks at `bytes`, which begin where the last run (and the argument streamed behind it) has
  /// ended. A done run may have no arguments: nothing was asked for, and nothing is to be answered.
  /// After a failure it is not called again.
  Outcome parse(std::string_view bytes);

  /// The next call begins again at the begin of the request whose first run, or need of more bytes,
  /// was told last.
  void rewind() noexcept;
  /// As rewind(), and nothing of the request is streamed: it is waited for and comes in one run.
  void gather() noexcept;
  /// From the next request on.
  void set_client_known(bool is_known) noexcept { limits_.is_client_known = is_known; }
  /// How many bytes all calls together have looked at, lines and lengths.
  std::uint64_t scanned_bytes_for_test() const noexcept { return scanned_bytes_; }

 private:
  enum class Phase : std::uint8_t {
    Begin,     // At the first byte of a request.
    Elements,  // Inside of an array.
  };
  enum class Step : std::uint8_t { Go, NeedMore, Stream, Failed };

  Outcome parse_inline(std::string_view bytes);
  Step read_count(std::string_view bytes);
  Step read_elements(std::string_view bytes);
  Step read_length(std::string_view bytes);
  Step read_element(std::string_view bytes);
  /// Finds the end of the line that begins at at_. NeedMore: it has not come. Failed: it is too
  /// far.
  Step find_line(std::string_view bytes, RequestError too_long, std::string_view& line);
  Step fail(RequestError error, char found = 0) noexcept {
    failure_ = ParseFailure{.error = error, .found = found};
    return Step::Failed;
  }
  Outcome outcome_of(Step step, std::string_view bytes);
  /// What was read is a run; its places are those of `bytes`.
  RequestRun finish(std::string_view bytes);

  ParserLimits limits_;
  Phase phase_ = Phase::Begin;
  bool has_length_ = false;    // bulk_bytes_ is that of the element at at_.
  bool is_gathering_ = false;  // Of this request nothing is streamed.
  std::uint32_t arg_count_ = 0;
  std::uint32_t seen_count_ = 0;    // Arguments of earlier runs, streamed ones included.
  std::size_t at_ = 0;              // What lies before was understood.
  std::size_t searched_bytes_ = 0;  // So far no line end was found.
  std::uint64_t bulk_bytes_ = 0;
  std::uint64_t streamed_bytes_ = 0;  // Of the run that is returned.
  std::uint64_t scanned_bytes_ = 0;
  ParseFailure failure_;
  std::vector<WordPlace> places_;  // Arguments of the run, from its begin.
  std::vector<std::string_view> args_;
  std::string inline_bytes_;  // Decoded arguments of an inline request.
};

}  // namespace kvferry::resp
