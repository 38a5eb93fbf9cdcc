#include "route/near_route.h"

#include <array>
#include <charconv>

#include "protocol/memcache/number.h"
#include "protocol/memcache/token_walker.h"
#include "route/key_effect.h"

namespace kvferry::route {

using memcache::Command;
using memcache::MetaFlags;
using memcache::ReplyCode;
using memcache::Request;

namespace {

MetaFlags flags_of(const Request& request) {
  return request.command == Command::Mg ? memcache::parse_meta_flags(request) : MetaFlags{};
}

void add_number(std::string& text, std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  text.append(digits.data(), end);
}

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  return memcache::read_number(text, number) ? std::optional(number) : std::nullopt;
}

/// Of the line "VALUE <key> <flags> <bytes> [<cas>]".
void read_classic_numbers(std::string_view line, NearItem& item) {
  memcache::TokenWalker words(line);
  words.next();
  words.next();
  item.client_flags = number_of<std::uint32_t>(words.next());
  words.next();
  item.cas = number_of<std::uint64_t>(words.next());
}

/// What `reply` says of its item; none when it is not all there, or is one for this client only.
std::optional<NearItem> item_of(const RouteReply& reply) {
  if (!reply.is_complete() || !reply.has_value() || reply.origin() != call::ReplyOrigin::Answerer) {
    return std::nullopt;
  }
  NearItem item{.value = reply.value()};
  if (!reply.is_meta()) {
    const std::string_view bytes = reply.bytes();
    read_classic_numbers(bytes.substr(0, bytes.find('\r')), item);
    return item.client_flags ? std::optional(item) : std::nullopt;
  }
  // Stale items, and the word that this client is the one to bring a new value, or is not; items
  // whose key is shown in base64.
  for (const char letter : {'W', 'X', 'Z', 'b'}) {
    if (reply.find_flag(letter).is_found) {
      return std::nullopt;
    }
  }
  item.client_flags = number_of<std::uint32_t>(reply.find_flag('f').text);
  item.cas = number_of<std::uint64_t>(reply.find_flag('c').text);
  return item;
}

}  // namespace

void NearRoute::start(RouteRun& run) {
  const Request& request = run.request().shown();
  const MetaFlags flags = flags_of(request);
  switch (effect_of(request, flags)) {
    case KeyEffect::Reads:
      start_read(run, flags);
      return;
    case KeyEffect::Looks:
      break;
    case KeyEffect::Changes: {
      KeyBuffer buffer;
      copies_.forget(plain_key(request, buffer));
      break;
    }
  }
  forward(run);
}

void NearRoute::start_read(RouteRun& run, const MetaFlags& flags) {
  const Request& request = run.request().shown();
  if (!NearCopies::can_keep(request.key)) {
    forward(run);
    return;
  }
  const NearCopies::Found found = copies_.look_up(request.key, loop().now());
  if (found.item && compose(request, flags, *found.item)) {
    host().count(RouteEvent::Hit);
    const ReplyCode meta = flags.has('v') ? ReplyCode::MetaVa : ReplyCode::MetaHd;
    run.answer_text(reply_, request.command == Command::Mg ? meta : ReplyCode::Value);
    return;
  }
  host().count(RouteEvent::Miss);
  run.mark = found.token;
  run.begun = loop().now();
  forward(run);
}

void NearRoute::forward(RouteRun& run) {
  run.enqueue(0);
  if (run.context().wait_for(0, std::nullopt)) {
    on_wait_over(run);
  }
}

void NearRoute::on_wait_over(RouteRun& run) {
  take_reply(run);
  run.answer_with(0);
}

void NearRoute::take_reply(RouteRun& run) {
  const Request& request = run.request().shown();
  switch (effect_of(request)) {
    case KeyEffect::Looks:
      return;
    case KeyEffect::Changes: {
      KeyBuffer buffer;
      copies_.forget(plain_key(request, buffer));
      return;
    }
    case KeyEffect::Reads:
      break;
  }
  if (run.mark == NearCopies::kNoToken) {
    return;
  }
  const std::optional<NearItem> item = item_of(run.context().reply(0));
  if (item && item->value.size() <= copies_.value_bytes_max()) {
    copies_.fill(request.key, run.mark, *item, run.begun);
  } else {
    copies_.give_up(request.key, run.mark);
  }
}

/// Whether the copy has all that the request asks for; the answer is in reply_ then.
bool NearRoute::compose(const Request& request, const MetaFlags& flags, const NearItem& item) {
  const bool is_meta = request.command == Command::Mg;
  const bool wants_flags = !is_meta || flags.has('f');
  const bool wants_cas = is_meta ? flags.has('c') : request.command == Command::Gets;
  if ((wants_flags && !item.client_flags) || (wants_cas && !item.cas)) {
    return false;
  }
  if (reply_.capacity() > kNearBufferBytesKept) {
    reply_ = std::string();
  }
  reply_.clear();
  if (is_meta) {
    compose_meta(request, flags, item);
  } else {
    compose_classic(request, item);
  }
  return true;
}

void NearRoute::compose_classic(const Request& request, const NearItem& item) {
  reply_.append("VALUE ").append(request.key).append(" ");
  add_number(reply_, item.client_flags.value_or(0));
  reply_ += ' ';
  add_number(reply_, item.value.size());
  if (request.command == Command::Gets) {
    reply_ += ' ';
    add_number(reply_, item.cas.value_or(0));
  }
  reply_.append("\r\n").append(item.value).append("\r\nEND\r\n");
}

void NearRoute::compose_meta(const Request& request, const MetaFlags& flags, const NearItem& item) {
  reply_.append(flags.has('v') ? "VA " : "HD");
  if (flags.has('v')) {
    add_number(reply_, item.value.size());
  }
  for (const char letter : flags.letters()) {
    switch (letter) {
      case 'f':
        reply_ += " f";
        add_number(reply_, item.client_flags.value_or(0));
        break;
      case 's':
        reply_ += " s";
        add_number(reply_, item.value.size());
        break;
      case 'c':
        reply_ += " c";
        add_number(reply_, item.cas.value_or(0));
        break;
      case 'k':
        reply_.append(" k").append(request.key);
        break;
      case 'O':
        reply_.append(" ").append(flags.opaque);
        break;
      default:
        break;
    }
  }
  reply_ += "\r\n";
  if (flags.has('v')) {
    reply_.append(item.value).append("\r\n");
  }
}

}  // namespace kvferry::route
