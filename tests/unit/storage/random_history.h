#pragma once

#include <deque>
#include <optional>
#include <string>

#include "producer_world.h"

namespace mq::testing {

/// One seeded history of appends, reads, retention, faults, stops, kills and power cuts on a disk
/// of four partitions, compared with what a log must be.
class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed);

  /// The first broken promise, or nothing after `operations` operations.
  std::optional<std::string> run(int operations);

  [[nodiscard]] std::uint64_t restarts() const noexcept { return restarts_; }

 private:
  struct Batch {
    model::Offset base;
    model::Offset end;
    std::vector<std::byte> bytes;
  };
  /// What one partition's log must hold.
  struct Expected {
    std::deque<Batch> batches;
    model::Offset start{0};
    model::Offset end{0};
    model::Offset durable{0};  // what no crash may take
    model::LeaderEpoch epoch;  // that no crash may take
    // A cut to here was under way: what lay above may be gone after a crash.
    std::optional<model::Offset> cut_to;
  };
  enum class Death { clean, kill, power };

  void step();
  void append(int partition);
  base::SharedBytes next_of_a_producer(int partition, int records, std::size_t bytes);
  void check_producers(int partition);
  void read(int partition);
  void find_time(int partition);
  void trim(int partition);
  void cut(int partition);
  static asio::awaitable<void> forget(asio::awaitable<base::Result<void>> task);
  void inject();
  void pass_time();
  void restart(Death death);
  void check_after_start(int partition, Death death, bool faulty);
  void check_piece(int partition, const storage::ReadResult& result, model::Offset from);
  void note_progress();
  void note_epochs();
  void broken(std::string what);

  static constexpr int kPartitions = 4;  // nothing is ever appended to the last one
  static constexpr std::int64_t kProducers = 3;
  SimRandom random_;
  StorageWorld world_;
  std::array<Expected, kPartitions> expected_;
  bool faulty_ = false;  // a fault was injected in this run
  std::uint64_t restarts_ = 0;
  std::optional<std::string> broken_;
};

}  // namespace mq::testing
