#include "route/mutator.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check.h"
#include "route/null_answer.h"

namespace kvferry::route {
namespace {

using memcache::Command;
using Kind = MutateArgument::Kind;

constexpr std::string_view kLineEnd = "\r\n";
/// Bytes of the code of a meta answer.
constexpr std::size_t kMetaCodeBytes = 2;

/// The word of null_answer(); empty for commands that ask for no item.
std::string_view nothing_there(Command command) {
  std::string_view line = null_answer(command).line;
  line.remove_suffix(std::min<std::size_t>(line.size(), 2));
  return line;
}

}  // namespace

MutateStep& Mutator::add(MutateKind kind) {
  steps_.push_back({.kind = kind});
  return steps_.back();
}

void Mutator::finish() {
  std::size_t count = 0;
  for (const MutateStep& step : steps_) {
    count = std::max<std::size_t>(count, step.argument);
  }
  arguments_.resize(count);
}

MutateResult Mutator::write(RouteRequest& request) {
  KVF_DCHECK(!request.has_value());
  const MutateResult composed = compose();
  if (composed != MutateResult::Written) {
    return composed;
  }
  return request.assign(line_, value_) ? MutateResult::Written : MutateResult::Malformed;
}

MutateResult Mutator::write(RouteReply& reply) {
  KVF_DCHECK(reply.is_empty());
  const MutateResult composed = compose();
  if (composed != MutateResult::Written) {
    return composed;
  }
  return reply.assign(line_, value_) ? MutateResult::Written : MutateResult::Malformed;
}

MutateResult Mutator::compose() {
  line_.clear();
  value_ = {};
  is_too_long_ = false;
  for (const MutateStep& step : steps_) {
    if (!run(step)) {
      return MutateResult::Unusable;
    }
  }
  if (is_too_long_ || line_.size() + kLineEnd.size() > kEditedLineBytesMax) {
    return MutateResult::TooLong;
  }
  line_ += kLineEnd;
  return MutateResult::Written;
}

bool Mutator::run(const MutateStep& step) {
  if (step.argument == 0) {
    return append(step.text);
  }
  const MutateArgument& from = arguments_[step.argument - 1];
  switch (step.kind) {
    case MutateKind::CopyFlag:
      return copy_flag(step, from);
    case MutateKind::CopyAllFlags:
      return copy_all_flags(from);
    case MutateKind::CopyValue:
      return copy_value(from);
    default:
      return copy_name(step, from);
  }
}

bool Mutator::copy_name(const MutateStep& step, const MutateArgument& from) {
  std::string_view name;
  if (step.kind == MutateKind::NothingThere) {
    name = from.kind == Kind::Request ? nothing_there(from.request->command()) : name;
  } else if (from.kind == Kind::Text) {
    name = from.text;
  } else if (step.kind == MutateKind::CopyCode) {
    name = from.kind == Kind::Reply && from.reply->is_meta()
               ? from.reply->bytes().substr(0, kMetaCodeBytes)
               : name;
  } else if (from.kind == Kind::Request && !from.request->is_empty()) {
    name = step.kind == MutateKind::CopyKey ? from.request->key()
                                            : memcache::command_name(from.request->command());
  }
  return !name.empty() && append(name);
}

bool Mutator::copy_flag(const MutateStep& step, const MutateArgument& from) {
  const std::string_view letter(&step.letter, 1);
  switch (from.kind) {
    case Kind::Nothing:
      return true;
    case Kind::True:
      return append(letter);
    case Kind::Text:
      return append(letter, from.text);
    case Kind::Request:
      return append_flag(step, from.request->is_meta(), from.request->find_flag(step.letter));
    case Kind::Reply:
      return append_flag(step, from.reply->is_meta(), from.reply->find_flag(step.letter));
    case Kind::Other:
      break;
  }
  return false;
}

bool Mutator::append_flag(const MutateStep& step, bool is_meta, const FlagToken& flag) {
  if (!is_meta) {
    return false;
  }
  return !flag.is_found || append({&step.letter, 1}, flag.text);
}

bool Mutator::copy_all_flags(const MutateArgument& from) {
  switch (from.kind) {
    case Kind::Text:
      return append(from.text);
    case Kind::Request:
      return from.request->is_meta() && append(from.request->flags_text());
    case Kind::Reply:
      return from.reply->is_meta() && append(from.reply->flags_text());
    default:
      return false;
  }
}

bool Mutator::copy_value(const MutateArgument& from) {
  std::string_view value;
  if (from.kind == Kind::Text) {
    value = from.text;
  } else if (from.kind == Kind::Request) {
    value = from.request->value_with_end();
  } else if (from.kind == Kind::Reply) {
    value = from.reply->value_with_end();
  }
  if (!value.ends_with(kLineEnd) || !value_.empty()) {
    return false;
  }
  value_ = value;
  std::array<char, 24> digits{};
  const auto written =
      std::to_chars(digits.data(), digits.data() + digits.size(), value.size() - kLineEnd.size());
  return append({digits.data(), static_cast<std::size_t>(written.ptr - digits.data())});
}

bool Mutator::append(std::string_view word, std::string_view rest) {
  const std::size_t size = word.size() + rest.size();
  if (size == 0) {
    return true;
  }
  if (size > kEditedLineBytesMax || line_.size() > kEditedLineBytesMax) {
    is_too_long_ = true;  // What does not fit is not copied either.
    return true;
  }
  if (!line_.empty()) {
    line_ += ' ';
  }
  line_ += word;
  line_ += rest;
  return true;
}

}  // namespace kvferry::route
