#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/wait_list.h"
#include "storage/disk_files.h"
#include "storage/local_log.h"

namespace mq::storage {

/// Reads finished segments again, slowly and one after the other, and checks every batch, so that
/// damage is known before somebody needs the data. Changes nothing: what it finds is said by name
/// (log, PartitionLog::read_damage()) and the rest stays in service.
///
/// A pass begins once per DiskConfig::scrub_interval and goes on behind the last segment after a
/// restart. Only what lies below recovery points is looked at. What was not in the page cache
/// before is not left there, so that readers find theirs. Lives on the home runtime.
class Scrubber {
 public:
  using Logs = std::function<std::vector<std::shared_ptr<LocalLog>>()>;
  /// `logs` gives the disk's logs by ascending id.
  Scrubber(std::shared_ptr<DiskState> disk, Logs logs);

  /// Until stop(), or the disk has failed.
  asio::awaitable<void> run();
  void stop();
  [[nodiscard]] ScrubStatus status() const;

 private:
  struct Turn;
  struct Target {
    std::shared_ptr<LocalLog> log;
    FinishedSegment segment;
  };

  [[nodiscard]] bool ended() const { return stopping_ || disk_->failed(); }
  asio::awaitable<void> load();
  asio::awaitable<void> save();
  asio::awaitable<void> pass();
  asio::awaitable<std::optional<Target>> next_target();
  asio::awaitable<void> scrub(Target target);
  asio::awaitable<void> pause_until(base::TimePoint due);

  const std::shared_ptr<DiskState> disk_;
  const Logs logs_;
  base::WaitList wake_;
  bool stopping_ = false;
  ScrubMark mark_;
  base::TimePoint due_{};    // of the next turn, by the rate
  base::TimePoint saved_{};  // when the mark was written last
};

}  // namespace mq::storage
