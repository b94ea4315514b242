#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "mq/mq.h"

namespace mq::faults {

/// An idempotent producer that sends records "<n>:<padding>" with rising n to the partitions of one
/// topic in turn, on a thread of its own, until told to stop.
class NumberedLoad {
 public:
  /// Number by offset.
  using Numbers = std::map<std::int64_t, std::uint64_t>;

  NumberedLoad(const std::string& address, std::string topic, std::int32_t partitions);
  ~NumberedLoad() { finish(); }

  /// Stops, and waits for every result.
  void finish();
  /// What was acknowledged so far.
  [[nodiscard]] Numbers acknowledged(std::int32_t partition);
  [[nodiscard]] std::uint64_t accepted() const { return accepted_; }
  /// Results so far; every accepted record has one after finish().
  [[nodiscard]] std::uint64_t results();
  [[nodiscard]] std::uint64_t failed();
  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] std::int32_t partitions() const { return partitions_; }
  [[nodiscard]] ProducerStats stats() const { return producer_->stats(); }

 private:
  void run();
  void done(std::uint64_t n, const Result<Delivery>& result);

  std::string topic_;
  std::int32_t partitions_;
  std::unique_ptr<Producer> producer_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> accepted_{0};
  std::mutex mutex_;
  std::map<std::int32_t, Numbers> acknowledged_;
  std::uint64_t results_ = 0;
  std::uint64_t failed_ = 0;
  std::thread thread_;
};

/// The numbers of all records of one partition, by offset; throws if they cannot be read.
NumberedLoad::Numbers read_numbers(const std::string& address, const TopicPartition& partition);

}  // namespace mq::faults
