#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/runtime.h"
#include "metadata/store.h"

namespace mq::metadata {

/// What a store of tests does with one call.
enum class StoreFault {
  none,
  unavailable,   ///< refused, not applied
  lost_request,  ///< outcome_unknown, not applied (a read: unavailable)
  lost_answer,   ///< outcome_unknown, applied (a read: unavailable)
};

/// The contents of an in-memory store. It outlives the stores (broker processes) that are opened on
/// it, and so the crash of any of them: what was acknowledged stays, what was under way may or may
/// not be there.
struct MemoryStoreState {
  std::map<std::string, Node> nodes;  ///< by path, without "/"
  std::set<std::uint64_t> sessions;   ///< alive
  std::uint64_t next_session = 1;
  /// Sessions whose process cannot reach the store: its calls are refused, its watches miss what
  /// happens, and it does not hear when its session ends.
  std::set<std::uint64_t> cut_off;
  /// The stores that are open, by their sessions.
  struct Peer {
    std::function<void()> lost;  ///< its session has ended
    std::function<void(const std::vector<Operation>&)> changed;
    std::function<void()> connected;  ///< it reaches the store again
  };
  std::map<std::uint64_t, Peer> peers;
  /// Asked before every multi (write = true) and every read. Empty: none.
  std::function<StoreFault(bool write)> fault;
  /// Each way of a call takes up to so much longer than its store's options say.
  base::Duration slower_by{0};
  /// Called after each applied write, before its answer: the place to crash a broker in a test.
  std::function<void()> on_applied;
};

struct MemoryStoreOptions {
  /// Each call takes up to this before it takes effect and as long again before it returns.
  base::Duration latency_max{0};
  /// As behind a standalone broker: opening ends the sessions of earlier processes.
  bool single_process = true;
  /// What session_timeout() says. Sessions end by expire_session() alone.
  base::Duration session_timeout{0};
};

/// A store of tests and of the simulator, with the meaning of the real ones and nothing on a disk.
std::unique_ptr<MetadataStore> open_memory_store(std::shared_ptr<MemoryStoreState> state,
                                                 base::Runtime& runtime,
                                                 MemoryStoreOptions options = {});

/// What the death of a process does to the store, some time later: its session is lost and its
/// ephemeral nodes go.
void expire_session(MemoryStoreState& state, std::uint64_t session);
/// The process of a session loses the store, and finds it again: then it hears of an end of its
/// session, and every watch of it fires.
void cut_off(MemoryStoreState& state, std::uint64_t session);
void reconnect(MemoryStoreState& state, std::uint64_t session);

}  // namespace mq::metadata
