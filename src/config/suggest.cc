#include "config/suggest.h"

#include <algorithm>
#include <vector>

namespace kvferry::config {

std::size_t edit_distance(std::string_view left, std::string_view right) {
  const std::size_t far = kSuggestDistanceMax + 1;
  const std::size_t longer = std::max(left.size(), right.size());
  if (longer - std::min(left.size(), right.size()) >= far) {
    return far;
  }
  // Three rows of the usual table: a swap looks two rows back.
  std::vector<std::size_t> before(right.size() + 1);
  std::vector<std::size_t> previous(right.size() + 1);
  std::vector<std::size_t> current(right.size() + 1);
  for (std::size_t column = 0; column <= right.size(); ++column) {
    previous[column] = column;
  }
  for (std::size_t row = 1; row <= left.size(); ++row) {
    current[0] = row;
    for (std::size_t column = 1; column <= right.size(); ++column) {
      const std::size_t replaced = left[row - 1] == right[column - 1] ? 0 : 1;
      std::size_t best = std::min(
          {previous[column] + 1, current[column - 1] + 1, previous[column - 1] + replaced});
      const bool is_swap = row > 1 && column > 1 && left[row - 1] == right[column - 2] &&
                           left[row - 2] == right[column - 1];
      if (is_swap) {
        best = std::min(best, before[column - 2] + 1);
      }
      current[column] = best;
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return std::min(previous[right.size()], far);
}

std::string_view suggest(std::string_view text, std::span<const std::string_view> words) {
  std::string_view best;
  std::size_t best_distance = kSuggestDistanceMax + 1;
  // Of equally near words the one of the same length: people replace more than they forget.
  const auto is_better = [&](std::string_view word, std::size_t distance) {
    return distance < best_distance ||
           (distance == best_distance && word.size() == text.size() && best.size() != text.size());
  };
  for (const std::string_view word : words) {
    const std::size_t distance = edit_distance(text, word);
    if (distance <= kSuggestDistanceMax && 2 * distance < word.size() &&
        is_better(word, distance)) {
      best = word;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace kvferry::config
