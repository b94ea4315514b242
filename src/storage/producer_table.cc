#include "storage/producer_table.h"

#include <algorithm>

namespace mq::storage {

void ProducerState::add(std::int32_t epoch, const ProducerBatch& batch) noexcept {
  if (epoch != producer_.epoch || (count_ > 0 && batch.base_sequence != next_sequence()))
    drop_oldest(count_);
  if (count_ == kWindow) drop_oldest(1);
  producer_.epoch = epoch;
  batches_[count_++] = batch;
}

void ProducerState::drop_oldest(std::size_t count) noexcept {
  std::ranges::copy(batches().subspan(count), batches_.begin());
  count_ -= count;
}

void SettledTime::note(std::int64_t append_time_ms) noexcept {
  if (append_time_ms <= newest()) return;
  if (newest() >= 0 && stretch_of(append_time_ms) != stretch_of(newest()))
    std::ranges::copy_backward(ends_.begin(), ends_.end() - 1, ends_.end());
  ends_.front() = append_time_ms;
}

bool SettledTime::set_ends(const Ends& ends) noexcept {
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < -1) return false;
    if (i == 0 || ends[i] == -1) continue;
    if (ends[i] > ends[i - 1] || stretch_of(ends[i]) == stretch_of(ends[i - 1])) return false;
  }
  ends_ = ends;
  return true;
}

void ProducerTable::note(const model::RecordBatchView& batch) {
  times_.note(batch.append_time_ms());
  if (newest_first_.size() == producers_max_) drop_expired();
  const auto producer = batch.producer();
  if (!producer.known() || producer.epoch < 0 || batch.base_sequence() < 0) return;
  const auto found = by_id_.find(producer.id);
  if (found != by_id_.end()) {
    newest_first_.splice(newest_first_.begin(), newest_first_, found->second);
  } else {
    if (newest_first_.size() == producers_max_) remove(std::prev(newest_first_.end()));
    newest_first_.emplace_front(producer);
    by_id_.emplace(producer.id, newest_first_.begin());
  }
  newest_first_.front().add(producer.epoch,
                            {batch.base_sequence(), batch.last_offset_delta(), batch.base_offset(),
                             batch.append_time_ms(), batch.body_crc()});
}

void ProducerTable::forget_below(model::Offset log_start) {
  for (auto place = newest_first_.begin(); place != newest_first_.end();) {
    const auto here = place++;
    here->drop_while([&](const ProducerBatch& b) { return b.end_offset() <= log_start; });
    if (here->empty()) remove(here);
  }
}

const ProducerState* ProducerTable::find(std::int64_t producer_id) {
  const auto found = by_id_.find(producer_id);
  if (found == by_id_.end()) return nullptr;
  const std::int64_t oldest = oldest_remembered();
  found->second->drop_while([&](const ProducerBatch& b) { return b.append_time_ms < oldest; });
  if (!found->second->empty()) return &*found->second;
  remove(found->second);
  return nullptr;
}

bool ProducerTable::restore(ProducerState state) {
  if (state.empty() || newest_first_.size() == producers_max_) return false;
  if (!newest_first_.empty() &&
      newest_first_.back().newest().base_offset <= state.newest().base_offset)
    return false;
  if (by_id_.contains(state.producer().id)) return false;
  newest_first_.push_back(state);
  by_id_.emplace(state.producer().id, std::prev(newest_first_.end()));
  return true;
}

bool ProducerTable::has_room() const noexcept {
  if (newest_first_.size() < producers_max_) return true;
  return newest_first_.back().newest().append_time_ms <= times_.settled();
}

/// Append times do not fall, so those that expired are the ones that appended longest ago.
void ProducerTable::drop_expired() {
  const std::int64_t oldest = oldest_remembered();
  while (!newest_first_.empty() && newest_first_.back().newest().append_time_ms < oldest)
    remove(std::prev(newest_first_.end()));
}

void ProducerTable::remove(Place place) {
  by_id_.erase(place->producer().id);
  newest_first_.erase(place);
}

}  // namespace mq::storage
