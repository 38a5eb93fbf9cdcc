#include "pool/pool_gets.h"

#include <algorithm>
#include <array>

#include "pool/backend.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::pool {

using call::Call;

namespace {

constexpr MergeWords kWords{
    .cut_line = "SERVER_ERROR kvferry: connection to backend lost\r\n",
    .foreign_key_line = "SERVER_ERROR kvferry: backend sent a key that was not asked for\r\n"};
constexpr std::string_view kLineEnd = "\r\n";

/// The words before the keys, with one blank between them: what the line of each part begins with.
class GetHead {
 public:
  explicit GetHead(const memcache::Request& request) {
    const std::string_view line = request.line;
    memcache::TokenWalker words(
        line.substr(0, static_cast<std::size_t>(request.keys.data() - line.data())));
    for (std::string_view word = words.next(); !word.empty(); word = words.next()) {
      if (size_ != 0) {
        bytes_[size_++] = ' ';
      }
      std::ranges::copy(word, bytes_.begin() + size_);
      size_ += word.size();
    }
  }

  /// The longest command, a blank, the exptime.
  static constexpr std::size_t kBytesMax = 5 + memcache::kExptimeBytesMax;

  std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, kBytesMax> bytes_;
  std::size_t size_ = 0;
};

constexpr std::size_t kTouchKeysBytesMax =
    kTouchLineBytesMax - GetHead::kBytesMax - kLineEnd.size();
static_assert(1 + memcache::kKeyBytesMax <= kTouchKeysBytesMax);
/// Two parts in a row of one backend have more than fits into one; a backend's last part may be
/// small, and no pool has so many of them.
static_assert(2 * memcache::kGetLineBytesMax / kTouchKeysBytesMax <= kGetPartsMax / 2);

}  // namespace

bool PoolGets::start(Call& parent, const memcache::Request& request, const Placement& placement,
                     const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
                     std::uint64_t& random_state) {
  begin(request.key_count);
  const bool is_placed = place_keys(request, placement, random_state);
  if (is_placed) {
    const std::size_t keys_bytes_max =
        may_line_be_long(request.command) ? memcache::kGetLineBytesMax : kTouchKeysBytesMax;
    number_parts(backends.size(), keys_bytes_max);
    send(parent, request, backends, on_partial);
  }
  end();
  return is_placed;
}

bool PoolGets::place_keys(const memcache::Request& request, const Placement& placement,
                          std::uint64_t& random_state) {
  memcache::KeyWalker walker(request.keys);
  for (std::string_view key = walker.next(); !key.empty(); key = walker.next()) {
    const std::uint32_t backend = placement.select(key, random_state);
    if (backend == kNoServer) {
      return false;
    }
    places().push_back(Place{.key = key, .part = backend});
  }
  return true;
}

void PoolGets::number_parts(std::size_t backend_count, std::size_t keys_bytes_max) {
  open_parts_.resize(std::max(open_parts_.size(), backend_count));
  backend_of_part_.clear();
  for (Place& place : places()) {
    OpenPart& part = open_parts_[place.part];
    const std::size_t bytes = 1 + place.key.size();
    if (part.number == kNoServer || bytes > keys_bytes_max - part.keys_bytes) {
      part.number = static_cast<std::uint32_t>(backend_of_part_.size());
      part.keys_bytes = 0;
      backend_of_part_.push_back(place.part);
    }
    part.keys_bytes += bytes;
    place.part = part.number;
  }
  for (const std::uint32_t backend : backend_of_part_) {
    open_parts_[backend] = OpenPart();
  }
}

void PoolGets::send(Call& parent, const memcache::Request& request,
                    const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial) {
  if (backend_of_part_.size() == 1 && !is_too_long(request)) {
    backends[backend_of_part_.front()]->forward(parent, request.line);
    return;
  }
  MultiGet& multiget =
      make(parent, request.keys.size(), backend_of_part_.size(),
           MergeRules{.on_partial = on_partial, .form = GetForm::Wide, .words = kWords});
  const GetHead head(request);
  for (std::uint16_t part = 0; part < part_count(multiget); ++part) {
    send_part(multiget, part, *backends[backend_of_part_[part]], head.text());
  }
  start_passing(multiget);
}

void PoolGets::send_part(const MultiGet& multiget, std::uint16_t index, Backend& backend,
                         std::string_view head) {
  Call& call = call_of(multiget, index);
  Failure why;
  Link* link = backend.admit(call, why);
  if (link == nullptr) {
    backend.refuse(call, why);
    return;
  }
  link->write(head);
  std::size_t bytes = head.size() + kLineEnd.size();
  for_each_key(multiget, index, [&](std::string_view key) {
    link->write(" ");
    link->write(key);
    bytes += 1 + key.size();
  });
  link->write(kLineEnd);
  backend.stats().bytes_sent.add(bytes);
  link->commit(call);
}

}  // namespace kvferry::pool
