#include "pool/greeting.h"

#include <span>
#include <utility>

#include "protocol/resp/request_writer.h"

namespace kvferry::pool {

namespace {

void add_step(Greeting& greeting, Greeting::Step step, std::span<const std::string_view> words) {
  resp::append_request(words, greeting.bytes);
  greeting.steps[greeting.step_count++] = step;
}

}  // namespace

Greeting redis_greeting(const RedisOptions& options, resp::Version version,
                        std::uint32_t database) {
  Greeting greeting;
  if (!options.password.empty()) {
    const std::array<std::string_view, 3> words = {"AUTH", options.user, options.password};
    const std::array<std::string_view, 2> of_default = {"AUTH", options.password};
    if (options.user.empty()) {
      add_step(greeting, Greeting::Step::Auth, of_default);
    } else {
      add_step(greeting, Greeting::Step::Auth, words);
    }
  }
  if (version == resp::Version::Three) {
    const std::array<std::string_view, 2> words = {"HELLO", "3"};
    add_step(greeting, Greeting::Step::Hello, words);
  }
  if (database != 0) {
    const std::string number = std::to_string(database);
    const std::array<std::string_view, 2> words = {"SELECT", number};
    add_step(greeting, Greeting::Step::Select, words);
  }
  return greeting;
}

std::string_view greeting_refusal(Greeting::Step step, std::string_view line) noexcept {
  if (!line.starts_with('-') && !line.starts_with('!')) {
    return {};
  }
  const auto says = [&](std::string_view words) {
    return line.find(words) != std::string_view::npos;
  };
  if (says("max number of clients") || line.starts_with("-DENIED")) {
    return "connection rejected";
  }
  if (step == Greeting::Step::Auth || line.starts_with("-NOAUTH") || line.starts_with("-NOPERM") ||
      line.starts_with("-WRONGPASS")) {
    return kCredentialsRejected;
  }
  if (step == Greeting::Step::Select) {
    return "database rejected";
  }
  if (says("unknown command") || line.starts_with("-NOPROTO")) {
    return {};  // It knows version 2 only.
  }
  return "protocol version rejected";
}

}  // namespace kvferry::pool
