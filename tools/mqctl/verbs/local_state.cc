#include "mqctl/verbs/local_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>
#include <iterator>

#include "mqctl/cli/value.h"

namespace mq::mqctl {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

[[noreturn]] void throw_unwritable(const fs::path& path, const std::string& why) {
  throw Failed(make_failure(protocol::WireError::file_unreadable,
                            fmt::format("{} cannot be written", path.string()), why));
}

/// Replaces the file as a whole, so that nobody reads half of it.
void write_file(const fs::path& path, const std::string& text) {
  const fs::path temporary = path.string() + ".new";
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  std::error_code error;
  if (!file)
    throw_unwritable(path, "writing failed");
  else
    fs::rename(temporary, path, error);
  if (error) throw_unwritable(path, error.message());
}

}  // namespace

LocalState::LocalState(const Console& console) {
  if (const auto state = console.variable("XDG_STATE_HOME")) {
    folder_ = fs::path(*state) / "mq";
  } else if (const auto home = console.variable("HOME")) {
    folder_ = fs::path(*home) / ".local" / "state" / "mq";
  } else {
    throw Failed(usage_failure("there is no place for the local broker",
                               "neither XDG_STATE_HOME nor HOME is set"));
  }
}

void LocalState::make_folder() const {
  std::error_code error;
  fs::create_directories(data(), error);
  if (error) throw_unwritable(data(), error.message());
  fs::permissions(folder_, fs::perms::owner_all, error);
}

bool LocalState::is_ours(std::int32_t process_id) const {
  const auto process = fs::path("/proc") / std::to_string(process_id);
  return read_file(process / "cmdline").find(config().string()) != std::string::npos;
}

std::optional<LocalBroker> LocalState::running() const {
  const auto parsed = parse_json(read_file(folder_ / "local.json"));
  if (!parsed.value) return std::nullopt;
  const Value* process_id = parsed.value->find("process_id");
  const Value* address = parsed.value->find("address");
  if (process_id == nullptr || address == nullptr) return std::nullopt;
  const auto* number = process_id->get_if<std::uint64_t>();
  const auto* text = address->get_if<std::string>();
  if (number == nullptr || text == nullptr || *number == 0 || *number > INT32_MAX)
    return std::nullopt;
  const LocalBroker broker{static_cast<std::int32_t>(*number), *text};
  return is_ours(broker.process_id) ? std::optional(broker) : std::nullopt;
}

void LocalState::record(const LocalBroker& broker) const {
  write_file(
      folder_ / "local.json",
      to_json(Value::object().set("process_id", broker.process_id).set("address", broker.address)) +
          "\n");
}

void LocalState::forget() const {
  std::error_code ignored;
  fs::remove(folder_ / "local.json", ignored);
}

void LocalState::write_config(const std::string& address) const {
  write_file(config(), fmt::format("# written by mqctl local up\n"
                                   "[broker]\nid = 1\nmetadata = \"local\"\n"
                                   "[[storage.disk]]\npath = {}\n"
                                   "[listener.clients]\nbind = \"{}\"\n",
                                   to_json(data().string()), address));
}

std::string LocalState::log_tail() const {
  std::ifstream file(log());
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > 5) lines.pop_front();
  }
  return fmt::format("{}", fmt::join(lines, "\n        "));
}

std::uint64_t LocalState::data_bytes() const {
  std::uint64_t sum = 0;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(data(), error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) sum += at->file_size(ignored);
  }
  return sum;
}

}  // namespace mq::mqctl
