#include "storage/batch_scanner.h"

#include <algorithm>

#include "base/crc32c.h"
#include "model/record_batch_format.h"

namespace mq::storage {
namespace {

namespace format = model::batch_format;
using model::ModelErrc;
using model::RecordBatchView;

constexpr std::size_t kStride = std::size_t{1} << 20;
constexpr std::size_t kHeaderStride = std::size_t{64} << 10;

bool all_zero(base::Bytes bytes) noexcept {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

std::string_view state_name(BatchState state) noexcept {
  switch (state) {
    case BatchState::good:
      return "good";
    case BatchState::unsupported:
      return "unsupported format";
    case BatchState::torn:
      return "torn";
    case BatchState::zeros:
      return "zeros";
    case BatchState::bad_stamp_crc:
      return "bad stamp crc";
    case BatchState::bad_body_crc:
      return "bad body crc";
    case BatchState::bad_length:
      return "bad length";
    case BatchState::bad_offset:
      return "bad offset";
    case BatchState::bad_epoch:
      return "leader epoch fell";
    case BatchState::invalid:
      return "invalid";
  }
  return "unknown";
}

bool may_stand_behind(model::Offset damaged, model::Offset base) noexcept {
  // No batch is given more offsets.
  constexpr std::int64_t kBatchOffsetsMax = format::kRawBytesMax / format::kRecordBytesMin;
  return damaged >= model::Offset(0) && base > damaged &&
         base.value() - damaged.value() <= kBatchOffsetsMax;
}

BatchScanner::BatchScanner(base::File& file, Start start, std::uint64_t end, Depth depth)
    : file_(file),
      end_(end),
      depth_(depth),
      uncached_(start.uncached),
      expected_(start.expected),
      last_epoch_(start.last_epoch),
      position_(start.position) {}

Result<void> BatchScanner::next() {
  position_ += batch_bytes_;
  batch_bytes_ = 0;
  view_ = {};
  at_end_ = position_ >= end_ || (state_ != BatchState::good && state_ != BatchState::unsupported);
  if (at_end_) return {};
  return classify();
}

bool BatchScanner::step_over() noexcept {
  if (at_end_ || state_ != BatchState::bad_body_crc) return false;
  state_ = BatchState::good;
  expected_ = model::Offset();
  return true;
}

Result<model::Offset> BatchScanner::step_over_below(model::Offset start) {
  const BatchState damage = state_;
  model::Offset stepped;
  while (!at_end_ && state_ == BatchState::bad_body_crc) {
    stepped = model::Offset(base::load_le<std::int64_t>(window().data() + format::kBaseOffset));
    step_over();
    MQ_TRY_VOID(next());
  }
  if (!is_good()) return model::Offset();
  if (!may_stand_behind(stepped, view_.base_offset())) {
    state_ = damage;
    return model::Offset();
  }
  if (view_.base_offset() > start) state_ = damage;
  return view_.base_offset();
}

base::Bytes BatchScanner::window() const noexcept {
  return base::Bytes(buffer_.bytes().first(loaded_)).subspan(position_ - loaded_from_);
}

Result<void> BatchScanner::load(std::size_t bytes) {
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, end_ - position_));
  if (position_ >= loaded_from_ && position_ + bytes <= loaded_from_ + loaded_) return {};
  const std::size_t stride = depth_ == Depth::whole ? kStride : kHeaderStride;
  const auto wanted =
      static_cast<std::size_t>(std::min<std::uint64_t>(std::max(bytes, stride), end_ - position_));
  if (buffer_.capacity() < wanted) buffer_ = base::BufferPool::shared().take(wanted);
  loaded_from_ = position_;
  loaded_ = 0;
  const auto into = buffer_.bytes().first(wanted);
  MQ_TRY(loaded_,
         uncached_ ? file_.read_uncached_at(into, position_) : file_.read_at(into, position_));
  return {};
}

Result<void> BatchScanner::classify() {
  MQ_TRY_VOID(load(format::kHeaderBytes));
  const auto length = model::peek_batch_bytes(window());
  if (!length) return classify_damage();
  batch_bytes_ = *length;
  if (depth_ == Depth::whole) {
    MQ_TRY_VOID(load(batch_bytes_));
  }
  const auto parsed = depth_ == Depth::whole ? RecordBatchView::parse_first(window())
                                             : RecordBatchView::parse_header(window());
  if (!parsed && parsed.error() == make_error_code(ModelErrc::unsupported_format)) {
    // LOG-9: only of a newer format if every byte of it holds.
    MQ_TRY_VOID(load(batch_bytes_));
    const base::Bytes whole = window().first(std::min<std::size_t>(window().size(), batch_bytes_));
    if (whole.size() < batch_bytes_ || !model::body_crc_holds(whole)) return classify_damage();
    state_ = BatchState::unsupported;
    expected_ = model::Offset();  // where it ends, only a newer mq knows
    return {};
  }
  if (!parsed && parsed.error() == make_error_code(ModelErrc::invalid_batch)) {
    state_ = BatchState::invalid;
    return {};
  }
  if (!parsed) return classify_damage();
  if (depth_ == Depth::headers && batch_bytes_ > end_ - position_) {
    state_ = BatchState::torn;
    return {};
  }
  view_ = *parsed;
  check_order();
  return {};
}

void BatchScanner::check_order() {
  state_ = BatchState::good;
  if (expected_ != model::Offset() && view_.base_offset() != expected_)
    return disagree(BatchState::bad_offset, static_cast<std::uint64_t>(expected_.value()),
                    static_cast<std::uint64_t>(view_.base_offset().value()));
  if (view_.base_offset() < model::Offset(0)) {
    state_ = BatchState::invalid;  // never stamped
    return;
  }
  if (view_.leader_epoch() < last_epoch_)
    return disagree(BatchState::bad_epoch, static_cast<std::uint64_t>(last_epoch_.value()),
                    static_cast<std::uint64_t>(view_.leader_epoch().value()));
  expected_ = view_.end_offset();
  last_epoch_ = view_.leader_epoch();
}

/// The batch does not parse: says why, for people and for the decision what to cut.
Result<void> BatchScanner::classify_damage() {
  MQ_TRY_VOID(look_for_zeros());
  MQ_TRY_VOID(load(format::kHeaderBytes));
  const base::Bytes bytes = window();
  if (only_zeros_) {
    state_ = BatchState::zeros;
  } else if (bytes.size() < format::kStableBytes) {
    state_ = BatchState::torn;
  } else if (batch_bytes_ == 0) {
    disagree(BatchState::bad_length, 0,
             base::load_le<std::uint32_t>(bytes.data() + format::kBatchBytes));
  } else if (!model::stamp_crc_holds(bytes)) {
    disagree(BatchState::bad_stamp_crc,
             base::load_le<std::uint32_t>(bytes.data() + format::kStampCrc),
             base::crc32c(bytes.first(format::kStampCrc)));
  } else if (batch_bytes_ > end_ - position_) {
    state_ = BatchState::torn;
  } else {
    MQ_TRY_VOID(load(batch_bytes_));
    const base::Bytes whole = window().first(std::min<std::size_t>(window().size(), batch_bytes_));
    disagree(BatchState::bad_body_crc,
             base::load_le<std::uint32_t>(whole.data() + format::kBodyCrc),
             base::crc32c(whole.subspan(format::kBodyCoverStart)));
  }
  return {};
}

Result<void> BatchScanner::look_for_zeros() {
  if (!all_zero(window().first(std::min<std::size_t>(window().size(), format::kHeaderBytes))))
    return {};
  auto chunk = base::BufferPool::shared().take(kStride);
  for (std::uint64_t at = position_; at < end_;) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kStride, end_ - at));
    MQ_TRY(const auto got, file_.read_at(chunk.bytes().first(wanted), at));
    if (got == 0) break;
    if (!all_zero(chunk.bytes().first(got))) return {};
    at += got;
  }
  only_zeros_ = true;
  return {};
}

void BatchScanner::disagree(BatchState state, std::uint64_t want, std::uint64_t got) noexcept {
  state_ = state;
  want_ = want;
  got_ = got;
}

}  // namespace mq::storage
