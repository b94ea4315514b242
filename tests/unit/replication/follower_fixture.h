#pragma once

#include <gtest/gtest.h>

#include "model_log.h"
#include "replication/follower.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::replication::testing {

using mq::testing::ModelLog;

/// What a leader answers, from a log of its own.
struct ScriptedLeader {
  struct Answer {
    protocol::ReplicaFetchResult result;
    base::Buffer owner;
    base::Bytes batches;
  };

  explicit ScriptedLeader(model::LeaderEpoch epoch) { become_leader(epoch); }
  void become_leader(model::LeaderEpoch leader_epoch) {
    epoch = leader_epoch;
    ASSERT_TRUE(log.start_epoch(epoch));
  }

  [[nodiscard]] Answer to(const protocol::ReplicaSubscribe& subscribe,
                          std::size_t bytes_max = 1 << 20) {
    Answer answer = empty(subscribe.number);
    if (subscribe.leader_epoch != epoch) {
      answer.result.status = protocol::Status::of(subscribe.leader_epoch < epoch
                                                      ? protocol::WireError::fenced_leader_epoch
                                                      : protocol::WireError::unknown_leader_epoch,
                                                  "");
      return answer;
    }
    if (subscribe.appended < log.log_start_offset()) {
      answer.result.status = protocol::Status::of(protocol::WireError::offset_out_of_range, "");
      return answer;
    }
    const auto parts = divergence(log.epoch_starts(), log.log_end_offset(), subscribe.last_epoch,
                                  subscribe.appended);
    if (parts) {
      answer.result.diverging = protocol::Divergence{parts->epoch, parts->end_offset};
      return answer;
    }
    return batches(subscribe.number, subscribe.appended, bytes_max);
  }
  /// Batches from `from` on, for a subscription that stands there.
  [[nodiscard]] Answer batches(std::uint32_t number, model::Offset from,
                               std::size_t bytes_max = 1 << 20) {
    Answer answer = empty(number);
    const auto read = log.read(from, log.log_end_offset(), bytes_max);
    answer.owner = base::BufferPool::shared().take(std::max<std::size_t>(read->bytes, 1));
    std::size_t at = 0;
    for (const auto& piece : read->batches) {
      std::memcpy(answer.owner.data() + at, piece.bytes.data(), piece.bytes.size());
      at += piece.bytes.size();
    }
    answer.batches = base::Bytes(answer.owner.data(), at);
    answer.result.payload_bytes = static_cast<std::uint32_t>(at);
    return answer;
  }
  [[nodiscard]] Answer empty(std::uint32_t number) const {
    Answer answer;
    answer.result.partition = log.id();
    answer.result.number = number;
    answer.result.leader_epoch = epoch;
    answer.result.high_watermark = high_watermark;
    answer.result.log_start = log.log_start_offset();
    return answer;
  }

  ModelLog log;
  model::LeaderEpoch epoch;
  model::Offset high_watermark{0};
};

}  // namespace mq::replication::testing
