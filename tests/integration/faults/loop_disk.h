#pragma once

#include <string>

#include "support/temp_dir.h"

namespace mq::faults {

/// A file system of its own in a file, mounted through a loop device, whose power can be cut: what
/// was synced stays, of the rest the kernel's journal decides. Needs root.
class LoopDisk {
 public:
  /// Why there can be none here; empty: there can. `type` is "ext4" or "xfs".
  static std::string missing(const std::string& type);
  /// Mounts of this process are seen by its children alone, and end with it, however it ends.
  static void keep_mounts_private();

  /// Makes it and mounts it at `folder`.
  LoopDisk(const std::string& type, std::string folder);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  /// From now on every call on it fails. `flush_log`: what the file system has in its own journal
  /// is written out before.
  void cut_power(bool flush_log);
  /// Nobody has a file in it open any more: mounts it again, with what the cut left.
  void power_on();

 private:
  void command(std::initializer_list<std::string> words);
  void mount();
  void unmount();

  testing::TempDir dir_;
  std::string image_;
  std::string folder_;
};

}  // namespace mq::faults
