#include "route/replicating_routes.h"

namespace kvferry::route {

void AllFastestRoute::start(RouteRun& run) {
  run.enqueue_all();
  if (run.context().wait_until(1, wants_hit_ ? WaitMode::Good : WaitMode::Ok, wait_)) {
    run.answer_with_best();
  }
}

void AllFastestRoute::on_wait_over(RouteRun& run) {
  run.answer_with_best();
}

void AllSyncRoute::start(RouteRun& run) {
  run.enqueue_all();
  if (run.context().wait_until(run.child_count(), WaitMode::Any, std::nullopt)) {
    on_wait_over(run);
  }
}

void AllSyncRoute::on_wait_over(RouteRun& run) {
  for (std::uint32_t i = 0; i < run.child_count(); ++i) {
    if (!run.is_ok(i)) {
      run.answer_with(i);
      return;
    }
  }
  run.answer_with(run.child_count() - 1);
}

void AllAsyncRoute::start(RouteRun& run) {
  run.enqueue_all();
  // Only waits send. This one would be over in the next turn, which nobody needs.
  if (!run.context().wait_until(0, WaitMode::Any, std::nullopt)) {
    run.context().cancel_wait();
  }
  run.answer_null();
}

void AllAsyncRoute::on_wait_over(RouteRun& run) {
  run.answer_null();
}

void SplitRoute::start(RouteRun& run) {
  run.enqueue_all();
  if (run.context().wait_for(0, std::nullopt)) {
    run.answer_with(0);
  }
}

void SplitRoute::on_wait_over(RouteRun& run) {
  run.answer_with(0);
}

}  // namespace kvferry::route
