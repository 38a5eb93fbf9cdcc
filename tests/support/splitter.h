// Ways to cut bytes into pieces, for tests of incremental parsers: whole, byte by byte, and in two
// at every position.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvferry::test {

using Pieces = std::vector<std::string_view>;

inline Pieces cut_to_bytes(std::string_view whole) {
  Pieces pieces;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    pieces.push_back(whole.substr(at, 1));
  }
  return pieces;
}

inline Pieces cut_in_two(std::string_view whole, std::size_t at) {
  return {whole.substr(0, at), whole.substr(at)};
}

/// All of them. Takes memory of the square of the number of bytes over a view: keep `whole` short.
inline std::vector<Pieces> all_cuts(std::string_view whole) {
  std::vector<Pieces> cuts = {{whole}, cut_to_bytes(whole)};
  for (std::size_t at = 1; at < whole.size(); ++at) {
    cuts.push_back(cut_in_two(whole, at));
  }
  return cuts;
}

/// The pieces are views, so `whole` must live on.
std::vector<Pieces> all_cuts(std::string&& whole) = delete;

}  // namespace kvferry::test
