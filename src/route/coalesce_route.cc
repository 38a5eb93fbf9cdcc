#include "route/coalesce_route.h"

#include "base/check.h"
#include "route/key_effect.h"
#include "store/key.h"

namespace kvferry::route {

using memcache::Request;

namespace {

std::uint64_t key_hash_of(const Request& request) {
  KeyBuffer buffer;
  return store::hash_of(plain_key(request, buffer));
}

/// The line by which reads are the same: without what only decides whether the client sees the
/// answer.
std::string_view line_of(RouteRequest& request) {
  std::string_view line = request.wire().line_text();
  while (line.ends_with(' ')) {
    line.remove_suffix(1);
  }
  return line;
}

}  // namespace

void CoalesceRoute::start(RouteRun& run) {
  const Request& request = run.request().shown();
  if (!memcache::has_key(request.command)) {
    forward(run);
    return;
  }
  const std::uint64_t key_hash = key_hash_of(request);
  if (effect_of(request) != KeyEffect::Changes) {
    start_read(run, key_hash);
    return;
  }
  writes_.advance(key_hash);
  forward(run);
}

void CoalesceRoute::start_read(RouteRun& run, std::uint64_t key_hash) {
  const std::string_view line = line_of(run.request());
  const std::uint64_t line_hash = store::hash_of(line);
  const std::uint64_t generation = writes_.of(key_hash);
  if (Flight* const flight = find(line_hash, line)) {
    if (flight->generation == generation && flight->joined.size() < kJoinedReadsMax) {
      host().count(RouteEvent::Joined);
      flight->joined.push_back(&run);
      return;
    }
    close(*flight);
  }
  run.note = &begin_flight(line_hash, line, generation);
  forward(run);
}

void CoalesceRoute::forward(RouteRun& run) {
  run.enqueue(0);
  if (run.context().wait_for(0, std::nullopt)) {
    on_wait_over(run);
  }
}

void CoalesceRoute::on_wait_over(RouteRun& run) {
  if (run.note != nullptr) {
    land(run, *static_cast<Flight*>(run.note));
    return;
  }
  const Request& request = run.request().shown();
  if (memcache::has_key(request.command) && effect_of(request) == KeyEffect::Changes) {
    writes_.advance(key_hash_of(request));
  }
  run.answer_with(0);
}

/// Answers may begin requests that join other flights; this one is closed first, and is used again
/// only when it is done with.
void CoalesceRoute::land(RouteRun& leader, Flight& flight) {
  close(flight);
  const RouteReply& reply = leader.context().reply(0);
  const bool is_for_one = reply.is_complete() && reply.is_meta() && reply.find_flag('W').is_found;
  for (RouteRun* const run : flight.joined) {
    if (is_for_one) {
      forward(*run);
    } else {
      run->answer_like(reply);
    }
  }
  put_back(flight);
  leader.answer_with(0);
}

CoalesceRoute::Flight* CoalesceRoute::find(std::uint64_t line_hash, std::string_view line) {
  Flight* flight = bucket_of(line_hash);
  while (flight != nullptr && (flight->line_hash != line_hash || flight->line != line)) {
    flight = flight->next;
  }
  return flight;
}

CoalesceRoute::Flight& CoalesceRoute::begin_flight(std::uint64_t line_hash, std::string_view line,
                                                   std::uint64_t generation) {
  if (free_.empty()) {
    flights_.push_back(std::make_unique<Flight>());
    flights_.back()->place = flights_.size() - 1;
    free_.reserve(flights_.size());
    free_.push_back(flights_.back().get());
  }
  Flight& flight = *free_.back();
  free_.pop_back();
  flight.line.assign(line);
  flight.line_hash = line_hash;
  flight.generation = generation;
  flight.is_open = true;
  flight.next = bucket_of(line_hash);
  bucket_of(line_hash) = &flight;
  return flight;
}

void CoalesceRoute::close(Flight& flight) {
  if (!flight.is_open) {
    return;
  }
  flight.is_open = false;
  Flight** at = &bucket_of(flight.line_hash);
  while (*at != &flight) {
    KVF_CHECK(*at != nullptr);
    at = &(*at)->next;
  }
  *at = flight.next;
}

void CoalesceRoute::put_back(Flight& flight) {
  flight.joined.clear();
  if (free_.size() < kFreeFlightsMax) {
    free_.push_back(&flight);
    return;
  }
  const std::size_t place = flight.place;
  std::swap(flights_[place], flights_.back());
  flights_[place]->place = place;
  flights_.pop_back();
}

}  // namespace kvferry::route
