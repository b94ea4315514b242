#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory_log.h"
#include "model/record_batch_builder.h"

namespace mq::testing {

/// A log in memory that keeps its batches and its epochs as the one on disk does, for tests of how
/// logs of several brokers become one. What is durable moves when the test says so.
class ModelLog final : public MemoryLog {
 public:
  struct Batch {
    model::Offset base;
    model::Offset end;
    model::LeaderEpoch leader_epoch;
    std::string bytes;
  };

  explicit ModelLog(bool confirms_at_once = true) : confirms_at_once_(confirms_at_once) {}

  using MemoryLog::append;
  base::Result<storage::AppendInfo> append(base::Buffer, base::MutableBytes batch,
                                           const model::RecordBatchView&) override {
    if (const auto refusal = take_refusal()) return refusal;
    model::stamp(batch, end_, leader_epoch_, time_ms_);
    return take(batch);
  }
  base::Result<storage::AppendInfo> append_replicated(base::Buffer, base::Bytes batch) override {
    if (const auto refusal = take_refusal()) return refusal;
    const auto parsed = model::RecordBatchView::parse(batch);
    if (!parsed) return make_error_code(storage::StorageErrc::corrupt_batch);
    if (parsed->base_offset() != end_)
      return make_error_code(storage::StorageErrc::offset_out_of_range);
    if (parsed->leader_epoch() < last_batch_epoch() || parsed->leader_epoch() == begun_here_)
      return make_error_code(storage::StorageErrc::stale_leader_epoch);
    return take(batch);
  }
  asio::awaitable<base::Result<storage::AppendInfo>> append_replicated_later(
      base::Buffer owner, base::Bytes batch) override {
    while (slow_) co_await slow_list_->wait();
    co_return append_replicated(std::move(owner), batch);
  }
  bool appends_inline() const override { return !slow_; }
  bool write_back_lags() const override { return lags_; }
  void set_write_back_lags(bool lags) { lags_ = lags; }

  const storage::ProducerState* find_producer(std::int64_t) override { return nullptr; }
  bool has_room_for_a_producer() const override { return true; }
  model::Offset log_start_offset() const override { return start_; }
  model::Offset log_end_offset() const override { return end_; }
  model::Offset durable_offset() const override { return durable_; }
  model::Offset confirmed_end() const override { return durable_; }
  model::LeaderEpoch leader_epoch() const override { return leader_epoch_; }
  model::LeaderEpoch last_batch_epoch() const override {
    return batches_.empty() ? model::LeaderEpoch() : batches_.back().leader_epoch;
  }
  base::Result<void> start_epoch(model::LeaderEpoch epoch) override {
    if (epoch <= leader_epoch_) return make_error_code(storage::StorageErrc::stale_leader_epoch);
    leader_epoch_ = begun_here_ = epoch;
    if (!starts_.empty() && starts_.back().start_offset == end_) starts_.pop_back();
    starts_.push_back({epoch, end_});
    return {};
  }
  const std::vector<storage::EpochStart>& epoch_starts() const override { return starts_; }

  base::Result<storage::ReadResult> read(model::Offset from, model::Offset limit,
                                         std::size_t bytes_max) override {
    storage::ReadResult result;
    result.end_offset = from;
    if (from < start_ || from > end_)
      return make_error_code(storage::StorageErrc::offset_out_of_range);
    for (const Batch& batch : batches_) {
      if (batch.end <= from || batch.end > limit) continue;
      if (result.bytes > 0 && result.bytes + batch.bytes.size() > bytes_max) break;
      base::Buffer copy = base::BufferPool::shared().take(batch.bytes.size());
      std::memcpy(copy.data(), batch.bytes.data(), batch.bytes.size());
      result.batches.push_back({copy, base::Bytes(copy.data(), batch.bytes.size())});
      result.bytes += batch.bytes.size();
      result.end_offset = batch.end;
    }
    return result;
  }
  asio::awaitable<base::Result<storage::ReadResult>> read_from_disk(
      model::Offset from, model::Offset limit, std::size_t bytes_max) override {
    co_return read(from, limit, bytes_max);
  }
  asio::awaitable<base::Result<storage::TimeLookup>> find_time(std::int64_t) override {
    co_return storage::TimeLookup{end_, -1};
  }
  asio::awaitable<base::Result<void>> trim(model::Offset to) override {
    if (to > durable_) co_return make_error_code(storage::StorageErrc::offset_out_of_range);
    start_ = std::max(start_, to);
    std::erase_if(batches_, [&](const Batch& batch) { return batch.end <= start_; });
    while (starts_.size() > 1 && starts_[1].start_offset <= start_) starts_.erase(starts_.begin());
    co_return base::Result<void>{};
  }
  asio::awaitable<base::Result<void>> truncate(model::Offset to,
                                               model::LeaderEpoch epoch) override {
    while (slow_) co_await slow_list_->wait();
    if (epoch < leader_epoch_) co_return make_error_code(storage::StorageErrc::stale_leader_epoch);
    if (to < start_ || to > end_)
      co_return make_error_code(storage::StorageErrc::offset_out_of_range);
    if (to == end_) co_return base::Result<void>{};
    ++cuts_;
    cut(to);
    co_return base::Result<void>{};
  }
  asio::awaitable<base::Result<void>> restart_at(model::Offset start,
                                                 model::LeaderEpoch epoch) override {
    if (epoch < leader_epoch_) co_return make_error_code(storage::StorageErrc::stale_leader_epoch);
    ++restarts_;
    batches_.clear();
    starts_.clear();
    start_ = end_ = durable_ = hint_ = start;
    co_return base::Result<void>{};
  }
  void set_high_watermark_hint(model::Offset offset) override { hint_ = offset; }
  model::Offset high_watermark_hint() const override { return std::clamp(hint_, start_, end_); }

  void set_retention_limit(model::Offset limit) override { retention_limit_ = limit; }
  [[nodiscard]] model::Offset retention_limit() const noexcept { return retention_limit_; }

  // What a test does to it.

  /// As its leader: one batch of `records` records with this value.
  void append_records(const std::string& value, int records = 1) {
    model::RecordBatchBuilder builder(base::BufferPool::shared(), 1 << 20, 0);
    for (int i = 0; i < records; ++i) {
      model::RecordInput record;
      record.value = base::as_bytes(value);
      static_cast<void>(builder.append(record));
    }
    const auto batch = builder.finish();
    std::vector<std::byte> bytes(batch.bytes.begin(), batch.bytes.end());
    static_cast<void>(append({}, bytes));
  }
  void confirm(model::Offset end) {
    durable_ = end;
    changed();
  }
  /// The machine lost its power: what was not durable may be gone. Whoever led leads no more.
  void lose_above(model::Offset end) {
    cut(end);
    begun_here_ = {};
    leader_epoch_ = starts_.empty() ? model::LeaderEpoch() : starts_.back().leader_epoch;
  }
  void restart_process() { begun_here_ = {}; }
  void become_slow(base::Runtime& runtime) {
    slow_ = true;
    slow_list_ = std::make_unique<base::WaitList>(runtime);
  }
  void become_fast() {
    slow_ = false;
    slow_list_->notify_all();
  }

  [[nodiscard]] const std::vector<Batch>& batches() const noexcept { return batches_; }
  [[nodiscard]] int cuts() const noexcept { return cuts_; }
  [[nodiscard]] int restarts() const noexcept { return restarts_; }
  /// "1:0-2 3:2-5": epochs and offsets of the batches.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const Batch& batch : batches_) {
      text += fmt::format("{}{}:{}-{}", text.empty() ? "" : " ", batch.leader_epoch, batch.base,
                          batch.end);
    }
    return text;
  }

 private:
  storage::AppendInfo take(base::Bytes bytes) {
    const auto parsed = model::RecordBatchView::parse(bytes);
    const model::LeaderEpoch epoch = parsed->leader_epoch();
    // Epochs in which nothing was appended, and that a later leader knew nothing of.
    while (!starts_.empty() && starts_.back().start_offset >= end_ &&
           starts_.back().leader_epoch > epoch)
      starts_.pop_back();
    if (starts_.empty() || starts_.back().leader_epoch < epoch) starts_.push_back({epoch, end_});
    leader_epoch_ = std::max(leader_epoch_, epoch);
    const Batch batch{end_, parsed->end_offset(), epoch, std::string(base::as_text(bytes))};
    batches_.push_back(batch);
    end_ = batch.end;
    if (confirms_at_once_) durable_ = end_;
    storage::AppendInfo info;
    info.base_offset = batch.base;
    info.end_offset = batch.end;
    info.leader_epoch = epoch;
    info.append_time_ms = time_ms_;
    return info;
  }
  void cut(model::Offset to) {
    std::erase_if(batches_, [&](const Batch& batch) { return batch.end > to; });
    end_ = batches_.empty() ? start_ : batches_.back().end;
    durable_ = std::min(durable_, end_);
    std::erase_if(starts_, [&](const auto& start) { return start.start_offset >= end_; });
    if (starts_.empty() || starts_.back().leader_epoch < leader_epoch_)
      starts_.push_back({leader_epoch_, end_});
  }

  bool confirms_at_once_;
  model::LeaderEpoch leader_epoch_;
  model::LeaderEpoch begun_here_;
  std::vector<storage::EpochStart> starts_;
  std::vector<Batch> batches_;
  std::int64_t time_ms_ = 1'000'000;
  model::Offset start_{0};
  model::Offset end_{0};
  model::Offset durable_{0};
  model::Offset hint_{0};
  model::Offset retention_limit_;
  int cuts_ = 0;
  int restarts_ = 0;
  bool slow_ = false;
  bool lags_ = false;
  std::unique_ptr<base::WaitList> slow_list_;
};

}  // namespace mq::testing
