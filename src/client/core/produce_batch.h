#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime.h"
#include "model/ids.h"
#include "model/record_batch_builder.h"
#include "mq/producer.h"

namespace mq::client {

struct ProducerPartition;

/// What one record of a batch is owed when it was sent with a function of its own.
struct RecordCallback {
  std::uint32_t index = 0;  ///< of the record in its batch
  std::function<void(Result<Delivery>)> call;
  bool immediate = false;  ///< may run on the I/O thread (it only wakes somebody)
};

/// Records of one partition on their way: filled by the accumulator, then sealed, finished (bytes
/// made) and sent, perhaps several times, until it has its outcome.
struct ProduceBatch {
  ProducerPartition* partition = nullptr;
  std::optional<model::RecordBatchBuilder> builder;  ///< until finished
  base::SharedBytes bytes;                           ///< once finished
  std::uint32_t record_count = 0;
  std::vector<std::uint64_t> cookies;     ///< one per record, or none at all
  std::vector<RecordCallback> callbacks;  ///< by rising index
  base::TimePoint created;
  base::TimePoint deadline;
  std::size_t buffered_bytes = 0;  ///< its share of buffer_bytes
  std::uint64_t flush_epoch = 0;
  std::uint32_t attempts = 0;
  std::uint32_t unanswered = 0;    ///< of these; each may have been appended
  base::TimePoint doubtful_since;  ///< when the first of the unanswered ones was sent

  std::int32_t producer_epoch = -1;
  std::int32_t base_sequence = -1;  ///< -1: none was given yet
  bool named = false;               ///< producer, epoch and sequence are in `bytes`

  // The outcome.
  bool done = false;
  std::int64_t base_offset = -1;
  std::int64_t append_time_ms = -1;
  Error error;  ///< code ok: delivered

  /// Makes the bytes; the builder is gone afterwards.
  void finish(model::Codec codec);
  /// The same with the name of the producer in them; bytes that were made before are copied first,
  /// if they may have been sent.
  void finish_named(std::int64_t producer_id, model::Codec codec, base::BufferPool& pool);
};
using ProduceBatchPtr = std::shared_ptr<ProduceBatch>;

/// Two batches with the records of `batch`, each with about half of them; empty when it has one
/// record or does not parse. Cookies and callbacks move along.
std::vector<ProduceBatchPtr> split(ProduceBatch& batch, base::BufferPool& pool, model::Codec codec);

/// Calls what the records of a batch with an outcome are owed: functions and ranges between them,
/// in order. `on_delivery` may be empty. `immediate` ones are left out or the only ones, as asked.
/// An exception from a function goes to `caught`.
void deliver(ProduceBatch& batch, const std::string& topic, std::int32_t partition,
             const std::function<void(const DeliveryRange&)>& on_delivery,
             const std::function<void(const std::string&)>& caught);
void deliver_immediate(ProduceBatch& batch, const std::string& topic, std::int32_t partition);

}  // namespace mq::client
