#include "sim/log_model.h"

#include <algorithm>

#include "model/record_batch.h"
#include "sim/violation.h"

namespace mq::sim {

using base::Bytes;
using model::RecordBatchView;

void LogModel::appended(std::int64_t base, std::int64_t end, Bytes batch) {
  require(base == end_, "LOG-1: {}: append got offset {} but the log ended at {}", name_, base,
          end_);
  const auto view = RecordBatchView::parse(batch);
  require(view.has_value(), "LOG-4: {}: the batch stamped at {} does not parse", name_, base);
  require(view->base_offset().value() == base && view->end_offset().value() == end,
          "LOG-1: {}: append said [{}, {}) and stamped [{}, {})", name_, base, end,
          view->base_offset(), view->end_offset());
  require(view->append_time_ms() >= last_append_time_ms_,
          "LOG-8: {}: append time fell from {} to {} at offset {}", name_, last_append_time_ms_,
          view->append_time_ms(), base);
  last_append_time_ms_ = view->append_time_ms();
  batches_.push_back({base, end, view->leader_epoch().value(), std::string(base::as_text(batch))});
  end_ = end;
  maybe_.reset();
}

void LogModel::saw_start(std::int64_t offset) {
  require(offset >= start_, "LOG-10: {}: the log start fell from {} to {}", name_, start_, offset);
  start_ = offset;
  while (batches_.size() > 1 && batches_.front().end <= start_) batches_.pop_front();
}

std::int64_t LogModel::boundary(std::uint64_t back) const {
  if (back == 0 || batches_.empty()) return end_;
  const std::size_t index = batches_.size() - std::min<std::size_t>(back, batches_.size());
  return std::max(batches_[index].base, start_);
}

void LogModel::cut() {
  end_at(*cut_);
  durable_ = *cut_;
  cut_.reset();
}

void LogModel::restart() {
  end_at(0);
  start_ = end_ = durable_ = *restart_;
  restart_.reset();
}

std::vector<std::pair<std::int32_t, std::int64_t>> LogModel::epoch_starts() const {
  std::vector<std::pair<std::int32_t, std::int64_t>> starts;
  for (std::size_t i = 1; i < batches_.size(); ++i) {
    if (batches_[i].epoch != batches_[i - 1].epoch)
      starts.emplace_back(batches_[i].epoch, batches_[i].base);
  }
  return starts;
}

void LogModel::end_at(std::int64_t end) {
  while (!batches_.empty() && batches_.back().base >= end) batches_.pop_back();
  end_ = end;
  last_append_time_ms_ = -1;
  if (batches_.empty()) return;
  const auto view = RecordBatchView::parse(base::as_bytes(batches_.back().bytes));
  last_append_time_ms_ = view->append_time_ms();
}

std::size_t LogModel::index_of(std::int64_t offset) const {
  const auto after =
      std::upper_bound(batches_.begin(), batches_.end(), offset,
                       [](std::int64_t value, const Batch& batch) { return value < batch.base; });
  return static_cast<std::size_t>(after - batches_.begin()) - 1;
}

void LogModel::check_read(std::int64_t from, Bytes batches) const {
  std::size_t index = index_of(from);
  while (!batches.empty()) {
    const auto view = RecordBatchView::parse_first(batches);
    require(view.has_value(), "LOG-4: {}: a read from {} got a batch that does not parse ({})",
            name_, from, view.has_value() ? "" : view.error().message());
    require(index < batches_.size(), "LOG-2: {}: a read got offset {}, which nobody appended",
            name_, view->base_offset());
    const Batch& expected = batches_[index++];
    require(view->base_offset().value() == expected.base &&
                base::as_text(view->bytes()) == expected.bytes,
            "LOG-2: {}: a read from {} got [{}, {}) where [{}, {}) was appended{}", name_, from,
            view->base_offset(), view->end_offset(), expected.base, expected.end,
            view->base_offset().value() == expected.base ? ", other bytes" : "");
    batches = batches.subspan(view->batch_bytes());
  }
}

void LogModel::adopt_maybe(std::int64_t end, Bytes last) {
  const auto view = RecordBatchView::parse(last);
  require(maybe_.has_value() && view.has_value(),
          "LOG-6: {}: the log came back up to {}, but only {} was appended", name_, end, end_);
  constexpr std::size_t kStamp = 32;  // what the broker writes lies before
  require(view->base_offset().value() == end_ &&
              base::as_text(last).substr(kStamp) == std::string_view(*maybe_).substr(kStamp),
          "LOG-6: {}: [{}, {}) came back and is not the append that the crash interrupted", name_,
          view->base_offset(), view->end_offset());
  batches_.push_back({end_, end, view->leader_epoch().value(), std::string(base::as_text(last))});
  end_ = end;
}

void LogModel::recovered(std::int64_t start, std::int64_t end, bool survives_all, Bytes last) {
  if (cut_ && end == *cut_) cut();
  cut_.reset();
  if (restart_ && start == *restart_ && end == *restart_) restart();
  restart_.reset();
  const std::int64_t floor = survives_all ? end_ : durable_;
  require(end >= floor, "{}: {}: the log came back up to {}, but {} had to survive {}",
          survives_all ? "LOG-2" : "REC-2", name_, end, floor,
          survives_all ? "a kill" : "a power cut");
  if (end > end_) adopt_maybe(end, last);
  end_at(end);
  require(batches_.empty() || batches_.back().end == end || end <= start,
          "REC-1: {}: the log ends at {} inside a batch", name_, end);
  maybe_.reset();
  saw_start(start);
  // REC-3: what is served again is on the disk by then.
  saw_durable(end);
}

}  // namespace mq::sim
