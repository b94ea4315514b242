#pragma once

#include <cstdint>
#include <string_view>

#include "base/buffer.h"
#include "base/file_system.h"
#include "model/record_batch.h"
#include "storage/storage_error.h"

namespace mq::storage {

/// What stands at one place of a segment file.
enum class BatchState {
  good,
  unsupported,    ///< checksums hold, format unknown: written by a newer mq
  torn,           ///< the file ends inside the batch
  zeros,          ///< only zeros from here to the end: no data
  bad_stamp_crc,  ///< want and got tell
  bad_body_crc,
  bad_length,
  bad_offset,  ///< does not follow the batch before; want and got tell
  bad_epoch,   ///< the leader epoch fell; want and got tell
  invalid,     ///< checksums hold, a rule of the format is broken
};
std::string_view state_name(BatchState state) noexcept;

/// Of a batch that stands behind a damaged one: whether it can begin there. Whatever its checksums
/// say, it may have been written for another place.
bool may_stand_behind(model::Offset damaged, model::Offset base) noexcept;

/// Walks the batches of one segment file in order and says what each is: recovery, index repair and
/// the offline tools all look through it. Blocks; reads in strides.
class BatchScanner {
 public:
  enum class Depth {
    whole,   ///< both checksums of every batch
    headers  ///< the stamp crc only; bodies are skipped, not read
  };
  struct Start {
    std::uint64_t position = 0;
    model::Offset expected;         ///< base offset of the first batch; -1: any
    model::LeaderEpoch last_epoch;  ///< of the batch before
    bool uncached = false;          ///< nobody else will want the bytes soon
  };

  /// `file` outlives the scanner; bytes from `end` on are not looked at.
  BatchScanner(base::File& file, Start start, std::uint64_t end, Depth depth);

  /// Goes to the next batch, or to the end: at `end`, and behind any state but good and
  /// unsupported. An error is the disk's.
  Result<void> next();
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }
  /// Has next() go on behind a batch of which only the body is damaged: how long it is, is known.
  /// False: it is in another state.
  bool step_over() noexcept;
  /// The same as often as it takes, where all that was damaged may lie below `start`; is_good() if
  /// it does. Returns where the next batch begins that holds and may stand there; -1: not known.
  Result<model::Offset> step_over_below(model::Offset start);
  [[nodiscard]] bool is_good() const noexcept { return !at_end_ && state_ == BatchState::good; }

  [[nodiscard]] BatchState state() const noexcept { return state_; }
  /// Of the batch that next() went to.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint32_t batch_bytes() const noexcept { return batch_bytes_; }
  /// good only; valid until next(). Of depth `headers`, only its header may be looked at.
  [[nodiscard]] const model::RecordBatchView& view() const noexcept { return view_; }
  [[nodiscard]] std::uint64_t want() const noexcept { return want_; }
  [[nodiscard]] std::uint64_t got() const noexcept { return got_; }

 private:
  /// Makes up to `bytes` bytes at position_ available as window(); fewer at the end.
  Result<void> load(std::size_t bytes);
  [[nodiscard]] base::Bytes window() const noexcept;
  Result<void> classify();
  Result<void> classify_damage();
  void check_order();
  Result<void> look_for_zeros();
  void disagree(BatchState state, std::uint64_t want, std::uint64_t got) noexcept;

  base::File& file_;
  std::uint64_t end_;
  Depth depth_;
  bool uncached_;
  model::Offset expected_;
  model::LeaderEpoch last_epoch_;

  base::Buffer buffer_;
  std::uint64_t loaded_from_ = 0;
  std::size_t loaded_ = 0;

  bool at_end_ = false;
  bool only_zeros_ = false;
  BatchState state_ = BatchState::good;
  std::uint64_t position_;
  std::uint32_t batch_bytes_ = 0;
  model::RecordBatchView view_;
  std::uint64_t want_ = 0;
  std::uint64_t got_ = 0;
};

}  // namespace mq::storage
