#include "sim/bit_flips.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace mq::sim {
namespace {

constexpr std::string_view kDisk = "/disk/";
constexpr std::size_t kWindow = 32;
/// Of the disk itself, but for its identity: without that a broker does not start, and says so.
constexpr std::string_view kDiskFiles[] = {"checkpoint", "watermarks", "running", "registered",
                                           "clean"};

bool is_there(const BitFlips::Damage& damage) {
  auto& files = damage.node->files();
  const auto exists = files.exists(damage.file);
  if (!exists || !*exists) return false;
  const auto content = files.content(damage.file);
  return damage.from + damage.bytes.size() <= content.size() &&
         std::equal(damage.bytes.begin(), damage.bytes.end(),
                    content.begin() + static_cast<std::ptrdiff_t>(damage.from));
}

}  // namespace

asio::awaitable<void> BitFlips::meet_all() {
  for (const auto& damage : left()) {
    const bool met = co_await is_met(damage);
    if (met) continue;
    std::erase_if(struck_, [&](const Damage& one) {
      return one.file == damage.file && one.from == damage.from && one.node == damage.node;
    });
  }
}

/// The log may be replaced between two reads.
asio::awaitable<bool> BitFlips::is_met(Damage damage) {
  std::optional<model::Offset> at;
  while (damage.node->serving()) {
    auto* const log = damage.node->broker()->core().disks->find(damage.partition);
    if (!log || log->failure() || !log->read_damage().empty()) co_return true;
    const auto from = std::max(at.value_or(log->log_start_offset()), log->log_start_offset());
    const auto end = log->log_end_offset();
    if (from >= end) co_return false;
    auto reading = log->read_from_disk(from, end, std::size_t{1} << 20);
    const auto read = co_await std::move(reading);
    if (!read) co_return true;
    at = read->end_offset;
  }
  co_return true;
}

BitFlips::Kind BitFlips::strike(ClusterNode& node) {
  return random_.chance(0.6) ? strike_segment(node) : strike_other(node);
}

std::optional<model::PartitionId> BitFlips::partition_of(const std::string& file) const {
  for (const auto& [id, shown] : replicas_.shown()) {
    if (chosen_(id.topic) && file.starts_with(std::string(kDisk) + id.text() + "/")) return id;
  }
  return std::nullopt;
}

/// Of what is in memory alone a crash may take the end, and nobody could tell it from a damage: the
/// two newest segments of such a log are not struck.
std::vector<std::string> BitFlips::segments(ClusterNode& node) const {
  std::map<model::PartitionId, std::vector<std::string>> logs;
  for (auto& file : node.files().files_below("/disk")) {
    const auto partition = file.ends_with(".log") ? partition_of(file) : std::nullopt;
    if (partition) logs[*partition].push_back(std::move(file));
  }
  std::vector<std::string> found;
  for (auto& [partition, files] : logs) {
    files.resize(files.size() - std::min<std::size_t>(files.size(), synced_ ? 0 : 2));
    found.insert(found.end(), files.begin(), files.end());
  }
  return found;
}

BitFlips::Kind BitFlips::strike_segment(ClusterNode& node) {
  const auto files = segments(node);
  if (files.empty()) return Kind::none;
  const auto& file = files[random_.below(files.size())];
  const auto position = random_.below(node.files().content(file).size());
  return damage(node, file, position) ? Kind::log : Kind::none;
}

bool BitFlips::strike_start(ClusterNode& node, const model::PartitionId& id) {
  const auto files = segments(node);
  const auto oldest =
      std::ranges::find_if(files, [&](const auto& file) { return partition_of(file) == id; });
  if (oldest == files.end()) return false;
  return damage(node, *oldest, random_.below(node.files().content(*oldest).size()));
}

bool BitFlips::damage(ClusterNode& node, const std::string& file, std::uint64_t position) {
  const auto size = node.files().content(file).size();
  if (size < kWindow || !flip(node, file, position)) return false;
  const auto content = node.files().content(file);
  Damage damage{&node, *partition_of(file), file, std::min(position, size - kWindow), {}};
  const auto begin = content.begin() + static_cast<std::ptrdiff_t>(damage.from);
  damage.bytes.assign(begin, begin + kWindow);
  struck_.push_back(std::move(damage));
  return true;
}

/// What a running process has read already it does not read again.
BitFlips::Kind BitFlips::strike_other(ClusterNode& node) {
  std::vector<std::string> files;
  for (auto& file : node.files().files_below("/disk")) {
    const bool of_disk = file.starts_with(std::string(kDisk) + "journal/") ||
                         std::ranges::count(kDiskFiles, file.substr(kDisk.size())) > 0;
    const bool beside = !file.ends_with(".log") && partition_of(file);
    if (beside || (of_disk && node.down())) files.push_back(std::move(file));
  }
  if (files.empty()) return Kind::none;
  const auto& file = files[random_.below(files.size())];
  const auto size = node.files().content(file).size();
  if (size == 0 || !flip(node, file, random_.below(size))) return Kind::none;
  return partition_of(file) ? Kind::cache : Kind::log;
}

bool BitFlips::flip(ClusterNode& node, const std::string& file, std::uint64_t position) {
  const auto mask = static_cast<std::byte>(1U << random_.below(8));
  if (!node.files().flip_synced(file, position, mask)) return false;
  ++count_;
  machine_.simulator.trace(fmt::format("{}: a bit of {} changes at byte {}{}", node.name(), file,
                                       position, node.down() ? " while it is down" : ""));
  return true;
}

std::vector<BitFlips::Damage> BitFlips::left() const {
  std::vector<Damage> found;
  std::ranges::copy_if(struck_, std::back_inserter(found), is_there);
  return found;
}

bool BitFlips::left_at(const ClusterNode& node) const {
  return std::ranges::any_of(
      struck_, [&](const Damage& damage) { return damage.node == &node && is_there(damage); });
}

}  // namespace mq::sim
