#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

namespace mq::base {

/// One number that only its name explains: `produce_requests_total`, `connections_open`. Any thread
/// may change it.
class Counter {
 public:
  void add(std::int64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  void set(std::int64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// The named counters of one broker (or one client). Look a counter up once and keep the reference;
/// it lives as long as the set. Thread-safe.
class Counters {
 public:
  Counter& get(std::string_view name);
  [[nodiscard]] std::map<std::string, std::int64_t> snapshot() const;

  /// Counts a broken invariant as `invariant_violations_total{id}`, logs it and returns `held`. The
  /// caller stops serving the partition when it gets false. Ids are those of src/INVARIANTS.md.
  bool invariant(bool held, std::string_view id, std::string_view detail);

 private:
  mutable std::mutex mutex_;  // guards the map, not the numbers
  std::map<std::string, std::unique_ptr<Counter>, std::less<>> counters_;
};

}  // namespace mq::base
