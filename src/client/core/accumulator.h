#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/runtime.h"
#include "client/core/metadata_cache.h"
#include "client/core/producer_topic.h"
#include "model/compression.h"

namespace mq::client {

/// One record to be appended. Everything is borrowed and copied, but `callback`, which is taken
/// when the record is accepted.
struct AppendRequest {
  model::RecordInput record;
  std::optional<std::int32_t> partition;
  bool timestamp_given = false;  ///< else it is now
  std::uint64_t cookie = 0;
  std::function<void(Result<Delivery>)>* callback = nullptr;
  bool immediate = false;  ///< see RecordCallback
};

enum class Appended : std::uint8_t {
  accepted,
  full,     ///< no room in the buffer now
  refused,  ///< see the error
};

/// Where records become batches. append() and the questions may be called from any thread,
/// everything else on the sender's runtime; one mutex guards what they share, held for one copy of
/// a record. No allocation per record.
///
/// CLI-4: accepted records without a result take at most buffer_bytes (counted as in the batch,
/// plus cookie and function); one record larger than that is taken when nothing else is there.
class Accumulator {
 public:
  Accumulator(base::Runtime& runtime, const ProducerConfig& config);

  /// Called from append(), outside the mutex, when the sender has news to look at.
  void on_news(std::function<void()> call) { wake_sender_ = std::move(call); }

  /// Sets the record's timestamp when it has none. `refusal` is written only when refused.
  [[nodiscard]] Appended append(ProducerTopic& topic, AppendRequest& request,
                                std::optional<Error>& refusal);

  /// Finds or makes the topic.
  ProducerTopicPtr topic(const TopicInfo& info);
  /// Takes in partitions that the topic has got since; on the sender's runtime. Records with a key
  /// go where the new number of partitions says from now on (CLI-3).
  void extend(ProducerTopic& topic, const TopicInfo& info);
  void mark_gone(ProducerTopic& topic);
  [[nodiscard]] bool gone(const ProducerTopic& topic) const;
  [[nodiscard]] std::vector<ProducerTopicPtr> topics() const;

  /// Seals every open batch; the number returned is for flushed().
  std::uint64_t begin_flush();
  /// True when every record accepted before that begin_flush() has its outcome.
  [[nodiscard]] bool flushed(std::uint64_t flush) const;
  /// Refuses records from now on.
  void close();

  [[nodiscard]] std::size_t pending_records() const;
  [[nodiscard]] std::size_t buffered_bytes() const;
  [[nodiscard]] std::uint64_t accepted_records() const;

  // The sender's side.

  /// Moves sealed batches into their partitions' queues and lists the partitions that have news.
  void take_news(std::vector<ProducerPartition*>& news);
  /// Moves the open batch into the queue if there is one and it is `at_once` or from
  /// `created_until` or before. Otherwise returns when it was created, or max() when there is none.
  base::TimePoint take_open(ProducerPartition& partition, bool at_once,
                            base::TimePoint created_until);
  /// While quiet, news do not wake the sender: it is about to look anyway.
  void set_quiet(bool quiet) { quiet_.store(quiet, std::memory_order_release); }
  /// Counts the second half of a batch that was split.
  void count_split(const ProduceBatch& half);
  /// Gives back the room of batches that have their outcome.
  void resolve(const std::vector<ProduceBatchPtr>& batches);

 private:
  void add_partition(ProducerTopic& topic, std::int32_t number);
  Appended append_locked(ProducerTopic& topic, const AppendRequest& request,
                         std::optional<Error>& refusal, bool& wake);
  Appended refuse(const ProducerTopic& topic, std::optional<Error>& refusal) const;
  Appended append_large(ProducerPartition& partition, const AppendRequest& request,
                        std::optional<Error>& refusal, bool& wake);
  [[nodiscard]] ProducerPartition* choose(ProducerTopic& topic, const AppendRequest& request) const;
  void accept(ProduceBatch& batch, const AppendRequest& request, std::size_t bytes);
  ProduceBatchPtr new_batch(ProducerPartition& partition);
  void open_batch(ProducerPartition& partition);
  void seal(ProducerPartition& partition);
  void announce(ProducerPartition& partition, bool& wake);

  base::Runtime& runtime_;
  const ProducerConfig& config_;
  const model::Codec codec_;
  base::BufferPool& pool_;
  std::function<void()> wake_sender_;
  std::atomic<bool> quiet_{false};

  mutable std::mutex
      mutex_;  // guards everything below, and the first part of partitions and topics
  std::vector<ProducerTopicPtr> topics_;
  std::vector<ProducerPartition*> news_;
  bool scheduled_ = false;  // the sender has been woken and has not looked yet
  bool closed_ = false;
  std::size_t buffered_bytes_ = 0;
  std::size_t pending_records_ = 0;
  std::uint64_t accepted_records_ = 0;
  std::uint64_t flush_epoch_ = 0;
  std::map<std::uint64_t, std::size_t> unresolved_;  // batches by flush epoch
};

}  // namespace mq::client
