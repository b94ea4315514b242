#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/sim_random.h"

/// Files and directories of a SimFileSystem: what a process sees of them, and what the disk has.
namespace mq::testing {

constexpr std::uint64_t kSimSector = 512;
constexpr std::uint64_t kSimBlock = 4096;
using SimSector = std::array<std::byte, kSimSector>;
using SimSectors = std::map<std::uint64_t, SimSector>;  // by number

/// Bytes that a file of this size takes on the disk.
inline std::uint64_t sim_blocks(std::uint64_t bytes) {
  return (bytes + kSimBlock - 1) / kSimBlock * kSimBlock;
}

/// A file or a directory, known by identity, not by name.
struct Inode {
  bool is_directory = false;
  std::uint64_t links = 0;  // names it has now

  // Of a file. `lost` holds, for every unsynced sector, what the disk has: its content at the last
  // sync. Sizes since then lie in [size_min, size_max].
  std::vector<std::byte> content;
  SimSectors lost;
  std::uint64_t size_min = 0;
  std::uint64_t size_max = 0;
  std::uint64_t allocated = 0;
  // After a failed sync the pages count as clean although the disk has not got them: no later sync
  // writes these sectors, and a crash brings the old content back.
  SimSectors forsaken;
  /// Blocks whose write-back has begun: a power cut may catch the disk in the middle of one.
  std::set<std::uint64_t> under_way;
  bool locked = false;

  // Of a directory: names now, and names on the disk.
  std::map<std::string, std::shared_ptr<Inode>> names;
  std::map<std::string, std::shared_ptr<Inode>> durable_names;

  [[nodiscard]] std::uint64_t charged() const {
    return sim_blocks(std::max<std::uint64_t>(content.size(), allocated));
  }
};
using InodePtr = std::shared_ptr<Inode>;

/// Keeps what the disk has of the sectors in [from, to) before they change.
void remember(Inode& file, std::uint64_t from, std::uint64_t to);
void resize(Inode& file, std::uint64_t size);
/// What the disk has is now what the file has, but for forsaken sectors.
void settle(Inode& file);
/// A sync succeeded: what was written again since a failed one is on the disk now.
void sync(Inode& file);
/// A sync failed. The size, and with it what lay behind the end, is not data: it stays to be synced
/// by the next one (a file system's own journal either has it then, or has failed as a whole).
void forsake(Inode& file);
/// Forsaken sectors count as clean: dropped from the cache, they show what the disk has.
void reread(Inode& file, std::uint64_t from, std::uint64_t to);

/// What a power cut leaves of all names and files below.
void tear_tree(Inode& directory, SimRandom& random);
/// As it is now, all of it durable.
InodePtr copy_tree(const Inode& from);

/// Calls `visit(path, inode)` for every file below, in the order of names.
template <class Visit>
void walk(const Inode& directory, const std::string& path, const Visit& visit) {
  for (const auto& [name, inode] : directory.names) {
    const std::string child = path.empty() ? name : path + "/" + name;
    if (inode->is_directory) {
      walk(*inode, child, visit);
    } else {
      visit(child, inode);
    }
  }
}

}  // namespace mq::testing
