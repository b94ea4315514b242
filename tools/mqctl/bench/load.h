#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "mq/producer.h"
#include "mqctl/bench/bench_options.h"
#include "mqctl/bench/histogram.h"
#include "mqctl/bench/payload.h"

namespace mq::mqctl {

/// Sends the records of a benchmark and times their acknowledgements.
///
/// With a rate it is an open loop: a record that is due is sent (and its time runs) whether or not
/// the ones before it were answered, so a stall shows in all that it delays. Without one, records
/// go as fast as send() takes them. The cookie of a record is its intended send time.
class Load {
 public:
  using Clock = std::chrono::steady_clock;
  struct Acked {
    std::uint64_t delivered = 0;
    std::uint64_t failed = 0;
    std::optional<Error> first_error;
    Histogram latency;  ///< intended send time to acknowledgement
  };

  /// `stamped`: the first 8 bytes of each value are its intended send time.
  Load(const BenchOptions& options, bool stamped, std::function<bool()> interrupted);
  /// For ProducerConfig::on_delivery; the load outlives the producer.
  void on_delivery(const DeliveryRange& range);
  /// Returns when all is sent, a limit is reached, or it was interrupted; then sent() is final.
  void run(Producer& producer, const TopicHandle& topic);
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  /// Once the producer is flushed.
  [[nodiscard]] Acked acked() const;

  /// The steady clock as the number that stamps and cookies hold.
  static std::uint64_t stamp(Clock::time_point time) noexcept;
  static Clock::time_point time_of(std::uint64_t stamp) noexcept;

 private:
  void run_paced(Producer& producer, const TopicHandle& topic);
  void run_unpaced(Producer& producer, const TopicHandle& topic);
  /// False: no use to go on.
  bool send(Producer& producer, const TopicHandle& topic, std::uint64_t intended);
  [[nodiscard]] bool over(Clock::time_point now) const;

  const BenchOptions& options_;
  const bool stamped_;
  const std::function<bool()> interrupted_;
  Payload payload_;
  std::vector<std::byte> stamped_value_;
  std::uint64_t limit_;
  Clock::time_point start_;
  std::uint64_t sent_ = 0;
  std::optional<Error> refused_;
  std::uint64_t refused_count_ = 0;

  mutable std::mutex mutex_;  // guards acked_ while the producer runs
  Acked acked_;
};

}  // namespace mq::mqctl
