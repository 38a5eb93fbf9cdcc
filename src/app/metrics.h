// Sums of the workers' counters, as the admin server shows them.
#pragma once

#include "admin/metrics_model.h"
#include "app/stats_registry.h"
#include "store/store.h"

namespace kvferry::app {

/// Everything but the process's own numbers.
admin::MetricsModel collect_metrics(StatsRegistry& registry, store::Store& store);

}  // namespace kvferry::app
