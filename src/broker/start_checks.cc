#include "broker/start_checks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace mq::broker {
namespace {

/// Kept back for segments, indexes, the metadata store and the process itself.
constexpr std::uint64_t kFilesReserved = 512;
constexpr std::uint64_t kFilesWanted = 65'536;
constexpr std::uint64_t kAtLeast = 16;
/// Of the file with mounts, for some hundred directories.
constexpr std::size_t kMountLinesMax = std::size_t{256} << 10;
/// STATX_MNT_ID_UNIQUE: never the same for two mounts of one boot. Older headers do not name it.
constexpr unsigned kMountIdUnique = 0x4000;

std::uint64_t files_free(const Surroundings& around) {
  return around.open_files_max - std::min(around.open_files_max, kFilesReserved);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

/// Both spellings of a uuid as one; anything else is unknown.
std::string boot_id_of(std::string text) {
  std::erase_if(text, [](char c) { return c == '-' || c == '\n'; });
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  return text.size() == 32 && digits ? text : std::string();
}

}  // namespace

std::string read_boot_id(base::FileSystem& files, const char* passed) {
  if (passed) return boot_id_of(passed);
  const auto file = files.open("/proc/sys/kernel/random/boot_id", base::OpenMode::read);
  if (!file) return {};
  std::array<std::byte, 64> bytes;
  const auto got = (*file)->read_at(bytes, 0);
  return got ? boot_id_of(std::string(base::as_text(base::Bytes(bytes).first(*got))))
             : std::string();
}

std::vector<std::string> read_mount_ids(base::FileSystem& files, const char* file,
                                        const std::vector<std::string>& directories) {
  std::vector<std::string> ids(directories.size());
  const auto opened = file ? files.open(file, base::OpenMode::read)
                           : base::Result<std::unique_ptr<base::File>>(base::BaseErrc::not_found);
  if (!opened) return ids;
  std::vector<std::byte> bytes(kMountLinesMax);
  const auto got = (*opened)->read_at(bytes, 0);
  if (!got) return ids;
  const std::string text(base::as_text(base::Bytes(bytes).first(*got)));
  for (const auto line : base::split(text, '\n')) {
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto found = std::ranges::find(directories, line.substr(blank + 1));
    if (found != directories.end())
      ids[static_cast<std::size_t>(found - directories.begin())] = line.substr(0, blank);
  }
  return ids;
}

std::string mount_lines(const std::vector<std::string>& directories) {
  std::string lines;
  for (const auto& directory : directories) {
    struct statx found {};
    if (::statx(AT_FDCWD, directory.c_str(), 0, kMountIdUnique, &found) != 0) continue;
    if ((found.stx_mask & kMountIdUnique) == 0) continue;
    lines += fmt::format("{} {}\n", found.stx_mnt_id, directory);
  }
  return lines;
}

Surroundings look_around() {
  Surroundings around;
  around.root = ::geteuid() == 0;
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) around.open_files_max = limit.rlim_cur;
  return around;
}

void raise_open_files_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // start_warnings() tells what is in force
}

std::vector<std::string> start_warnings(const config::BrokerConfig& config,
                                        const Surroundings& around) {
  std::vector<std::string> warnings;
  if (around.root) warnings.emplace_back("the broker runs as root; it needs no privileges");
  if (!is_loopback(config.listener.bind.host)) {
    warnings.push_back(
        fmt::format("{} can be reached from the network, and nobody has to authenticate: whoever "
                    "reaches it may "
                    "read, write and delete everything",
                    config.listener.bind.text()));
  }
  if (around.open_files_max < kFilesWanted) {
    warnings.push_back(
        fmt::format("the limit of open files is {}, {} is advised (LimitNOFILE, ulimit -n); up to "
                    "{} connections are taken and {} partitions made",
                    around.open_files_max, kFilesWanted, connections_possible(config, around),
                    partitions_possible(config, around)));
  }
  return warnings;
}

std::size_t connections_possible(const config::BrokerConfig& config, const Surroundings& around) {
  const std::uint64_t possible = std::max(files_free(around) / 3, kAtLeast);
  return static_cast<std::size_t>(std::min<std::uint64_t>(config.limits.connections, possible));
}

std::size_t partitions_possible(const config::BrokerConfig& config, const Surroundings& around) {
  const std::uint64_t connections = connections_possible(config, around);
  const std::uint64_t free = files_free(around);
  return static_cast<std::size_t>(std::max(free - std::min(free, connections), kAtLeast));
}

std::string why_not_served(const config::BrokerConfig& config, const Surroundings& around,
                           std::size_t partitions) {
  const std::size_t possible = partitions_possible(config, around);
  if (partitions <= possible) return {};
  const std::uint64_t connections =
      std::min<std::uint64_t>(config.limits.connections, partitions / 2 + 1);
  return fmt::format(
      "there are {} partitions, and with a limit of {} open files no more than {} can be served: "
      "raise the limit (LimitNOFILE, ulimit -n) to {} at least",
      partitions, around.open_files_max, possible, kFilesReserved + partitions + connections);
}

}  // namespace mq::broker
