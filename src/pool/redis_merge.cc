#include "pool/redis_merge.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "protocol/resp/array_walker.h"
#include "protocol/resp/integer.h"
#include "protocol/resp/request_writer.h"

namespace kvferry::pool {

namespace {

using redis::Merge;
using resp::ArrayWalker;
using Elements = std::vector<std::string_view>;

void append_number(std::string& out, std::int64_t number) {
  out += ':' + std::to_string(number) + "\r\n";
}

bool read_elements(std::string_view reply, Elements& elements) {
  ArrayWalker walker;
  while (!reply.empty()) {
    const ArrayWalker::Step step = walker.next(reply);
    if (step.found == ArrayWalker::Found::Bad || step.found == ArrayWalker::Found::More) {
      return false;
    }
    if (step.found == ArrayWalker::Found::Element) {
      elements.push_back(reply.substr(0, step.taken_bytes));
    }
    reply.remove_prefix(step.taken_bytes);
  }
  return walker.is_over();
}

void append_array(std::string& out, const Elements& elements) {
  out += resp::LengthLine('*', elements.size()).text();
  for (const std::string_view element : elements) {
    out += element;
  }
}

bool merge_numbers(Merge merge, std::span<const std::string> replies, std::string& out) {
  std::int64_t merged = 0;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    std::int64_t number = 0;
    if (!read_number_reply(replies[i], number)) {
      return false;
    }
    if (merge == Merge::Sum) {
      merged += number;
    } else {
      merged = i == 0 ? number : std::min(merged, number);
    }
  }
  append_number(out, merged);
  return true;
}

bool merge_elements(Merge merge, std::span<const std::string> replies, std::string& out) {
  Elements all;
  for (const std::string& reply : replies) {
    if (!read_elements(reply, all)) {
      return false;
    }
  }
  if (merge == Merge::Union) {
    std::unordered_set<std::string_view> seen;
    std::erase_if(all, [&](std::string_view element) { return !seen.insert(element).second; });
  }
  append_array(out, all);
  return true;
}

bool sum_by_name(std::span<const std::string> replies, std::string& out) {
  Elements names;
  std::unordered_map<std::string_view, std::int64_t> sums;
  for (const std::string& reply : replies) {
    Elements elements;
    if (!read_elements(reply, elements) || elements.size() % 2 != 0) {
      return false;
    }
    for (std::size_t i = 0; i < elements.size(); i += 2) {
      std::int64_t number = 0;
      if (!read_number_reply(elements[i + 1], number)) {
        return false;
      }
      const auto [place, is_new] = sums.try_emplace(elements[i], 0);
      place->second += number;
      if (is_new) {
        names.push_back(elements[i]);
      }
    }
  }
  out += resp::LengthLine('*', 2 * names.size()).text();
  for (const std::string_view name : names) {
    out += name;
    append_number(out, sums[name]);
  }
  return true;
}

bool merge_by_and(std::span<const std::string> replies, std::string& out) {
  std::vector<bool> all;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    Elements elements;
    if (!read_elements(replies[i], elements) || (i != 0 && elements.size() != all.size())) {
      return false;
    }
    all.resize(elements.size(), true);
    for (std::size_t place = 0; place < elements.size(); ++place) {
      std::int64_t number = 0;
      if (!read_number_reply(elements[place], number)) {
        return false;
      }
      all[place] = all[place] && number != 0;
    }
  }
  out += resp::LengthLine('*', all.size()).text();
  for (const bool is_set : all) {
    append_number(out, is_set ? 1 : 0);
  }
  return true;
}

/// A reply of FUNCTION STATS in which a script is running.
bool tells_of_running(std::string_view reply) {
  constexpr std::string_view kName = "running_script\r\n";
  const std::size_t at = reply.find(kName);
  if (at == std::string_view::npos) {
    return false;
  }
  const std::string_view value = reply.substr(at + kName.size());
  return !value.starts_with('_') && !value.starts_with("$-1") && !value.starts_with("*-1");
}

}  // namespace

bool read_number_reply(std::string_view reply, std::int64_t& number) noexcept {
  return reply.size() > 3 && reply.starts_with(':') && reply.ends_with("\r\n") &&
         resp::read_integer(reply.substr(1, reply.size() - 3), number);
}

bool merge_replies(Merge merge, std::span<const std::string> replies, std::string& out) {
  out.clear();
  switch (merge) {
    case Merge::AllOk:
      out = replies.front();
      return std::all_of(replies.begin(), replies.end(),
                         [](const std::string& reply) { return reply == "+OK\r\n"; });
    case Merge::Sum:
    case Merge::Minimum:
      return merge_numbers(merge, replies, out);
    case Merge::Concatenated:
    case Merge::Union:
      return merge_elements(merge, replies, out);
    case Merge::SumByName:
      return sum_by_name(replies, out);
    case Merge::LogicalAnd:
      return merge_by_and(replies, out);
    case Merge::FirstRunning: {
      const auto found = std::find_if(replies.begin(), replies.end(), tells_of_running);
      out = found == replies.end() ? replies.front() : *found;
      return true;
    }
    case Merge::One:
    case Merge::FirstOfAll:
    case Merge::FirstSuccess:
      out = replies.front();
      return true;
    case Merge::Local:
    case Merge::KeyedArray:
    case Merge::Cursor:
      break;
  }
  return false;
}

}  // namespace kvferry::pool
