#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mq/config.h"
#include "mq/export.h"
#include "mq/future.h"
#include "mq/record.h"
#include "mq/result.h"

namespace mq {
inline namespace v1 {

/// Where a record went. With Acks::none there is no answer, so offset is -1 and timestamp zero.
struct Delivery {
  std::string topic;
  std::int32_t partition = -1;
  std::int64_t offset = -1;
  Timestamp timestamp{};       ///< when the broker appended it
  std::uint32_t attempts = 0;  ///< 1: the first send was answered
};

/// The result of neighbouring records of one partition that were sent through a TopicHandle: all
/// delivered, at first_offset, first_offset + 1, ..., or all failed with one error. Valid during
/// the call.
struct DeliveryRange {
  std::string_view topic;
  std::int32_t partition = -1;
  std::int64_t first_offset = -1;
  std::size_t count = 0;
  std::span<const std::uint64_t> cookies;  ///< `count` of them, as given to send()
  Timestamp timestamp{};
  std::uint32_t attempts = 0;
  const Error& error;  ///< code ok when delivered

  [[nodiscard]] bool ok() const noexcept { return error.code == Errc::ok; }
};

/// A topic that a producer has looked up: cheap to copy, usable from any thread with the producer
/// that made it. When the topic is deleted, sends through it fail with unknown_topic_id; look it up
/// again.
class MQ_EXPORT TopicHandle {
 public:
  [[nodiscard]] const std::string& name() const noexcept;
  /// How many the producer knows of now: within seconds after more were added, it sends to them
  /// too.
  [[nodiscard]] std::size_t partitions() const noexcept;

  struct Impl;
  explicit TopicHandle(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
  [[nodiscard]] Impl& impl() const noexcept { return *impl_; }

 private:
  std::shared_ptr<Impl> impl_;
};

struct SendOptions {
  std::optional<std::int32_t> partition;
  std::optional<Timestamp> timestamp;
  std::span<const HeaderView> headers;
};

struct ProducerStats {
  std::uint64_t records_accepted = 0;
  std::uint64_t records_delivered = 0;
  std::uint64_t records_failed = 0;
  std::uint64_t batches_sent = 0;  ///< retries included
  std::uint64_t requests_sent = 0;
  std::uint64_t batches_retried = 0;
  std::uint64_t bytes_sent = 0;  ///< of batches, as on the wire
  std::uint64_t bytes_buffered = 0;
};

/// Sends records to topics: in order per partition, with exactly one result for every record that
/// was accepted.
///
/// Threads: all members may be called from any thread, also from callbacks, except close(). The
/// producer owns one I/O thread and, once there is a callback, one callback thread: callbacks never
/// run on the I/O thread, never two at a time, and never after close() has returned. A callback may
/// throw; that is logged. fork() without exec is not supported.
///
/// Errors: what a send() refuses at once (queue_full, record_too_large, closed, unknown_topic,
/// invalid_argument) is its return value and has no other result; everything later comes as the
/// record's result. A retry never reorders records, nor does it store any twice, unless
/// enable_idempotence is off. unknown_producer, rare: the broker no longer remembers whether it has
/// the record (a day passed in the partition, its records expired, or thousands of producers came
/// in between), and a repeat could be a second copy; maybe_applied says so.
class MQ_EXPORT Producer {
 public:
  using OnDelivery = std::function<void(Result<Delivery>)>;

  /// Connects; fails with unreachable, not_mq, wrong_cluster or invalid_client_config.
  static Result<Producer> create(ProducerConfig config);
  Producer(Producer&&) noexcept;
  Producer& operator=(Producer&&) noexcept;
  /// Waits for results up to close_timeout, then fails the rest with closed and logs how many.
  ~Producer();

  /// Looks a topic up; blocks for at most request_timeout. unknown_topic names the nearest existing
  /// one.
  Result<TopicHandle> topic(std::string_view name);

  /// The fast form: copies key and value straight into the open batch of their partition. The
  /// result comes through ProducerConfig::on_delivery with `cookie`. Blocks only while the buffer
  /// is full and on_full is block.
  Result<void> send(const TopicHandle& topic, std::optional<Bytes> key, std::optional<Bytes> value,
                    const SendOptions& options = {}, std::uint64_t cookie = 0);
  /// As send(), but never blocks: queue_full instead.
  Result<void> try_send(const TopicHandle& topic, std::optional<Bytes> key,
                        std::optional<Bytes> value, const SendOptions& options = {},
                        std::uint64_t cookie = 0);

  /// Accepted means exactly one call of `on_delivery`, in order per partition. An empty function:
  /// the result is dropped.
  Result<void> send(Record record, OnDelivery on_delivery);
  Future<Delivery> send(Record record);
  /// send(record).get().
  Result<Delivery> send_sync(Record record);
  /// Never blocks. queue_full when the buffer is full, or when the topic is not looked up yet (that
  /// begins); `record` is then untouched.
  Result<void> try_send(Record& record, OnDelivery on_delivery);

  /// Sends what is buffered and waits until every record accepted before the call has its result
  /// (and its callback has run, unless called from one). timed_out says how many remain.
  Result<void> flush(Duration timeout);
  /// Accepted records that have no result yet.
  [[nodiscard]] std::size_t pending() const noexcept;
  /// flush(timeout), then fails what is left with closed, runs the callbacks and ends the threads.
  /// Again: does nothing. Not from a callback: invalid_argument.
  Result<void> close(Duration timeout);
  [[nodiscard]] ProducerStats stats() const;

  struct Impl;

 private:
  explicit Producer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace mq
