#include "storage/local_log.h"
#include "storage/producer_recovery.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

/// So that a start after a crash reads no more than about this much of a log for its producers.
constexpr std::uint64_t kSnapshotStrideBytes = std::uint64_t{8} << 20;

}  // namespace

const ProducerState* LocalLog::find_producer(std::int64_t producer_id) {
  return producers_.find(producer_id);
}

/// `batch` was just written at `position` of the active segment.
void LocalLog::note_producer(const model::RecordBatchView& batch, std::uint64_t position) {
  producers_.note(batch);
  last_batch_ = {end_.segment_base, position, batch.stamp_crc()};
  if (end_.position - snapshot_position_ >= kSnapshotStrideBytes) snapshot_producers();
}

/// Writes a snapshot of this log end on a disk thread. A cache: a failure only means that the next
/// start reads more.
void LocalLog::snapshot_producers() {
  auto job = next_snapshot();
  if (!job) return;
  auto visit = std::make_shared<Visit>(*this);  // ends on the worker
  disk_->executor.submit(
      [job = std::move(job), visit = std::move(visit), worker = spec_.worker]() mutable {
        job();
        worker->post([visit = std::move(visit)] {});
      });
}

asio::awaitable<void> LocalLog::snapshot_producers_of_the_end() {
  auto job = next_snapshot();
  if (job) co_await disk_->executor.run(job);
}

/// What writes the next snapshot and removes those it replaces, on a disk thread; empty if there is
/// nothing to write.
std::function<void()> LocalLog::next_snapshot() {
  snapshot_position_ = end_.position;
  if (last_batch_.segment_base == model::Offset()) return {};
  if (!snapshots_.empty() && snapshots_.back() == end_.offset) return {};
  auto body = encode_producer_snapshot(spec_.id, end_.offset, end_.segment_base, end_.position,
                                       last_batch_, producers_);
  snapshots_.push_back(end_.offset);
  std::vector<std::string> useless;
  while (snapshots_.size() > kProducerSnapshotsKept) useless.push_back(pop_snapshot());
  return [disk = disk_, path = path_of(producers_file_name(end_.offset)), body = std::move(body),
          useless = std::move(useless)] {
    if (!write_producer_snapshot(disk->files, path, body))
      static_cast<void>(disk->files.remove_file(path));
    for (const auto& old : useless) static_cast<void>(disk->files.remove_file(old));
  };
}

/// Takes the oldest snapshot out of the books and returns its path.
std::string LocalLog::pop_snapshot() {
  std::string path = path_of(producers_file_name(snapshots_.front()));
  snapshots_.pop_front();
  return path;
}

/// IDM-4: what lies below the log start is not remembered, so that a log without snapshots gives
/// the same answers.
void LocalLog::forget_producers_below(model::Offset log_start) {
  producers_.forget_below(log_start);
  const model::Offset first = sealed_.empty() ? end_.segment_base : sealed_.front().base;
  std::vector<std::string> useless;
  while (!snapshots_.empty() && snapshots_.front() <= first) useless.push_back(pop_snapshot());
  if (useless.empty()) return;
  auto visit = std::make_shared<Visit>(*this);
  disk_->executor.submit([disk = disk_, useless = std::move(useless), visit = std::move(visit),
                          worker = spec_.worker]() mutable {
    for (const auto& old : useless) static_cast<void>(disk->files.remove_file(old));
    worker->post([visit = std::move(visit)] {});
  });
}

}  // namespace mq::storage
