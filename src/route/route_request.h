// RouteRequest: a request as a route holds it: read in parts, edited in place, sent on any number
// of times.
//
// It begins as views of the client's bytes (borrow) and copies them when it must outlive them
// (keep) or when it is edited. What makes a server silent, the flag q and the word noreply, is
// blanked in what is sent, so that the server always answers; whether the client sees that answer
// is decided by what quietness() says at the end.
//
// Source:    docs/lua.md, "Requests"; memcached protocol.txt.
// Units:     tokens count from 1, the command being 1; the key is token 2, or 3 for gat and gats.
// Lifetime:  views it returns die with the next edit, keep(), or reset().
// Errors:    EditError, none of which changes the request.
// Threads:   values; one worker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "call/call.h"
#include "protocol/memcache/request.h"

namespace kvferry::route {

/// Longest line that an edit may make, its line end included. Lines that clients send may be
/// longer.
inline constexpr std::size_t kEditedLineBytesMax = memcache::kLineBytesMax;
/// A buffer that has grown beyond this is given back by reset(); smaller ones are used again.
inline constexpr std::size_t kRequestBytesKept = std::size_t{4} * 1024;

/// Requests up to this size are kept in the object itself: with thousands of them in flight there
/// is one piece of memory less to fetch for each.
inline constexpr std::size_t kRequestBytesNear = 192;

enum class EditError : std::uint8_t {
  None,
  NoSuchToken,
  TooLong,    // The line would be over kEditedLineBytesMax.
  Malformed,  // The line would not be a request any more; or its value length would not fit the
              // value.
  NotMeta,    // Flags of a request that has none.
};

/// A flag of a meta request or reply as found on its line.
struct FlagToken {
  bool is_found = false;
  std::string_view text;  // What follows the letter; may be empty.
};

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): `near_bytes_` is read as it was written
class RouteRequest final : public call::SharedRequest {
 public:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the same
  RouteRequest() = default;
  RouteRequest(const RouteRequest&) = delete;
  RouteRequest& operator=(const RouteRequest&) = delete;

  // Making.

  /// Shows a client's request, whose views stay valid until keep() or reset().
  void borrow(const memcache::Request& request);
  /// Parses `line` (which ends in "\r\n") and attaches a copy of `value`, which holds its line end
  /// or is empty. The announced length may differ from the value's; is_consistent() tells. False
  /// when the line is no request that the front knows, or too long to be edited; nothing has
  /// changed then. Neither text may be a view of this request.
  bool assign(std::string_view line, std::string_view value);
  /// The same without a copy: the first `line_bytes` of `bytes` are the line, the rest is the
  /// value. They stay valid until keep() or reset().
  bool borrow_text(std::string_view bytes, std::size_t line_bytes);
  /// Copies what is borrowed, so that the client's bytes may go.
  void keep();
  void reset();
  bool is_empty() const;

  // Reading.

  /// As it is now, with what makes a server silent; valid as the views are.
  const memcache::Request& shown() const { return request_; }
  memcache::Command command() const;
  /// As on the line; empty for commands without a key.
  std::string_view key() const;
  /// The line without its line end.
  std::string_view line_text() const;
  bool has_value() const;
  /// The value with its line end; empty when there is none.
  std::string_view value_with_end() const;
  /// 0 for mn and quit.
  std::size_t token_count() const;
  /// Empty when `number` is out of range.
  std::string_view token(std::size_t number) const;
  FlagToken find_flag(char letter) const;
  /// Meta: all flags, as they stand on the line, without the blanks around them.
  std::string_view flags_text() const;
  bool is_meta() const;
  /// Whether the value has the length that the line announces. False while a value is not all
  /// there.
  bool is_consistent() const;

  // Editing. Order is kept; new flags go to the end.

  /// Replaces a token; an empty text removes it with the blanks before it.
  EditError set_token(std::size_t number, std::string_view text);
  /// Overwrites bytes of the key with blanks, so that the line keeps its length. `count` is below
  /// the key's length.
  EditError trim_key_left(std::size_t count);
  EditError trim_key_right(std::size_t count);
  /// Appends a flag. The caller has checked that it is absent.
  EditError add_flag(char letter, std::string_view text);
  /// Replaces the flag's whole token by `token`, letter included; empty removes it.
  EditError replace_flag_token(char letter, std::string_view token);
  /// Puts flag `new_letter` with `text` where flag `letter` is. NoSuchToken when that is absent.
  EditError replace_flag(char letter, char new_letter, std::string_view text);

  // Sending.

  /// The request as servers get it, blanked, so that they always answer: its line and value lie one
  /// behind the other, and neither quiet nor noreply is set. Valid as long as this is not changed.
  /// What is read here stays as it was.
  memcache::Request wire();
  /// What the client has asked not to see, by the request as it is now; `noreply` as it came.
  call::Quiet quietness() const;

 private:
  using Pieces = std::initializer_list<std::string_view>;

  /// Where the token begins in the line; npos when there is none.
  std::size_t find_token(std::size_t number, std::string_view& token) const;
  /// What follows the key and, for ms, the length of a meta line.
  std::string_view flags_tail() const;
  std::size_t find_flag_token(char letter, std::string_view& token) const;
  /// Puts `pieces` in the place of `removed` bytes of the line.
  EditError splice(std::size_t at, std::size_t removed, Pieces pieces);
  EditError replace_line(std::string_view line, const memcache::Request& head);
  /// Shows `bytes`, whose line was parsed elsewhere as `head`.
  void show(const memcache::Request& head, std::string_view bytes);

  /// Where the bytes lie that request_ shows.
  enum class Place : std::uint8_t { Borrowed, Near, Own };
  char* bytes();

  memcache::Request request_;
  Place place_ = Place::Borrowed;
  bool has_wire_ = false;  // wire_bytes_ hold the blanked request as it is now.
  bool was_noreply_ = false;
  std::array<char, kRequestBytesNear> near_bytes_;
  std::string own_bytes_;
  std::string wire_bytes_;
  memcache::Request wire_;  // When has_wire_.
};

}  // namespace kvferry::route
