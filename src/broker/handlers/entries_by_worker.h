#pragma once

#include <vector>

#include "broker/core.h"
#include "broker/hop.h"
#include "broker/worker.h"

namespace mq::broker {

/// Answers one entry of a request, on the worker that its partition belongs to.
template <class Entry, class Result>
using EntryHandler = asio::awaitable<Result> (*)(Worker&, Entry);

/// On `worker`: the entries whose partitions are its own.
template <class Entry, class Result>
asio::awaitable<void> handle_own(Worker& worker, const std::vector<Entry>& entries,
                                 std::vector<Result>& results, EntryHandler<Entry, Result> handle) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (&worker.core().worker_of(entries[i].partition) != &worker) continue;
    auto result = co_await handle(worker, entries[i]);
    results[i] = std::move(result);
  }
}

/// All entries, one worker after the other; the results are in the order of the entries. `entries`
/// and `results` stay alive until it returns.
template <class Entry, class Result>
asio::awaitable<void> handle_entries(const Core& core, const std::vector<Entry>& entries,
                                     std::vector<Result>& results,
                                     EntryHandler<Entry, Result> handle) {
  results.resize(entries.size());
  for (const auto& worker : core.workers)
    co_await run_on(worker->runtime(), handle_own(*worker, entries, results, handle));
}

}  // namespace mq::broker
