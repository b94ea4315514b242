#include "storage/storage_error.h"

#include <string>

namespace mq::storage {
namespace {

class StorageCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "mq.storage"; }
  std::string message(int value) const override {
    switch (static_cast<StorageErrc>(value)) {
      case StorageErrc::corrupt_batch:
        return "the record batch is damaged";
      case StorageErrc::unsupported_format:
        return "a record batch of a newer format";
      case StorageErrc::batch_too_large:
        return "the record batch is larger than the topic allows";
      case StorageErrc::offset_out_of_range:
        return "the offset is outside the log";
      case StorageErrc::storage_full:
        return "the disk is full";
      case StorageErrc::io_failed:
        return "the operating system refused an operation";
      case StorageErrc::disk_failed:
        return "the disk is offline after an I/O error";
      case StorageErrc::partition_corrupt:
        return "the partition's log is damaged";
      case StorageErrc::closed:
        return "the log is closed";
      case StorageErrc::not_cached:
        return "the disk is needed";
      case StorageErrc::stale_leader_epoch:
        return "the leader epoch is not above the log's last one";
      case StorageErrc::wrong_directory:
        return "the data directory belongs to another cluster or broker";
      case StorageErrc::unknown_format_version:
        return "the data directory was written by a newer mq";
      case StorageErrc::locked:
        return "another process holds the data directory";
      case StorageErrc::already_exists:
        return "the log exists already";
      case StorageErrc::not_found:
        return "no such log";
    }
    return "unknown error";
  }
};

}  // namespace

const boost::system::error_category& storage_category() noexcept {
  static const StorageCategory category;
  return category;
}

Error make_error_code(StorageErrc code) noexcept {
  return {static_cast<int>(code), storage_category()};
}

}  // namespace mq::storage
