// What redis-server answered: the files that tests/data/redis/record.py writes.
#pragma once

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "protocol/resp/inline_words.h"

namespace kvferry::redis {

struct RecordedReply {
  std::string line;                // The request, as an inline one.
  std::vector<std::string> words;  // Its arguments.
  std::string version_two;
  std::string version_three;
};

/// The words of a line, as an inline request has them.
inline std::vector<std::string> words_of(std::string_view line) {
  std::string bytes;
  std::vector<resp::WordPlace> places;
  EXPECT_TRUE(resp::read_inline_words(line, bytes, places)) << line;
  std::vector<std::string> words;
  for (const resp::WordPlace& place : places) {
    words.push_back(bytes.substr(place.begin, place.size));
  }
  return words;
}

inline std::vector<std::string_view> views_of(const std::vector<std::string>& words) {
  return {words.begin(), words.end()};
}

/// `folder` is that of the tests.
inline std::vector<RecordedReply> read_recorded_replies(const std::string& folder) {
  std::ifstream file(folder + "/data/redis/command_replies.txt");
  std::vector<RecordedReply> replies;
  for (std::string line; std::getline(file, line);) {
    const std::string rest = line.substr(line.size() < 2 ? line.size() : 2);
    if (line.starts_with("> ")) {
      replies.push_back(
          {.line = rest, .words = words_of(rest), .version_two = "", .version_three = ""});
    } else if (line.starts_with("2 ")) {
      replies.back().version_two = replies.back().version_three = words_of(rest).front();
    } else if (line.starts_with("3 ")) {
      replies.back().version_three = words_of(rest).front();
    }
  }
  return replies;
}

/// The rows of commands.txt: name, arity, flags, categories, first key, last key, step, key specs,
/// tips, group, since, doc flag, the errors about one argument too few and one too many ("-": there
/// is none).
inline std::vector<std::vector<std::string>> read_recorded_commands(const std::string& folder) {
  std::ifstream file(folder + "/data/redis/commands.txt");
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) {
      continue;
    }
    std::vector<std::string>& row = rows.emplace_back();
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      row.push_back(line.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return rows;
}

}  // namespace kvferry::redis
