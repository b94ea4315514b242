#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client/core/produce_batch.h"
#include "model/ids.h"
#include "mq/producer.h"

namespace mq::client {

struct ProduceLink;

/// One partition on the producer's side. The first group of members belongs to the accumulator and
/// its mutex, the second to the sender and its runtime.
struct ProducerPartition {
  TopicHandle::Impl* topic = nullptr;
  model::PartitionId id;

  ProduceBatchPtr open;                 ///< takes records; has at least one, or is null
  std::vector<ProduceBatchPtr> sealed;  ///< not yet seen by the sender
  bool dirty = false;                   ///< is in the accumulator's list of news
  std::uint32_t expected_bytes = 0;     ///< from the batch before
  std::uint32_t expected_records = 0;

  std::deque<ProduceBatchPtr> queue;  ///< without an outcome given out, in order
  std::size_t next = 0;               ///< in queue: the first one not under way
  std::size_t in_flight = 0;
  std::uint64_t sequence = 0;        ///< of the next batch sent
  std::uint64_t connection = 0;      ///< whose sequence that is
  std::int32_t producer_epoch = -1;  ///< of the next batch that gets a sequence; -1: none did yet
  std::int32_t next_sequence = 0;    ///< for that batch
  bool new_epoch = false;            ///< all that is left goes under a new epoch, from sequence 0
  bool restart = false;  ///< a batch failed: when nothing is under way, all go again from 0
  bool alone = false;    ///< one batch at a time, until one is taken after a restart
  int failures = 0;
  base::TimePoint retry_at{};
  std::string trouble;          ///< why it does not go on, for a timeout's message
  ProduceLink* link = nullptr;  ///< set while it has work
};

}  // namespace mq::client

namespace mq {
inline namespace v1 {

/// A looked-up topic. The accumulator keeps it as long as it lives; handles share it.
struct TopicHandle::Impl {
  std::string name;
  base::Uuid id;
  const void* owner = nullptr;  ///< the accumulator that made it
  std::uint32_t batch_bytes_max = 0;
  std::atomic<std::size_t> partition_count{0};

  // Grow on the sender's runtime, under the accumulator's mutex: any other thread needs that to
  // look at them.
  std::vector<std::int32_t> numbers;  ///< of the partitions, ascending
  std::vector<std::unique_ptr<client::ProducerPartition>> partitions;  ///< in the same order

  // Guarded by the accumulator's mutex.
  std::size_t sticky = 0;  ///< where records without key go until the batch is sent
  bool gone = false;
};

}  // namespace v1
}  // namespace mq

namespace mq::client {

using ProducerTopic = TopicHandle::Impl;
using ProducerTopicPtr = std::shared_ptr<ProducerTopic>;

}  // namespace mq::client
