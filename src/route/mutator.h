// Mutator: writes a request or a reply from parts: fixed texts and what it copies from its
// arguments. Prepared once, used for each request.
//
// The line is what the steps give, in their order, with single blanks between them. A value stands
// behind the line; its length stands where the step that copies it stands.
//
// Source:    docs/lua.md, "Mutators".
// Lifetime:  what arguments refer to need only live during write().
// Errors:    MutateResult; nothing is written then.
// Threads:   one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "route/route_reply.h"
#include "route/route_request.h"

namespace kvferry::route {

enum class MutateKind : std::uint8_t {
  // Into requests.
  SetCommand,
  CopyCommand,
  SetKey,
  CopyKey,
  // Into both.
  SetFlag,
  CopyFlag,
  CopyAllFlags,
  CopyValue,
  // Into replies.
  NothingThere,  // The answer to a request for an item that does not exist.
  SetCode,
  CopyCode,
  SetError,
};
inline bool fits_request(MutateKind kind) noexcept {
  return kind <= MutateKind::CopyValue;
}
inline bool fits_reply(MutateKind kind) noexcept {
  return kind >= MutateKind::SetFlag;
}

struct MutateStep {
  MutateKind kind{};
  char letter = 0;             // Of CopyFlag.
  std::uint32_t argument = 0;  // Which one is copied from, from 1; 0 for steps that copy nothing.
  std::string text{};          // The word or words that a step writes that copies nothing.
};

struct MutateArgument {
  enum class Kind : std::uint8_t { Nothing, True, Text, Request, Reply, Other };
  Kind kind = Kind::Nothing;
  std::string_view text{};
  const RouteRequest* request = nullptr;
  const RouteReply* reply = nullptr;
};

enum class MutateResult : std::uint8_t {
  Written,
  Unusable,  // An argument is not what its step can copy from.
  TooLong,
  Malformed,  // The line is no request, or no answer.
};

class Mutator {
 public:
  /// Adds a step. The reference is valid until the next one.
  MutateStep& add(MutateKind kind);
  /// To be called when all steps are there.
  void finish();

  /// One for each argument that steps name; to be filled before each write().
  std::span<MutateArgument> arguments() { return arguments_; }

  /// `request` has no value; it may be one of the arguments.
  MutateResult write(RouteRequest& request);
  /// `reply` is empty.
  MutateResult write(RouteReply& reply);

 private:
  MutateResult compose();
  bool run(const MutateStep& step);
  bool copy_name(const MutateStep& step, const MutateArgument& from);
  bool copy_flag(const MutateStep& step, const MutateArgument& from);
  bool copy_all_flags(const MutateArgument& from);
  bool copy_value(const MutateArgument& from);
  bool append_flag(const MutateStep& step, bool is_meta, const FlagToken& flag);
  /// Appends a word made of two pieces. Always true, so that steps can end with it.
  bool append(std::string_view word, std::string_view rest = {});

  std::vector<MutateStep> steps_;
  std::vector<MutateArgument> arguments_;
  std::string line_;
  std::string_view value_;  // With its line end.
  bool is_too_long_ = false;
};

}  // namespace kvferry::route
