#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "mq/producer.h"
#include "mqctl/bench/histogram.h"
#include "mqctl/cli/console.h"
#include "mqctl/data/record_format.h"

namespace mq::mqctl {

/// What became of the records of `mqctl produce`. The cookie of a record is its number.
///
/// sending() and the getters belong to the sending thread, delivered() to the producer's callback
/// thread; a mutex guards what they share.
class DeliveryLog {
 public:
  using Clock = std::chrono::steady_clock;
  struct Lost {
    std::uint64_t number = 0;
    Error error;
  };
  struct Summary {
    std::uint64_t delivered = 0;
    std::uint64_t failed = 0;
    std::size_t partitions = 0;
    std::vector<Lost> first_lost;  ///< at most kNamed
    std::chrono::nanoseconds p99{};
  };
  static constexpr std::size_t kNamed = 5;

  /// With a format, one line is printed for each delivered record.
  DeliveryLog(Output& out, std::optional<RecordFormat> print)
      : out_(out), print_(std::move(print)) {}

  void sending(std::uint64_t number);
  void delivered(const DeliveryRange& range);
  /// A failure that says more than "this record is wrong": sending more is no use.
  [[nodiscard]] bool broken() const;
  [[nodiscard]] Summary summary() const;

 private:
  void print(const DeliveryRange& range);
  void time(const DeliveryRange& range, Clock::time_point now);

  // Every kSampled-th record is timed; the slots outlast any number of records under way that
  // the producer's buffer allows.
  static constexpr std::uint64_t kSampled = 16;
  static constexpr std::size_t kSlots = 65536;
  struct Sample {
    std::uint64_t number = 0;
    Clock::time_point sent;
  };

  Output& out_;
  const std::optional<RecordFormat> print_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<Sample> samples_ = std::vector<Sample>(kSlots);
  Histogram latency_;
  std::set<std::int32_t> partitions_;
  std::uint64_t delivered_ = 0;
  std::uint64_t failed_ = 0;
  bool broken_ = false;
  std::vector<Lost> first_lost_;
};

/// Whether an error concerns one record only, so that the next may well be taken.
bool concerns_one_record(const Error& error);

}  // namespace mq::mqctl
