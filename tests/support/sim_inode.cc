#include "support/sim_inode.h"

namespace mq::testing {
namespace {

void put_back(std::vector<std::byte>& content, const SimSectors& sectors) {
  for (const auto& [sector, old] : sectors) {
    const std::uint64_t start = sector * kSimSector;
    if (start >= content.size()) continue;
    const auto n = std::min<std::uint64_t>(kSimSector, content.size() - start);
    std::copy_n(old.begin(), n, content.begin() + static_cast<std::ptrdiff_t>(start));
  }
}

/// A block that was being written is lost whole, with what had been on the disk before.
void destroy_blocks(const Inode& file, std::vector<std::byte>& content, SimRandom& random) {
  for (const auto block : file.under_way) {
    const bool dirty = std::ranges::any_of(file.lost, [&](const auto& entry) {
      return entry.first * kSimSector / kSimBlock == block;
    });
    if (!dirty || random.chance(0.5)) continue;
    const auto end = std::min<std::uint64_t>((block + 1) * kSimBlock, content.size());
    for (auto at = block * kSimBlock; at < end; ++at)
      content[at] = static_cast<std::byte>(random.next());
  }
}

/// What a power cut leaves of one file.
void tear(Inode& file, SimRandom& random) {
  file.allocated = 0;
  if (file.lost.empty() && file.forsaken.empty() && file.size_min == file.size_max) return;
  // Usually all or nothing near either end, sometimes anything: both find different mistakes.
  const std::uint64_t keep_percent =
      std::array<std::uint64_t, 5>{0, 10, 50, 90, 100}[random.below(5)];
  std::uint64_t size = file.content.size();
  if (random.chance(0.6)) size = random.between(file.size_min, file.size_max);
  std::vector<std::byte> after = file.content;
  after.resize(std::max<std::uint64_t>(file.size_max, after.size()));
  const Inode before{.lost = file.lost, .under_way = file.under_way};
  std::erase_if(file.lost, [&](const auto&) { return random.below(100) < keep_percent; });
  put_back(after, file.lost);
  put_back(after, file.forsaken);
  destroy_blocks(before, after, random);
  after.resize(size);
  file.content = std::move(after);
  file.forsaken.clear();
  settle(file);
}

}  // namespace

void remember(Inode& file, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t sector = from / kSimSector; sector * kSimSector < to; ++sector) {
    if (file.lost.contains(sector)) continue;
    SimSector old{};
    const std::uint64_t start = sector * kSimSector;
    if (const auto forsaken = file.forsaken.find(sector); forsaken != file.forsaken.end()) {
      old = forsaken->second;
    } else if (start < file.content.size()) {
      const auto n = std::min<std::uint64_t>(kSimSector, file.content.size() - start);
      std::copy_n(file.content.begin() + static_cast<std::ptrdiff_t>(start), n, old.begin());
    }
    file.lost.emplace(sector, old);
  }
}

void resize(Inode& file, std::uint64_t size) {
  remember(file, std::min<std::uint64_t>(size, file.content.size()),
           std::max<std::uint64_t>(size, file.content.size()));
  file.content.resize(size);
  file.size_min = std::min(file.size_min, size);
  file.size_max = std::max(file.size_max, size);
}

void settle(Inode& file) {
  file.lost.clear();
  file.under_way.clear();
  file.size_min = file.size_max = file.content.size();
}

void sync(Inode& file) {
  for (const auto& [sector, old] : file.lost) file.forsaken.erase(sector);
  settle(file);
}

void forsake(Inode& file) {
  const auto end = file.content.size();
  std::erase_if(file.lost, [&](const auto& entry) {
    if (entry.first * kSimSector >= end) return false;
    file.forsaken.emplace(entry);
    return true;
  });
  file.under_way.clear();
}

void reread(Inode& file, std::uint64_t from, std::uint64_t to) {
  SimSectors dropped;
  std::erase_if(file.forsaken, [&](const auto& entry) {
    const auto& [sector, old] = entry;
    if (sector * kSimSector < from / kSimSector * kSimSector || sector * kSimSector >= to)
      return false;
    if (file.lost.contains(sector)) return false;
    dropped.emplace(sector, old);
    return true;
  });
  put_back(file.content, dropped);
}

void tear_tree(Inode& directory, SimRandom& random) {
  directory.names = directory.durable_names;
  for (const auto& [name, inode] : directory.names) {
    if (inode->is_directory) {
      tear_tree(*inode, random);
    } else {
      inode->locked = false;
      tear(*inode, random);
    }
  }
}

InodePtr copy_tree(const Inode& from) {
  auto to = std::make_shared<Inode>();
  to->is_directory = from.is_directory;
  to->content = from.content;
  settle(*to);
  for (const auto& [name, inode] : from.names) to->names[name] = copy_tree(*inode);
  to->durable_names = to->names;
  return to;
}

}  // namespace mq::testing
