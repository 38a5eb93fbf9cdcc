#include "route/failover_routes.h"

#include <algorithm>
#include <utility>

namespace kvferry::route {

namespace {

std::uint32_t child_of_try(const RouteRun& run, std::uint32_t number) {
  return run.order.empty() ? number : run.order[number];
}

}  // namespace

FailoverRoute::FailoverRoute(const RouteSetup& setup, const FailoverOptions& options)
    : WaitingRoute(setup), options_(options), random_state_(options.seed | 1U) {
  const auto count = static_cast<std::uint32_t>(children().size());
  tries_max_ = options.tries_max == 0 ? count : std::min(count, options.tries_max);
}

void FailoverRoute::start(RouteRun& run) {
  if (options_.shuffles) {
    shuffle(run);
  }
  go_on(run);
}

void FailoverRoute::shuffle(RouteRun& run) {
  run.order.clear();
  for (std::uint32_t i = 0; i < run.child_count(); ++i) {
    run.order.push_back(i);
  }
  for (std::uint32_t i = options_.fixed_children; i + 1 < run.child_count(); ++i) {
    random_state_ ^= random_state_ << 13U;
    random_state_ ^= random_state_ >> 7U;
    random_state_ ^= random_state_ << 17U;
    const auto drawn = static_cast<std::uint32_t>((random_state_ >> 32U) % (run.child_count() - i));
    std::swap(run.order[i], run.order[i + drawn]);
  }
}

void FailoverRoute::go_on(RouteRun& run) {
  for (;;) {
    if (run.tries == tries_max_) {
      answer_without_good(run);
      return;
    }
    if (run.tries != 0) {
      host().count(RouteEvent::Repeat);
    }
    const std::uint32_t child = child_of_try(run, run.tries++);
    run.enqueue(child);
    if (!run.context().wait_for(child, options_.wait)) {
      return;
    }
    if (const auto good = find_good(run)) {
      run.answer_with(*good);
      return;
    }
  }
}

void FailoverRoute::on_wait_over(RouteRun& run) {
  if (const auto good = find_good(run)) {
    run.answer_with(*good);
    return;
  }
  go_on(run);
}

bool FailoverRoute::is_good(const RouteRun& run, std::uint32_t child) const {
  return options_.goes_on_after_miss ? run.is_hit(child) : run.is_ok(child);
}

std::optional<std::uint32_t> FailoverRoute::find_good(const RouteRun& run) const {
  for (std::uint32_t i = run.tries; i > 0; --i) {
    const std::uint32_t child = child_of_try(run, i - 1);
    if (is_good(run, child)) {
      return child;
    }
  }
  return std::nullopt;
}

void FailoverRoute::answer_without_good(RouteRun& run) {
  std::optional<std::uint32_t> last;
  for (std::uint32_t i = run.tries; i > 0; --i) {
    const std::uint32_t child = child_of_try(run, i - 1);
    if (run.is_ok(child)) {
      run.answer_with(child);
      return;
    }
    if (!last && run.context().is_complete(child)) {
      last = child;
    }
  }
  run.answer_with(last.value_or(child_of_try(run, 0)));
}

void ZoneFailoverRoute::start(RouteRun& run) {
  run.enqueue(0);
  if (run.context().wait_for(0, std::nullopt)) {
    on_wait_over(run);
  }
}

void ZoneFailoverRoute::on_wait_over(RouteRun& run) {
  const bool is_good = goes_on_after_miss_ ? run.is_hit(0) : run.is_ok(0);
  if (run.tries != 0 || is_good || run.child_count() == 1) {
    run.answer_with_best();
    return;
  }
  run.tries = 1;
  host().count(RouteEvent::Repeat);
  run.enqueue_all();  // The first is used already.
  if (run.context().wait_until(run.child_count() - 1, WaitMode::FastGood, std::nullopt)) {
    run.answer_with_best();
  }
}

}  // namespace kvferry::route
