#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace mq::sim {

/// What one partition's log must contain, batch by batch as stamped: every answer of the log is
/// held against it. Throws Violation.
class LogModel {
 public:
  explicit LogModel(std::string name) : name_(std::move(name)) {}

  /// The log said that it appended this batch. LOG-1: it begins where the last one ended.
  void appended(std::int64_t base, std::int64_t end, base::Bytes batch);
  /// An append failed in a way that may leave its bytes behind: the death of its process.
  void maybe_appended(base::Bytes batch) { maybe_ = std::string(base::as_text(batch)); }

  /// Where a batch begins, or the log's end: `back` batches before the end, or as far as it goes.
  [[nodiscard]] std::int64_t boundary(std::uint64_t back) const;
  /// The log is being cut at `to` (LOG-12): until cut() it may end there or as before.
  void cutting(std::int64_t to) { cut_ = to; }
  void not_cut() { cut_.reset(); }
  void cut();
  /// The same of a log that is begun anew, empty, at `to`.
  void restarting(std::int64_t to) { restart_ = to; }
  void not_restarted() { restart_.reset(); }
  void restart();
  /// The batches in which an epoch begins, but for the first one.
  [[nodiscard]] std::vector<std::pair<std::int32_t, std::int64_t>> epoch_starts() const;

  /// What an append or a read saw of the log's ends, in one life.
  void saw_durable(std::int64_t offset) { durable_ = std::max(durable_, offset); }
  void saw_start(std::int64_t offset);

  /// Whole batches that a reader got, from the batch that contains `from` on. LOG-2, LOG-4: each
  /// is exactly what was appended there.
  void check_read(std::int64_t from, base::Bytes batches) const;

  /// The log came back after a crash with [start, end). `survives_all`: nothing may be missing (the
  /// process was killed, its page cache was not), else everything that was durable is there.
  /// `last` is the batch that ends at `end`, if the log is not empty.
  void recovered(std::int64_t start, std::int64_t end, bool survives_all, base::Bytes last);

  [[nodiscard]] std::int64_t start() const noexcept { return start_; }
  [[nodiscard]] std::int64_t end() const noexcept { return end_; }
  [[nodiscard]] std::int64_t durable() const noexcept { return durable_; }
  [[nodiscard]] std::int64_t last_append_time_ms() const noexcept { return last_append_time_ms_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  struct Batch {
    std::int64_t base;
    std::int64_t end;
    std::int32_t epoch;
    std::string bytes;
  };
  [[nodiscard]] std::size_t index_of(std::int64_t offset) const;
  void adopt_maybe(std::int64_t end, base::Bytes last);
  void end_at(std::int64_t end);

  std::string name_;
  std::deque<Batch> batches_;
  std::optional<std::string> maybe_;
  std::optional<std::int64_t> cut_;
  std::optional<std::int64_t> restart_;
  std::int64_t start_ = 0;
  std::int64_t end_ = 0;
  std::int64_t durable_ = 0;
  std::int64_t last_append_time_ms_ = -1;
};

}  // namespace mq::sim
