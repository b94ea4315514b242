#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/runtime.h"
#include "metadata/store.h"

namespace mq::metadata {

/// What a store of tests does with one call.
enum class StoreFault {
  none,
  unavailable,   ///< refused, not applied
  lost_request,  ///< outcome_unknown, not applied
  lost_answer,   ///< outcome_unknown, applied
};

/// The contents of an in-memory store. It outlives the stores (broker processes) that are opened on
/// it, and so the crash of any of them: what was acknowledged stays, what was under way may or may
/// not be there.
struct MemoryStoreState {
  std::map<std::string, Node> nodes;  ///< by path, without "/"
  std::uint64_t next_session = 1;
  std::uint64_t writes_applied = 0;
  /// Asked before every multi (write = true) and every read. Empty: none.
  std::function<StoreFault(bool write)> fault;
  /// Called after each applied write, before its answer: the place to crash a broker in a test.
  std::function<void()> on_applied;
};

/// A store of tests and of the simulator. Each call takes up to `latency_max` of the runtime's time
/// before it takes effect and as long again before it returns.
std::unique_ptr<MetadataStore> open_memory_store(std::shared_ptr<MemoryStoreState> state,
                                                 base::Runtime& runtime,
                                                 base::Duration latency_max = {});
/// What the death of a process does to the store, some time later: its ephemeral nodes go.
void expire_session(MemoryStoreState& state, std::uint64_t session);

}  // namespace mq::metadata
