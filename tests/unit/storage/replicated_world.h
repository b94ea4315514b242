#pragma once

#include "storage_world.h"

namespace mq::testing {

/// Partition 0 leads, partition 1 follows it with append_replicated().
class ReplicatedWorld : public StorageWorld {
 public:
  explicit ReplicatedWorld(std::uint64_t seed = 1) : StorageWorld(seed) { followers.insert(1); }

  storage::PartitionLog& leader() { return log(0); }
  storage::PartitionLog& follower() { return log(1); }

  /// The leader's batch at `from`.
  base::SharedBytes batch_at(model::Offset from) {
    const auto read = StorageWorld::read(from, 1, 0);
    EXPECT_TRUE(read) << read.error().message();
    if (!read || read->batches.empty()) return {};
    base::SharedBytes batch = read->batches.front();
    const auto bytes = model::peek_batch_bytes(batch.bytes);
    EXPECT_TRUE(bytes);
    batch.bytes = batch.bytes.first(*bytes);
    return batch;
  }
  base::Result<storage::AppendInfo> replicate(const base::SharedBytes& batch) {
    if (follower().appends_inline()) return follower().append_replicated(batch.owner, batch.bytes);
    auto appending = follower().append_replicated_later(batch.owner, batch.bytes);
    return run(simulator, std::move(appending));
  }
  /// Until the follower has all that the leader has.
  void catch_up() {
    while (follower().log_end_offset() < leader().log_end_offset()) {
      const auto batch = batch_at(follower().log_end_offset());
      const auto appended = replicate(batch);
      ASSERT_TRUE(appended) << appended.error().message();
    }
  }
  base::Result<void> truncate(model::Offset to, model::LeaderEpoch by) {
    auto cutting = follower().truncate(to, by);
    return run(simulator, std::move(cutting));
  }
  base::Result<void> restart_at(model::Offset start) {
    auto restarting = follower().restart_at(start, follower().leader_epoch());
    return run(simulator, std::move(restarting));
  }
  /// Both have so many batches, durably.
  void fill(int batches, std::size_t value_bytes) {
    start(2);
    for (int i = 0; i < batches; ++i) append(1, value_bytes);
    catch_up();
    ASSERT_TRUE(settle(0));
    ASSERT_TRUE(settle(1));
  }
  /// The leader goes on in the next epoch.
  void next_epoch() {
    epoch = static_cast<std::uint64_t>(leader().leader_epoch().value()) + 1;
    ASSERT_TRUE(leader().start_epoch(model::LeaderEpoch(static_cast<int>(epoch))));
  }
};

}  // namespace mq::testing
