#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "model/damaged_place.h"
#include "storage/disk_files.h"

namespace mq::storage {

/// What is known to be damaged on a disk: by readers and scrubs of this run, and what runs before
/// wrote down. Any thread.
class DamageNotes {
 public:
  /// False: it was known so.
  bool set(const model::PartitionId& id, std::vector<model::DamagedPlace> places) {
    const std::scoped_lock lock(mutex_);
    if (places.empty()) return known_.erase(id) > 0;
    auto& known = known_[id];
    if (known == places) return false;
    known = std::move(places);
    return true;
  }
  [[nodiscard]] DamageList all() const {
    const std::scoped_lock lock(mutex_);
    return known_;
  }

 private:
  mutable std::mutex mutex_;  // guards known_
  DamageList known_;
};

}  // namespace mq::storage
