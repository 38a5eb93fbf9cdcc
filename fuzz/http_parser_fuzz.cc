// HTTP requests: pieces give what the whole gives, and views stay inside the bytes they came from.
//
// The first byte seeds where the stream is cut, so that the fuzzer explores splits as well.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "protocol/http/request.h"

namespace {

using kvferry::http::Request;
using kvferry::http::RequestParser;

void require(bool condition) {
  if (!condition) {
    std::abort();
  }
}

bool is_inside(std::string_view view, std::string_view bytes) {
  return view.empty() ||
         (view.data() >= bytes.data() && view.data() + view.size() <= bytes.data() + bytes.size());
}

void check_request(const Request& request, std::string_view bytes) {
  require(request.size_bytes <= bytes.size());
  const std::string_view own = bytes.substr(0, request.size_bytes);
  require(is_inside(request.method, own) && is_inside(request.path, own) &&
          is_inside(request.query, own) && is_inside(request.fields, own) &&
          is_inside(request.body, own));
  require(request.path.starts_with('/'));
  RequestParser alone;
  const RequestParser::Outcome again = alone.parse(own);
  require(again.is_done() && again.value().size_bytes == request.size_bytes);
}

/// Sizes of the requests in `stream`, then the error if there is one. `seed` 0: the whole at once.
std::string parse_in_pieces(std::string_view stream, std::uint32_t seed) {
  std::string seen;
  RequestParser parser;
  std::size_t begin = 0;
  std::size_t have = seed == 0 ? stream.size() : 0;
  for (;;) {
    const std::string_view bytes = stream.substr(begin, have - begin);
    const RequestParser::Outcome outcome = parser.parse(bytes);
    if (outcome.is_failed()) {
      return seen + std::string(text_of(outcome.error()));
    }
    if (outcome.is_done()) {
      check_request(outcome.value(), bytes);
      begin += outcome.value().size_bytes;
      seen += std::to_string(outcome.value().size_bytes) + " ";
      continue;
    }
    if (have == stream.size()) {
      return seen;
    }
    seed = seed * 1664525 + 1013904223;
    have += 1 + (seed >> 16) % 32;
    have = have < stream.size() ? have : stream.size();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(parse_in_pieces(stream, 0) == parse_in_pieces(stream, data[0] + 1U));
  return 0;
}
