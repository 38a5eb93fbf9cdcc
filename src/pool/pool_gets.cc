#include "pool/pool_gets.h"

#include <algorithm>

#include "pool/backend.h"
#include "protocol/memcache/token_walker.h"

namespace kvferry::pool {

using call::Call;

namespace {

constexpr MergeWords kWords{
    .cut_line = "SERVER_ERROR kvferry: connection to backend lost\r\n",
    .foreign_key_line = "SERVER_ERROR kvferry: backend sent a key that was not asked for\r\n"};

}  // namespace

bool PoolGets::start(Call& parent, const memcache::Request& request, const Placement& placement,
                     const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial,
                     std::uint64_t& random_state) {
  begin(request.key_count);
  const bool is_placed = place_keys(request, placement, random_state);
  if (is_placed) {
    number_parts(backends.size());
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

/// Puts numbers of parts in place of those of backends.
void PoolGets::number_parts(std::size_t backend_count) {
  part_of_backend_.resize(std::max(part_of_backend_.size(), backend_count), kNoServer);
  backend_of_part_.clear();
  for (Place& place : places()) {
    std::uint32_t& part = part_of_backend_[place.part];
    if (part == kNoServer) {
      part = static_cast<std::uint32_t>(backend_of_part_.size());
      backend_of_part_.push_back(place.part);
    }
    place.part = part;
  }
  for (const std::uint32_t backend : backend_of_part_) {
    part_of_backend_[backend] = kNoServer;
  }
}

void PoolGets::send(Call& parent, const memcache::Request& request,
                    const std::vector<std::unique_ptr<Backend>>& backends, OnPartial on_partial) {
  if (backend_of_part_.size() == 1) {
    backends[backend_of_part_.front()]->forward(parent, request.line);
    return;
  }
  MultiGet& multiget =
      make(parent, request.keys.size(), backend_of_part_.size(),
           MergeRules{.on_partial = on_partial, .form = GetForm::Wide, .words = kWords});
  const std::string_view line = request.line;
  std::string_view prefix =
      line.substr(0, static_cast<std::size_t>(request.keys.data() - line.data()));
  while (prefix.ends_with(' ')) {
    prefix.remove_suffix(1);
  }
  for (std::uint16_t part = 0; part < part_count(multiget); ++part) {
    send_part(multiget, part, *backends[backend_of_part_[part]], prefix);
  }
  start_passing(multiget);
}

void PoolGets::send_part(const MultiGet& multiget, std::uint16_t index, Backend& backend,
                         std::string_view prefix) {
  Call& call = call_of(multiget, index);
  Failure why;
  Link* link = backend.admit(call, why);
  if (link == nullptr) {
    backend.refuse(call, why);
    return;
  }
  link->write(prefix);
  std::size_t bytes = prefix.size() + 2;
  for_each_key(multiget, index, [&](std::string_view key) {
    link->write(" ");
    link->write(key);
    bytes += 1 + key.size();
  });
  link->write("\r\n");
  backend.stats().bytes_sent.add(bytes);
  link->commit(call);
}

}  // namespace kvferry::pool
