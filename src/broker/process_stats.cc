#include "broker/process_stats.h"

#include <unistd.h>

#include <array>
#include <string>

#include "base/strings.h"

namespace mq::broker {
namespace {

/// The start of a file of /proc, whose size says nothing.
std::string read_start(base::FileSystem& files, const std::string& path) {
  auto file = files.open(path, base::OpenMode::read);
  if (!file) return {};
  std::array<std::byte, 1024> bytes;
  const auto got = (*file)->read_at(bytes, 0);
  return got ? std::string(base::as_text(base::Bytes(bytes).first(*got))) : std::string();
}

std::uint64_t number(const std::vector<std::string_view>& fields, std::size_t index) {
  return index < fields.size() ? base::parse_unsigned(fields[index]).value_or(0) : 0;
}

}  // namespace

ProcessStats read_process_stats(base::FileSystem& files) {
  ProcessStats stats;
  const std::string line = read_start(files, "/proc/self/stat");
  // "4711 (name) S ...": the name may hold blanks and brackets, so fields are counted behind it;
  // field 14 of proc(5) is index 11 there.
  const auto name_end = line.rfind(')');
  if (name_end == std::string::npos) return stats;
  const auto fields = base::split(std::string_view(line).substr(name_end + 2), ' ');
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  stats.process_id = static_cast<std::int64_t>(number(base::split(line, ' '), 0));
  stats.cpu_user_ms = static_cast<std::int64_t>(number(fields, 11) * 1000 / ticks);
  stats.cpu_system_ms = static_cast<std::int64_t>(number(fields, 12) * 1000 / ticks);
  stats.resident_bytes = number(fields, 21) * page;
  return stats;
}

}  // namespace mq::broker
