#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <span>

#include "model/record_batch.h"

namespace mq::storage {

/// One of a producer's newest batches, enough to know it again and to answer a repeat of it.
struct ProducerBatch {
  std::int32_t base_sequence = 0;
  std::uint32_t last_offset_delta = 0;
  model::Offset base_offset;
  std::int64_t append_time_ms = -1;
  std::uint32_t body_crc = 0;  ///< covers producer, sequence and records

  [[nodiscard]] std::int32_t last_sequence() const noexcept {
    return model::advance_sequence(base_sequence, last_offset_delta);
  }
  [[nodiscard]] model::Offset end_offset() const noexcept {
    return model::advance(base_offset, std::int64_t{last_offset_delta} + 1);
  }
  friend bool operator==(const ProducerBatch&, const ProducerBatch&) = default;
};

/// What is remembered of one producer: its newest batches in one epoch, oldest first, never none.
class ProducerState {
 public:
  static constexpr std::size_t kWindow = 5;  ///< batches; no client has more under way

  explicit ProducerState(const model::ProducerIdentity& producer) noexcept : producer_(producer) {}

  [[nodiscard]] const model::ProducerIdentity& producer() const noexcept { return producer_; }
  [[nodiscard]] std::span<const ProducerBatch> batches() const noexcept {
    return {batches_.data(), count_};
  }
  [[nodiscard]] const ProducerBatch& newest() const noexcept { return batches_[count_ - 1]; }
  [[nodiscard]] std::int32_t next_sequence() const noexcept {
    return model::advance_sequence(newest().last_sequence(), 1);
  }

  /// Adds the newest batch; one that does not follow the newest before begins the window anew.
  void add(std::int32_t epoch, const ProducerBatch& batch) noexcept;
  /// Forgets batches from the old end on, as many as `forget` is true for.
  template <class Predicate>
  void drop_while(Predicate forget) noexcept;
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

 private:
  void drop_oldest(std::size_t count) noexcept;

  model::ProducerIdentity producer_;
  std::array<ProducerBatch, kWindow> batches_;
  std::size_t count_ = 0;
};

/// A time that surely lies some minutes back, told from the append times of a
/// log alone.
///
/// Time is cut into stretches of five minutes, of which only those count in
/// which something was appended: settled() is the last append time of the
/// fourth newest one. So at least five minutes have passed since, even if the
/// clock was set ahead by any amount meanwhile, which makes one stretch of a
/// single moment and another of its neighbour.
class SettledTime {
 public:
  static constexpr std::int64_t kStretchMs = std::int64_t{5} * 60 * 1000;
  static constexpr std::size_t kStretches = 4;
  using Ends = std::array<std::int64_t, kStretches>;

  void note(std::int64_t append_time_ms) noexcept;
  [[nodiscard]] std::int64_t newest() const noexcept { return ends_.front(); }
  /// -1: the log is too young.
  [[nodiscard]] std::int64_t settled() const noexcept { return ends_.back(); }
  [[nodiscard]] static std::int64_t stretch_of(std::int64_t time_ms) noexcept {
    return time_ms / kStretchMs;
  }

  /// The last append times of the stretches, the newest first; -1 where there
  /// is none yet.
  [[nodiscard]] const Ends& ends() const noexcept { return ends_; }
  /// False, and nothing changed, for what no log gives.
  [[nodiscard]] bool set_ends(const Ends& ends) noexcept;

 private:
  Ends ends_{-1, -1, -1, -1};
};

/// Who appended what lately in one partition, so that a repeated batch is known again.
///
/// A pure function of the log between its start and its end (IDM-4): it remembers of each producer
/// the newest five batches that lie wholly or partly above the log start and were appended within
/// 24 hours of the log's settled time, by append time; of the producers, the 4,096 that appended
/// last (about 1 MiB). No clock, no order of arrival of anything but the batches themselves.
///
/// IDM-6: what is forgotten must be too old to be sent again, or the repeat
/// would be taken for new. So whoever appends asks has_room() first: a producer
/// that appended after the settled time makes room for nobody.
class ProducerTable {
 public:
  static constexpr std::size_t kProducersMax = 4096;
  static constexpr std::int64_t kRememberedMs = std::int64_t{24} * 60 * 60 * 1000;

  explicit ProducerTable(std::size_t producers_max = kProducersMax)
      : producers_max_(producers_max) {}
  ProducerTable(ProducerTable&&) noexcept = default;
  ProducerTable& operator=(ProducerTable&&) noexcept = default;

  /// The next batch of the log, stamped, of whatever producer. In log order.
  void note(const model::RecordBatchView& batch);
  /// The log starts here now.
  void forget_below(model::Offset log_start);

  /// Null for a producer nothing is remembered of. Its batches are all still remembered.
  [[nodiscard]] const ProducerState* find(std::int64_t producer_id);
  [[nodiscard]] std::size_t size() const noexcept { return newest_first_.size(); }
  /// One more producer can be remembered without forgetting one that appended a
  /// moment ago.
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] const SettledTime& times() const noexcept { return times_; }

  /// Everything, the producer that appended last first. Expired batches may be among it.
  [[nodiscard]] const std::list<ProducerState>& states() const noexcept { return newest_first_; }
  /// For a table read from a snapshot: adds behind those that are there. False, and nothing
  /// changed, for what no table holds (an id twice, more than fit, newer than the one before).
  [[nodiscard]] bool restore(ProducerState state);
  void set_times(const SettledTime& times) noexcept { times_ = times; }

 private:
  using Place = std::list<ProducerState>::iterator;
  [[nodiscard]] std::int64_t oldest_remembered() const noexcept {
    return times_.settled() - kRememberedMs;
  }
  void drop_expired();
  void remove(Place place);

  std::size_t producers_max_;
  SettledTime times_;
  std::list<ProducerState> newest_first_;
  // Ordered, so that no choice of ids makes a lookup slow.
  std::map<std::int64_t, Place> by_id_;
};

template <class Predicate>
void ProducerState::drop_while(Predicate forget) noexcept {
  std::size_t gone = 0;
  while (gone < count_ && forget(batches_[gone])) ++gone;
  drop_oldest(gone);
}

}  // namespace mq::storage
