#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/buffer.h"
#include "base/runtime.h"
#include "model/ids.h"
#include "model/record_batch.h"
#include "model/record_reader.h"
#include "mq/consumer.h"

namespace mq::client {

/// Whole batches of one partition, as one answer brought them; or none, and the place where reading
/// goes on from here.
struct FetchedChunk {
  base::Buffer owner;
  base::Bytes batches;
  std::optional<std::int64_t> jump;
};

/// One partition that a consumer reads. Who may touch what is said at each group.
struct ReadPartition {
  // Fixed.
  TopicPartition name;
  model::PartitionId id;

  // Guarded by the buffer's mutex.
  std::int64_t position = 0;  ///< next offset for the application
  /// Raised by every seek; what was fetched for an older one is dropped. Begins above the
  /// fetcher's, which so takes over the first position.
  std::uint64_t generation = 1;
  bool paused = false;
  bool resting = false;  ///< an error was found; until seek
  bool removed = false;  ///< no longer assigned
  std::deque<FetchedChunk> chunks;
  std::optional<Error> error;  ///< to be returned once the chunks before it are read

  // The application's thread: where it stands in the chunk it has begun.
  FetchedChunk current;
  base::Bytes left;            ///< of current, batches not begun
  base::SharedBytes records;   ///< of the batch begun
  std::int64_t batch_end = 0;  ///< its end offset
  std::optional<model::RecordReader> reader;

  // The fetcher's runtime.
  /// It is read from its beginning, wherever that is by the time it is asked for.
  bool from_start = false;
  std::int64_t fetch_offset = 0;
  std::uint64_t fetch_generation = 0;
  bool in_flight = false;
  int failures = 0;
  base::TimePoint retry_at{};
  /// A broker in the client's rack that the leader has named; -1: none.
  std::int32_t nearer_replica = -1;
  /// Until then the leader is asked, whomever it names.
  base::TimePoint leader_until{};
};
using ReadPartitionPtr = std::shared_ptr<ReadPartition>;

/// What the fetcher has brought and the application has not taken. Thread-safe; the fetcher asks
/// has_room() before it asks a broker for more, so at most the limit plus what is under way is
/// held.
class FetchBuffer {
 public:
  explicit FetchBuffer(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  /// Called, outside the mutex, when there is something to take: how many bytes came, 0 of an
  /// error.
  void on_data(std::function<void(std::size_t)> call) { on_data_ = std::move(call); }
  /// Called, outside the mutex, when the fetcher had stopped for want of room and there is room
  /// again.
  void on_room(std::function<void()> call) { on_room_ = std::move(call); }

  // Application.
  void assign(std::map<TopicPartition, ReadPartitionPtr> partitions);
  /// One more; on the fetcher's runtime. Nothing changes if it is there.
  void add(ReadPartitionPtr partition);
  [[nodiscard]] ReadPartitionPtr find(const TopicPartition& name) const;
  [[nodiscard]] std::vector<ReadPartitionPtr> all() const;
  void seek(ReadPartition& partition, std::int64_t offset);
  void set_paused(ReadPartition& partition, bool paused);
  [[nodiscard]] std::map<TopicPartition, std::int64_t> positions() const;
  /// A partition that has a chunk (moved into its `current`) or an error, in turn; null when none
  /// has.
  ReadPartitionPtr take_next(std::optional<Error>& error);
  void advance(ReadPartition& partition, std::int64_t position);
  /// The partition rests: its data is bad from here on.
  void rest(ReadPartition& partition);
  /// True when every partition rests.
  [[nodiscard]] bool all_rest() const;

  // Fetcher.
  struct Wanted {
    bool fetch = false;
    std::int64_t position = 0;
    std::uint64_t generation = 0;
  };
  [[nodiscard]] Wanted wanted(const ReadPartition& partition) const;
  /// False (and on_room follows) when the buffer is full.
  bool has_room();
  /// Dropped when the partition was sought or removed since `generation`.
  void put(ReadPartition& partition, std::uint64_t generation, FetchedChunk chunk);
  void put_error(ReadPartition& partition, std::uint64_t generation, Error error);
  /// The fetcher goes on elsewhere (out of range, by policy): so does the reader, behind what it
  /// has before. False when that is outdated.
  bool jump(ReadPartition& partition, std::uint64_t generation, std::int64_t offset);

 private:
  void drop_chunks(ReadPartition& partition);
  static void follow_jumps(ReadPartition& partition);

  const std::size_t bytes_max_;
  std::function<void(std::size_t)> on_data_;
  std::function<void()> on_room_;
  mutable std::mutex mutex_;  // guards everything below, and the marked part of the partitions
  std::map<TopicPartition, ReadPartitionPtr> partitions_;
  std::vector<ReadPartitionPtr> order_;
  std::size_t turn_ = 0;
  std::size_t bytes_ = 0;
  bool starved_ = false;
};

}  // namespace mq::client
