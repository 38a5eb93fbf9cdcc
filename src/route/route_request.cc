#include "route/route_request.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "protocol/memcache/request_parser.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::route {
namespace {

using memcache::Command;
using memcache::Request;

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kNoreply = " noreply";

/// Room for a line and for the line end that parse_line() puts behind it.
using LineBuffer = std::array<char, kEditedLineBytesMax + kLineEnd.size()>;

/// Parses the first `line_bytes` of `buffer` as one line without its value. False when they are no
/// request, or more than one.
bool parse_filled(LineBuffer& buffer, std::size_t line_bytes, Request& head) {
  // An announced value of no bytes still has a line end; longer ones are not waited for, since all
  // of them count as streamed.
  std::ranges::copy(kLineEnd, buffer.begin() + static_cast<std::ptrdiff_t>(line_bytes));
  memcache::RequestParser parser(memcache::ParserLimits{.stream_bytes_min = 0});
  const auto parsed = parser.parse({buffer.data(), line_bytes + kLineEnd.size()});
  if (!parsed.is_done() || parsed.value().line.size() != line_bytes) {
    return false;
  }
  head = parsed.value();
  return true;
}

/// The same of a line that lies elsewhere; the views of `head` point into `buffer`.
bool parse_line(std::string_view line, LineBuffer& buffer, Request& head) {
  if (line.size() > kEditedLineBytesMax || !line.ends_with(kLineEnd)) {
    return false;
  }
  std::ranges::copy(line, buffer.begin());
  return parse_filled(buffer, line.size(), head);
}

std::string_view moved(std::string_view view, const char* from, const char* to) {
  return view.data() == nullptr ? view : std::string_view(to + (view.data() - from), view.size());
}

/// `request`, whose bytes have been copied from `from` to `to`.
Request moved(const Request& request, const char* from, const char* to) {
  Request there = request;
  there.line = moved(request.line, from, to);
  there.key = moved(request.key, from, to);
  there.keys = moved(request.keys, from, to);
  there.value = moved(request.value, from, to);
  return there;
}

void blank_quiet_flags(char* at, const char* end) {
  for (bool is_blank_before = true; at != end; ++at) {
    if (is_blank_before && *at == 'q') {
      *at = ' ';
    }
    is_blank_before = *at == ' ';
  }
}

/// Spoils the word at the end of a line, of which `text` is what follows the key.
void blank_noreply(Command command, std::string_view text, char* at) {
  do {
    while (text.ends_with(' ')) {
      text.remove_suffix(1);
    }
    if (!text.ends_with(kNoreply)) {
      return;
    }
    if (command != Command::Delete) {
      // As memcached's proxy does it: servers ignore another word at the end.
      at[text.size() - 1] = 'Y';
      return;
    }
    // They do not for delete, and would take the next such word for an order.
    text.remove_suffix(kNoreply.size());
    std::fill_n(at + text.size(), kNoreply.size(), ' ');
  } while (true);
}

void clear(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > kRequestBytesKept) {
    std::string().swap(buffer);
  }
}

}  // namespace

void RouteRequest::borrow(const Request& request) {
  request_ = request;
  was_noreply_ = request.noreply;
  place_ = Place::Borrowed;
  has_wire_ = false;
}

bool RouteRequest::assign(std::string_view line, std::string_view value) {
  LineBuffer buffer;
  Request head;
  if (!parse_line(line, buffer, head)) {
    return false;
  }
  own_bytes_.assign(line);
  own_bytes_.append(value);
  show(head, own_bytes_);
  was_noreply_ = request_.noreply;
  place_ = Place::Own;
  return true;
}

bool RouteRequest::borrow_text(std::string_view bytes, std::size_t line_bytes) {
  LineBuffer buffer;
  Request head;
  if (!parse_line(bytes.substr(0, line_bytes), buffer, head)) {
    return false;
  }
  show(head, bytes);
  was_noreply_ = request_.noreply;
  place_ = Place::Borrowed;
  return true;
}

void RouteRequest::show(const Request& head, std::string_view bytes) {
  const char* const from = head.line.data();
  const char* const to = bytes.data();
  request_ = moved(head, from, to);
  const std::string_view value = bytes.substr(request_.line.size());
  request_.has_complete_value = true;
  request_.value =
      value.ends_with(kLineEnd) ? value.substr(0, value.size() - kLineEnd.size()) : value;
  request_.size_bytes = bytes.size();
  has_wire_ = false;
}

void RouteRequest::keep() {
  if (place_ != Place::Borrowed || is_empty()) {
    return;
  }
  const char* const from = request_.line.data();
  if (request_.size_bytes <= near_bytes_.size()) {
    std::memcpy(near_bytes_.data(), from, request_.size_bytes);
    place_ = Place::Near;
  } else {
    own_bytes_.assign(from, request_.size_bytes);
    place_ = Place::Own;
  }
  request_ = moved(request_, from, bytes());
}

/// Of what is not borrowed.
char* RouteRequest::bytes() {
  KVF_DCHECK(place_ != Place::Borrowed);
  return place_ == Place::Near ? near_bytes_.data() : own_bytes_.data();
}

void RouteRequest::reset() {
  request_ = {};
  place_ = Place::Borrowed;
  has_wire_ = false;
  was_noreply_ = false;
  clear(own_bytes_);
  clear(wire_bytes_);
}

bool RouteRequest::is_empty() const {
  return request_.line.empty();
}

Command RouteRequest::command() const {
  return request_.command;
}

std::string_view RouteRequest::key() const {
  return request_.key;
}

std::string_view RouteRequest::line_text() const {
  return request_.line_text();
}

bool RouteRequest::has_value() const {
  return request_.size_bytes > request_.line.size();
}

std::string_view RouteRequest::value_with_end() const {
  if (!has_value()) {
    return {};
  }
  return {request_.line.data() + request_.line.size(), request_.size_bytes - request_.line.size()};
}

std::size_t RouteRequest::token_count() const {
  if (request_.command == Command::Mn || request_.command == Command::Quit) {
    return 0;
  }
  memcache::TokenWalker walker(line_text());
  std::size_t count = 0;
  while (!walker.next().empty()) {
    ++count;
  }
  return count;
}

std::size_t RouteRequest::find_token(std::size_t number, std::string_view& token) const {
  token = {};
  if (number == 0 || request_.command == Command::Mn || request_.command == Command::Quit) {
    return std::string_view::npos;
  }
  token = memcache::token_at(line_text(), number - 1);
  return token.empty() ? std::string_view::npos
                       : static_cast<std::size_t>(token.data() - request_.line.data());
}

std::string_view RouteRequest::token(std::size_t number) const {
  std::string_view token;
  find_token(number, token);
  return token;
}

bool RouteRequest::is_meta() const {
  return memcache::is_meta(request_.command);
}

std::string_view RouteRequest::flags_tail() const {
  if (!is_meta() || request_.key.empty()) {
    return {};
  }
  const std::string_view text = line_text();
  const char* const after_key = request_.key.data() + request_.key.size();
  memcache::TokenWalker walker(text.substr(static_cast<std::size_t>(after_key - text.data())));
  if (request_.command == Command::Ms) {
    walker.next_short();
  }
  return walker.rest();
}

std::size_t RouteRequest::find_flag_token(char letter, std::string_view& token) const {
  memcache::TokenWalker walker(flags_tail());
  for (token = walker.next_short(); !token.empty(); token = walker.next_short()) {
    if (token.front() == letter) {
      return static_cast<std::size_t>(token.data() - request_.line.data());
    }
  }
  return std::string_view::npos;
}

FlagToken RouteRequest::find_flag(char letter) const {
  std::string_view token;
  if (find_flag_token(letter, token) == std::string_view::npos) {
    return {};
  }
  return {.is_found = true, .text = token.substr(1)};
}

std::string_view RouteRequest::flags_text() const {
  std::string_view text = flags_tail();
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

bool RouteRequest::is_consistent() const {
  if (!memcache::has_value(request_.command)) {
    return !has_value();
  }
  const std::string_view value = value_with_end();
  return value.size() == request_.value_bytes + kLineEnd.size() && value.ends_with(kLineEnd);
}

EditError RouteRequest::set_token(std::size_t number, std::string_view text) {
  std::string_view token;
  const std::size_t at = find_token(number, token);
  if (at == std::string_view::npos) {
    return EditError::NoSuchToken;
  }
  if (!text.empty()) {
    return splice(at, token.size(), {text});
  }
  const std::string_view line = request_.line;
  std::size_t begin = at;
  std::size_t end = at + token.size();
  while (begin > 0 && line[begin - 1] == ' ') {
    --begin;
  }
  while (begin == 0 && line[end] == ' ') {
    ++end;
  }
  return splice(begin, end - begin, {});
}

EditError RouteRequest::trim_key_left(std::size_t count) {
  if (count >= request_.key.size()) {
    return EditError::Malformed;
  }
  keep();
  has_wire_ = false;
  std::fill_n(bytes() + (request_.key.data() - bytes()), count, ' ');
  request_.key.remove_prefix(count);
  request_.keys.remove_prefix(count);
  return EditError::None;
}

EditError RouteRequest::trim_key_right(std::size_t count) {
  if (count >= request_.key.size()) {
    return EditError::Malformed;
  }
  keep();
  has_wire_ = false;
  request_.key.remove_suffix(count);
  const char* const end = request_.key.data() + request_.key.size();
  std::fill_n(bytes() + (end - bytes()), count, ' ');
  if (!memcache::is_retrieval(request_.command)) {
    request_.keys = request_.key;
  }
  return EditError::None;
}

EditError RouteRequest::add_flag(char letter, std::string_view text) {
  if (!is_meta() || request_.key.empty()) {
    return EditError::NotMeta;
  }
  return splice(line_text().size(), 0, {" ", {&letter, 1}, text});
}

EditError RouteRequest::replace_flag_token(char letter, std::string_view token) {
  if (!is_meta()) {
    return EditError::NotMeta;
  }
  std::string_view old;
  std::size_t at = find_flag_token(letter, old);
  if (at == std::string_view::npos) {
    return EditError::NoSuchToken;
  }
  if (!token.empty()) {
    return splice(at, old.size(), {token});
  }
  const std::size_t end = at + old.size();
  while (request_.line[at - 1] == ' ') {  // The command stands before.
    --at;
  }
  return splice(at, end - at, {});
}

EditError RouteRequest::replace_flag(char letter, char new_letter, std::string_view text) {
  if (!is_meta()) {
    return EditError::NotMeta;
  }
  std::string_view old;
  const std::size_t at = find_flag_token(letter, old);
  if (at == std::string_view::npos) {
    return EditError::NoSuchToken;
  }
  return splice(at, old.size(), {{&new_letter, 1}, text});
}

EditError RouteRequest::splice(std::size_t at, std::size_t removed, Pieces pieces) {
  KVF_DCHECK(at + removed <= request_.line.size());
  std::size_t line_bytes = request_.line.size() - removed;
  for (const std::string_view piece : pieces) {
    if (piece.size() > kEditedLineBytesMax) {
      return EditError::TooLong;
    }
    line_bytes += piece.size();
  }
  if (line_bytes > kEditedLineBytesMax) {
    return EditError::TooLong;
  }
  LineBuffer buffer;
  auto to = std::ranges::copy(request_.line.substr(0, at), buffer.begin()).out;
  for (const std::string_view piece : pieces) {
    to = std::ranges::copy(piece, to).out;
  }
  std::ranges::copy(request_.line.substr(at + removed), to);
  Request head;
  if (!parse_filled(buffer, line_bytes, head)) {
    return EditError::Malformed;
  }
  return replace_line({buffer.data(), line_bytes}, head);
}

EditError RouteRequest::replace_line(std::string_view line, const Request& head) {
  const bool keeps_value =
      memcache::has_value(head.command) && head.value_bytes == request_.value_bytes;
  if ((has_value() || !request_.has_complete_value) && !keeps_value) {
    return EditError::Malformed;
  }
  if (place_ == Place::Own) {
    own_bytes_.replace(0, request_.line.size(), line);
  } else {
    const std::string_view value = value_with_end();
    own_bytes_.assign(line);
    own_bytes_.append(value);
  }
  const bool has_complete_value = request_.has_complete_value;
  show(head, own_bytes_);
  request_.has_complete_value = has_complete_value;
  place_ = Place::Own;
  return EditError::None;
}

Request RouteRequest::wire() {
  if (!request_.quiet && !request_.noreply) [[likely]] {
    return request_;
  }
  if (has_wire_) {
    return wire_;
  }
  const char* const from = request_.line.data();
  wire_bytes_.assign(from, request_.size_bytes);
  wire_ = moved(request_, from, wire_bytes_.data());
  wire_.quiet = false;
  wire_.noreply = false;
  has_wire_ = true;
  std::string_view tail = flags_tail();
  if (request_.quiet) {
    char* const at = wire_bytes_.data() + (tail.data() - from);
    blank_quiet_flags(at, at + tail.size());
    return wire_;
  }
  const std::string_view text = line_text();
  const char* const after_key =
      request_.key.empty() ? from : request_.key.data() + request_.key.size();
  tail = text.substr(static_cast<std::size_t>(after_key - from));
  blank_noreply(request_.command, tail, wire_bytes_.data() + (after_key - from));
  return wire_;
}

call::Quiet RouteRequest::quietness() const {
  if (was_noreply_) {
    return call::Quiet::Good;
  }
  if (!request_.quiet) {
    return call::Quiet::No;
  }
  return request_.command == Command::Mg ? call::Quiet::Miss : call::Quiet::Done;
}

}  // namespace kvferry::route
