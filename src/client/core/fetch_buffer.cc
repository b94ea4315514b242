#include "client/core/fetch_buffer.h"

#include <algorithm>

namespace mq::client {

void FetchBuffer::drop_chunks(ReadPartition& partition) {
  for (const FetchedChunk& chunk : partition.chunks) bytes_ -= chunk.batches.size();
  partition.chunks.clear();
}

void FetchBuffer::assign(std::map<TopicPartition, ReadPartitionPtr> partitions) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, partition] : partitions_) {
    partition->removed = true;
    drop_chunks(*partition);
  }
  partitions_ = std::move(partitions);
  order_.clear();
  for (const auto& [name, partition] : partitions_) order_.push_back(partition);
  turn_ = 0;
}

void FetchBuffer::add(ReadPartitionPtr partition) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = partitions_.emplace(partition->name, partition);
  if (added) order_.push_back(std::move(partition));
}

ReadPartitionPtr FetchBuffer::find(const TopicPartition& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = partitions_.find(name);
  return found == partitions_.end() ? nullptr : found->second;
}

std::vector<ReadPartitionPtr> FetchBuffer::all() const {
  const std::lock_guard lock(mutex_);
  return order_;
}

void FetchBuffer::seek(ReadPartition& partition, std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  partition.position = offset;
  ++partition.generation;
  partition.resting = false;
  partition.error.reset();
  drop_chunks(partition);
  partition.current = {};
  partition.left = {};
  partition.reader.reset();
}

void FetchBuffer::set_paused(ReadPartition& partition, bool paused) {
  const std::lock_guard lock(mutex_);
  partition.paused = paused;
}

std::map<TopicPartition, std::int64_t> FetchBuffer::positions() const {
  const std::lock_guard lock(mutex_);
  std::map<TopicPartition, std::int64_t> positions;
  for (const auto& [name, partition] : partitions_) positions.emplace(name, partition->position);
  return positions;
}

ReadPartitionPtr FetchBuffer::take_next(std::optional<Error>& error) {
  bool room = false;
  ReadPartitionPtr taken;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < order_.size() && !taken; ++i) {
      const ReadPartitionPtr& partition = order_[(turn_ + i) % order_.size()];
      if (partition->paused) continue;
      const bool begun = partition->reader || !partition->left.empty();
      if (!begun) follow_jumps(*partition);
      if (!begun && partition->chunks.empty()) {
        if (!partition->error) continue;
        error = std::exchange(partition->error, std::nullopt);
        partition->resting = true;
      } else if (!begun) {
        partition->current = std::move(partition->chunks.front());
        partition->chunks.pop_front();
        partition->left = partition->current.batches;
        bytes_ -= partition->current.batches.size();
        room = starved_ && bytes_ < bytes_max_;
        if (room) starved_ = false;
      }
      taken = partition;
      turn_ = (turn_ + i + 1) % order_.size();
    }
  }
  if (room && on_room_) on_room_();
  return taken;
}

void FetchBuffer::advance(ReadPartition& partition, std::int64_t position) {
  const std::lock_guard lock(mutex_);
  partition.position = position;
}

void FetchBuffer::rest(ReadPartition& partition) {
  const std::lock_guard lock(mutex_);
  partition.resting = true;
  partition.error.reset();
  ++partition.generation;
  drop_chunks(partition);
  partition.current = {};
  partition.left = {};
  partition.reader.reset();
}

bool FetchBuffer::all_rest() const {
  const std::lock_guard lock(mutex_);
  return !order_.empty() &&
         std::ranges::all_of(order_, [](const auto& partition) { return partition->resting; });
}

FetchBuffer::Wanted FetchBuffer::wanted(const ReadPartition& partition) const {
  const std::lock_guard lock(mutex_);
  Wanted wanted;
  wanted.fetch = !partition.paused && !partition.resting && !partition.removed && !partition.error;
  wanted.position = partition.position;
  wanted.generation = partition.generation;
  return wanted;
}

bool FetchBuffer::has_room() {
  const std::lock_guard lock(mutex_);
  starved_ = bytes_ >= bytes_max_;
  return !starved_;
}

void FetchBuffer::put(ReadPartition& partition, std::uint64_t generation, FetchedChunk chunk) {
  const std::size_t bytes = chunk.batches.size();
  {
    const std::lock_guard lock(mutex_);
    if (partition.generation != generation || partition.removed) return;
    bytes_ += bytes;
    partition.chunks.push_back(std::move(chunk));
  }
  if (on_data_) on_data_(bytes);
}

void FetchBuffer::put_error(ReadPartition& partition, std::uint64_t generation, Error error) {
  {
    const std::lock_guard lock(mutex_);
    if (partition.generation != generation || partition.removed) return;
    partition.error = std::move(error);
  }
  if (on_data_) on_data_(0);
}

bool FetchBuffer::jump(ReadPartition& partition, std::uint64_t generation, std::int64_t offset) {
  const std::lock_guard lock(mutex_);
  if (partition.generation != generation || partition.removed) return false;
  partition.chunks.push_back(FetchedChunk{{}, {}, offset});
  return true;
}

/// Takes the jumps at the front of what is there.
void FetchBuffer::follow_jumps(ReadPartition& partition) {
  while (!partition.chunks.empty() && partition.chunks.front().jump) {
    partition.position = *partition.chunks.front().jump;
    partition.chunks.pop_front();
  }
}

}  // namespace mq::client
