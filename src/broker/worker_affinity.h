#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace mq::broker {

/// Which worker owns the partitions that a connection asks for, judged once, over its first data
/// requests. Every partition of every request counts.
class WorkerAffinity {
 public:
  WorkerAffinity(std::size_t workers, std::size_t requests)
      : counts_(workers), requests_left_(requests) {}

  void count(std::size_t worker) noexcept {
    ++counts_[worker];
    ++total_;
  }
  /// A request has been counted; true when it was the last one that matters.
  bool request_counted() noexcept { return --requests_left_ == 0; }
  /// The worker, other than `here`, that owns clearly most: two thirds at least.
  [[nodiscard]] std::optional<std::size_t> better_than(std::size_t here) const noexcept {
    for (std::size_t worker = 0; worker < counts_.size(); ++worker) {
      if (worker != here && counts_[worker] * 3 >= total_ * 2 && total_ > 0) return worker;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::size_t> counts_;  // by worker
  std::size_t total_ = 0;
  std::size_t requests_left_;
};

}  // namespace mq::broker
