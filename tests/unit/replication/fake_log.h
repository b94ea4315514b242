#pragma once

#include <memory>
#include <vector>

#include "memory_log.h"

namespace mq::testing {

/// A log in memory whose confirmed end the test moves by hand (or follows the end, as under
/// durability `memory`).
class FakeLog final : public MemoryLog {
 public:
  explicit FakeLog(bool confirm_at_once) : confirm_at_once_(confirm_at_once) {
    epoch_starts_.push_back({model::LeaderEpoch(1), model::Offset(0)});
  }

  using MemoryLog::append;
  base::Result<storage::AppendInfo> append(base::Buffer, base::MutableBytes batch,
                                           const model::RecordBatchView& parsed) override {
    if (const auto refusal = take_refusal()) return refusal;
    storage::AppendInfo info;
    info.base_offset = model::Offset(end_ + gap_);
    info.end_offset =
        model::advance(info.base_offset, std::int64_t{parsed.last_offset_delta()} + 1);
    info.leader_epoch = leader_epoch_;
    info.append_time_ms = time_ms_;
    model::stamp(batch, info.base_offset, leader_epoch_, time_ms_);
    producers_.note(parsed);
    last_batch_epoch_ = leader_epoch_;
    end_ = info.end_offset.value();
    if (confirm_at_once_) confirmed_ = end_;
    return info;
  }
  /// Takes whatever follows, with its epoch.
  base::Result<storage::AppendInfo> append_replicated(base::Buffer, base::Bytes batch) override {
    if (const auto refusal = take_refusal()) return refusal;
    const auto parsed = model::RecordBatchView::parse(batch);
    if (!parsed) return storage::StorageErrc::corrupt_batch;
    if (parsed->base_offset().value() != end_) return storage::StorageErrc::offset_out_of_range;
    if (parsed->leader_epoch() < last_batch_epoch_) return storage::StorageErrc::stale_leader_epoch;
    storage::AppendInfo info{parsed->base_offset(), parsed->end_offset(), parsed->leader_epoch(),
                             parsed->append_time_ms()};
    if (epoch_starts_.empty() || epoch_starts_.back().leader_epoch < info.leader_epoch)
      epoch_starts_.push_back({info.leader_epoch, info.base_offset});
    last_batch_epoch_ = info.leader_epoch;
    leader_epoch_ = std::max(leader_epoch_, info.leader_epoch);
    producers_.note(*parsed);
    end_ = info.end_offset.value();
    if (confirm_at_once_) confirmed_ = end_;
    return info;
  }
  const storage::ProducerState* find_producer(std::int64_t producer_id) override {
    return producers_.find(producer_id);
  }
  bool has_room_for_a_producer() const override { return producers_.has_room(); }
  model::Offset log_start_offset() const override { return model::Offset(start_); }
  model::Offset log_end_offset() const override { return model::Offset(end_); }
  model::Offset durable_offset() const override { return model::Offset(confirmed_); }
  model::Offset confirmed_end() const override { return model::Offset(confirmed_); }
  model::LeaderEpoch leader_epoch() const override { return leader_epoch_; }
  model::LeaderEpoch last_batch_epoch() const override { return last_batch_epoch_; }
  base::Result<void> start_epoch(model::LeaderEpoch epoch) override {
    leader_epoch_ = epoch;
    epoch_starts_.push_back({epoch, model::Offset(end_)});
    return {};
  }
  const std::vector<storage::EpochStart>& epoch_starts() const override { return epoch_starts_; }
  base::Result<storage::ReadResult> read(model::Offset from, model::Offset limit,
                                         std::size_t) override {
    if (cold_) return make_error_code(storage::StorageErrc::not_cached);
    return contents(from, limit);
  }
  asio::awaitable<base::Result<storage::ReadResult>> read_from_disk(model::Offset from,
                                                                    model::Offset limit,
                                                                    std::size_t) override {
    while (disk_hangs_) co_await disk_list_->wait();
    co_return contents(from, limit);
  }
  /// Offset n was appended at n × 10 ms.
  asio::awaitable<base::Result<storage::TimeLookup>> find_time(std::int64_t time_ms) override {
    while (disk_hangs_) co_await disk_list_->wait();
    storage::TimeLookup found;
    const std::int64_t offset = std::max(start_, (time_ms + 9) / 10);
    found.offset = model::Offset(std::min(offset, end_));
    if (offset < end_) found.append_time_ms = offset * 10;
    co_return found;
  }
  asio::awaitable<base::Result<void>> trim(model::Offset to) override {
    while (disk_hangs_) co_await disk_list_->wait();
    if (failure()) co_return failure();
    start_ = std::max(start_, to.value());
    co_return base::Result<void>{};
  }
  asio::awaitable<base::Result<void>> truncate(model::Offset to, model::LeaderEpoch) override {
    end_ = std::min(end_, to.value());
    confirmed_ = std::min(confirmed_, end_);
    co_return base::Result<void>{};
  }
  asio::awaitable<base::Result<void>> restart_at(model::Offset start, model::LeaderEpoch) override {
    start_ = end_ = confirmed_ = start.value();
    last_batch_epoch_ = model::LeaderEpoch(-1);
    epoch_starts_.clear();
    co_return base::Result<void>{};
  }
  void set_high_watermark_hint(model::Offset offset) override { hint_ = offset; }
  model::Offset high_watermark_hint() const override { return std::max(hint_, log_start_offset()); }

  void confirm(std::int64_t end) {
    confirmed_ = end;
    changed();
  }
  void set_time_ms(std::int64_t time_ms) { time_ms_ = time_ms; }
  void leave_gap(std::int64_t offsets) { gap_ = offsets; }
  void trim(std::int64_t start) { start_ = start; }
  void go_cold() { cold_ = true; }
  void hang_disk(base::Runtime& runtime) {
    disk_hangs_ = true;
    disk_list_ = std::make_unique<base::WaitList>(runtime);
  }
  void release_disk() {
    disk_hangs_ = false;
    disk_list_->notify_all();
  }

 private:
  base::Result<storage::ReadResult> contents(model::Offset from, model::Offset limit) const {
    storage::ReadResult result;
    result.bytes = static_cast<std::size_t>(limit.value() - from.value());
    result.end_offset = limit;
    return result;
  }

  bool confirm_at_once_;
  model::LeaderEpoch leader_epoch_{1};
  model::LeaderEpoch last_batch_epoch_{-1};
  model::Offset hint_{0};
  std::vector<storage::EpochStart> epoch_starts_;
  storage::ProducerTable producers_{8};
  std::int64_t time_ms_ = 1'000'000;
  std::int64_t start_ = 0;
  std::int64_t end_ = 0;
  std::int64_t confirmed_ = 0;
  std::int64_t gap_ = 0;
  bool cold_ = false;
  bool disk_hangs_ = false;
  std::unique_ptr<base::WaitList> disk_list_;
};

}  // namespace mq::testing
