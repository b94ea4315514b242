#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mq/config.h"
#include "mq/export.h"
#include "mq/record.h"
#include "mq/result.h"

namespace mq {
inline namespace v1 {

/// Where to begin in a partition.
struct Start {
  enum Kind : std::uint8_t {
    earliest,   ///< the oldest record there is
    latest,     ///< what comes from now on
    at_offset,  ///< `offset`
    at_time,  ///< the first record appended at `time` or later, by the broker's clock; else latest
  };
  Kind kind = earliest;
  std::int64_t offset = 0;
  Timestamp time{};

  static Start at(std::int64_t offset) { return {at_offset, offset, {}}; }
  static Start at(Timestamp time) { return {at_time, 0, time}; }
};

/// Records of one poll(), in offset order per partition. Keeps the received bytes alive; copies
/// share them.
class MQ_EXPORT Batch {
 public:
  Batch() = default;
  [[nodiscard]] const RecordView* begin() const noexcept { return records_.data(); }
  [[nodiscard]] const RecordView* end() const noexcept { return records_.data() + records_.size(); }
  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  [[nodiscard]] const RecordView& operator[](std::size_t index) const noexcept {
    return records_[index];
  }

  Batch(std::shared_ptr<const void> data, std::span<const RecordView> records) noexcept
      : data_(std::move(data)), records_(records) {}

 private:
  std::shared_ptr<const void> data_;
  std::span<const RecordView> records_;
};

/// Half-open range of offsets that a partition has: [start, end).
struct OffsetRange {
  std::int64_t start = 0;
  std::int64_t end = 0;
};

/// Where a time lies in a partition.
struct TimedOffset {
  std::int64_t offset = 0;  ///< of the first record appended then or later, or the partition's end
  std::optional<Timestamp> append_time;  ///< of that record; none: there is none so young
};

/// Reads partitions that it is told to read, each in offset order, from wherever it is told to
/// start. Keeps no offsets anywhere.
///
/// Threads: one owner thread; only wakeup() may come from others. The consumer owns one I/O thread
/// that fetches ahead, up to prefetch_bytes, while the application works; a poll() that waits does
/// that thread's work itself. No callbacks.
///
/// Errors of poll(): offset_out_of_range, corrupt_batch, unknown_topic_id and the like name
/// partition and offset; that partition then rests until seek() or assign(), the others go on. With
/// nothing to read and no broker to reach, poll() returns unreachable (retriable) at the end of its
/// time; the next poll() goes on by itself.
class MQ_EXPORT Consumer {
 public:
  /// Connects; fails with unreachable, not_mq, wrong_cluster or invalid_client_config.
  static Result<Consumer> create(ConsumerConfig config);
  Consumer(Consumer&&) noexcept;
  Consumer& operator=(Consumer&&) noexcept;
  ~Consumer();

  /// The partitions of a topic, ascending. unknown_topic names the nearest existing one.
  Result<std::vector<std::int32_t>> partitions(const std::string& topic);

  /// Replaces what is read. Looks topics up and start and end offsets too, so it may block for
  /// request_timeout. What `whole_topics` have besides, now or later, is read too, from its
  /// beginning: within seconds after partitions were added.
  Result<void> assign(const std::map<TopicPartition, Start>& partitions,
                      const std::vector<std::string>& whole_topics = {});
  /// Replaces what is read by whole topics: every partition there is from the given start, and
  /// those that are added later from their beginning.
  Result<void> assign_topics(const std::map<std::string, Start>& topics);
  /// Returns at the first records; an empty batch when the time is over or wakeup() was called,
  /// which is no error.
  Result<Batch> poll(Duration timeout);

  Result<void> seek(const TopicPartition& partition, Start to);
  /// A paused partition is not returned by poll(), nor fetched further.
  Result<void> pause(std::span<const TopicPartition> partitions);
  Result<void> resume(std::span<const TopicPartition> partitions);

  /// The offset of the next record that poll() returns, per assigned partition.
  [[nodiscard]] std::map<TopicPartition, std::int64_t> positions() const;
  /// Asks the brokers what the partitions have now; of the assigned ones when `partitions` is
  /// empty.
  Result<std::map<TopicPartition, OffsetRange>> offsets(
      std::span<const TopicPartition> partitions = {});

  /// The first offset of each partition that was appended at its time or later. Times are the
  /// broker's, which never fall within a partition; the records' own timestamps play no part.
  Result<std::map<TopicPartition, TimedOffset>> offsets_for_times(
      const std::map<TopicPartition, Timestamp>& times);

  /// Ends the poll() in progress, or the next one, early. From any thread.
  void wakeup() noexcept;
  /// Ends the I/O thread; again: does nothing.
  Result<void> close(Duration timeout);

  struct Impl;

 private:
  explicit Consumer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace mq
