#include "storage/sound_segments.h"

#include <algorithm>

#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using base::OpenMode;
using model::LeaderEpoch;
using model::Offset;

/// Read in one step.
constexpr std::uint64_t kStepBytes = std::uint64_t{4} << 20;

}  // namespace

Result<void> SoundSegments::work() {
  if (!listed_) return list();
  if (!scanner_) return begin_segment();
  const std::uint64_t from = reached_.position;
  while (reached_.position - from < kStepBytes) {
    // What cannot be read is damaged as well.
    const auto looked = scanner_->next();
    if (!looked) {
      conclude();
      return {};
    }
    if (scanner_->at_end()) {
      end_segment();
      return {};
    }
    if (scanner_->state() != BatchState::good) {
      // What was trimmed away may be damaged.
      const auto looked_behind = scanner_->step_over_below(log_start_);
      if (!looked_behind || !scanner_->is_good()) {
        conclude();
        return {};
      }
    }
    accept();
  }
  return {};
}

Result<void> SoundSegments::list() {
  listed_ = true;
  const auto entries = files_.list_directory(directory_);
  const bool missing = !entries && entries.error() == make_error_code(base::BaseErrc::not_found);
  if (!entries && !missing) return entries.error();
  for (std::size_t i = 0; !missing && i < entries->size(); ++i) {
    const auto& entry = (*entries)[i];
    const auto base = parse_segment_file_name(entry.name);
    if (!base || entry.is_directory) continue;
    MQ_TRY(const auto file, files_.open(directory_ + "/" + entry.name, OpenMode::read));
    MQ_TRY(const auto bytes, file->size());
    all_.push_back({*base, bytes});
  }
  std::ranges::sort(all_, {}, &SealedSegment::base_offset);
  end_.leader_epoch = reached_.leader_epoch = LeaderEpoch(-1);
  if (!all_.empty()) end_.offset = end_.segment_base = all_.front().base_offset;
  reached_ = end_;
  return {};
}

Result<void> SoundSegments::begin_segment() {
  if (next_ == all_.size()) {
    conclude();
    return {};
  }
  const auto& segment = all_[next_];
  // An empty one at the end of all is what the log goes on in.
  const bool follows = segment.base_offset == end_.offset;
  if (!follows || segment.bytes == 0) {
    if (follows && next_ + 1 == all_.size()) ++next_;
    conclude();
    return {};
  }
  MQ_TRY(file_,
         files_.open(directory_ + "/" + segment_file_name(segment.base_offset), OpenMode::write));
  // REC-5: whatever it failed of, it is not tried again.
  if (!file_->sync_all()) return make_error_code(base::BaseErrc::io_failed);
  file_->drop_cache(0, segment.bytes);
  const BatchScanner::Start start{0, segment.base_offset, end_.leader_epoch, true};
  scanner_ =
      std::make_unique<BatchScanner>(*file_, start, segment.bytes, BatchScanner::Depth::whole);
  return {};
}

void SoundSegments::accept() {
  const auto& batch = scanner_->view();
  if (batch.leader_epoch() != reached_.leader_epoch)
    reached_starts_.push_back({batch.leader_epoch(), batch.base_offset()});
  if (reached_.position == 0) reached_.segment_first_append_time_ms = batch.append_time_ms();
  reached_.offset = batch.end_offset();
  reached_.position = scanner_->position() + scanner_->batch_bytes();
  reached_.leader_epoch = batch.leader_epoch();
  reached_.append_time_ms = std::max(reached_.append_time_ms, batch.append_time_ms());
}

/// All of it is sound.
void SoundSegments::end_segment() {
  sound_.push_back(all_[next_++]);
  reached_.position = 0;
  reached_.segment_base = reached_.offset;
  reached_.segment_first_append_time_ms = -1;
  keep_reached();
  scanner_ = nullptr;
  file_ = nullptr;
}

void SoundSegments::keep_reached() {
  end_ = reached_;
  epoch_starts_.insert(epoch_starts_.end(), reached_starts_.begin(), reached_starts_.end());
  reached_starts_.clear();
}

void SoundSegments::conclude() {
  if (scanner_ && reached_.position > 0) {
    beginning_ = SealedSegment{all_[next_].base_offset, reached_.position};
    keep_reached();
  }
  scanner_ = nullptr;
  file_ = nullptr;
  for (; next_ < all_.size(); ++next_) others_.push_back(all_[next_].base_offset);
  ended_ = true;
}

}  // namespace mq::storage
