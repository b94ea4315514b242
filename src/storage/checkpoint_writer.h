#pragma once

#include <functional>
#include <memory>

#include "base/wait_list.h"
#include "storage/disk_state.h"
#include "storage/sealed_file.h"

namespace mq::storage {

/// Writes a disk's checkpoint, one write at a time; who asks while one is under way shares the
/// next. Lives on the home runtime.
class CheckpointWriter {
 public:
  /// `contents` gives the body to write, at the moment a write begins.
  CheckpointWriter(std::shared_ptr<DiskState> disk,
                   std::function<std::vector<std::byte>()> contents);

  /// Returns when a checkpoint is durable whose contents were taken after this call.
  /// Errors: storage_full (the old one stays), disk_failed.
  asio::awaitable<Result<void>> write();

 private:
  asio::awaitable<Result<void>> write_now();

  const std::shared_ptr<DiskState> disk_;
  const std::function<std::vector<std::byte>()> contents_;
  base::WaitList wake_;
  bool writing_ = false;
  std::uint64_t begun_ = 0;  // writes begun
  std::uint64_t ended_ = 0;
  Result<void> last_result_;
};

}  // namespace mq::storage
