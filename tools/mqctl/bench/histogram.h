#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>

namespace mq::mqctl {

/// Counts of durations in log-linear buckets: exact below 128 ns, then 128 buckets for each
/// doubling, so a percentile is at most 1/128 (0.8 %) above the true value and never below it.
/// Takes 64-bit nanoseconds; the largest value is exact. 60 KiB; one thread.
class Histogram {
 public:
  void add(std::chrono::nanoseconds value, std::uint64_t count = 1) noexcept;
  void merge(const Histogram& other) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// The smallest recorded bound that at least this share (0 < share <= 1) of the values does not
  /// exceed; zero when empty.
  [[nodiscard]] std::chrono::nanoseconds percentile(double share) const noexcept;
  [[nodiscard]] std::chrono::nanoseconds max() const noexcept {
    return std::chrono::nanoseconds(max_);
  }

 private:
  static constexpr unsigned kBits = 7;  // of precision
  static constexpr std::size_t kPerDoubling = std::size_t{1} << kBits;
  static constexpr std::size_t kBuckets = (64 - kBits) * kPerDoubling + kPerDoubling;
  static std::size_t bucket_of(std::uint64_t value) noexcept;
  /// The largest value that falls into the bucket.
  static std::uint64_t top_of(std::size_t bucket) noexcept;

  std::unique_ptr<std::array<std::uint64_t, kBuckets>> buckets_ =
      std::make_unique<std::array<std::uint64_t, kBuckets>>();
  std::uint64_t count_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace mq::mqctl
