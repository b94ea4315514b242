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

std::optional<std::int32_t> number_of(const Value& object, std::string_view key) {
  const Value* member = object.find(key);
  if (member == nullptr) return std::nullopt;
  const auto* number = member->get_if<std::uint64_t>();
  if (number == nullptr || *number > INT32_MAX) return std::nullopt;
  return static_cast<std::int32_t>(*number);
}

}  // namespace

void write_local_file(const fs::path& path, const std::string& text) {
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

std::string LocalProcess::name() const {
  return is_zookeeper() ? "ZooKeeper" : fmt::format("broker {}", broker);
}

fs::path LocalProcess::config() const {
  return folder / (is_zookeeper() ? "zoo.cfg" : "broker.toml");
}

fs::path LocalProcess::log() const {
  return folder / (is_zookeeper() ? "zookeeper.log" : "broker.log");
}

bool LocalProcess::running() const {
  if (process_id <= 0) return false;
  const auto process = fs::path("/proc") / std::to_string(process_id);
  return read_file(process / "cmdline").find(config().string()) != std::string::npos;
}

void LocalProcess::make_folder() const {
  std::error_code error;
  fs::create_directories(data(), error);
  if (error) throw_unwritable(data(), error.message());
  fs::permissions(folder, fs::perms::owner_all, error);
}

std::string LocalProcess::log_tail() const {
  std::ifstream file(log());
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > 5) lines.pop_front();
  }
  return fmt::format("{}", fmt::join(lines, "\n        "));
}

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

LocalProcess LocalState::process(std::int32_t broker, fs::path folder) {
  LocalProcess process;
  process.broker = broker;
  process.folder = std::move(folder);
  return process;
}

std::int32_t LocalState::cluster_size() const {
  std::int32_t count = 0;
  std::error_code error;
  while (fs::exists(broker(count + 1).folder, error)) ++count;
  return count;
}

std::vector<LocalProcess> LocalState::running() const {
  std::vector<LocalProcess> found;
  const auto parsed = parse_json(read_file(folder_ / "local.json"));
  if (!parsed.value) return found;
  const Value* list = parsed.value->find("processes");
  const auto* recorded = list == nullptr ? nullptr : list->get_if<Value::Array>();
  if (recorded == nullptr) return found;
  const bool several = recorded->size() > 1;
  for (const Value& one : *recorded) {
    const auto broker = number_of(one, "broker");
    const auto process_id = number_of(one, "process_id");
    const Value* address = one.find("address");
    const auto* text = address == nullptr ? nullptr : address->get_if<std::string>();
    if (!broker || !process_id || text == nullptr) continue;
    LocalProcess candidate = *broker == 0 ? zookeeper()
                             : several    ? this->broker(*broker)
                                          : single();
    candidate.process_id = *process_id;
    candidate.address = *text;
    if (candidate.running()) found.push_back(std::move(candidate));
  }
  return found;
}

void LocalState::record(const std::vector<LocalProcess>& processes) const {
  Value list = Value::array();
  for (const auto& one : processes)
    list.add(Value::object()
                 .set("broker", one.broker)
                 .set("process_id", one.process_id)
                 .set("address", one.address));
  write_local_file(folder_ / "local.json",
                   to_json(Value::object().set("processes", std::move(list))) + "\n");
}

void LocalState::forget() const {
  std::error_code ignored;
  fs::remove(folder_ / "local.json", ignored);
}

std::uint64_t LocalState::data_bytes() const {
  std::uint64_t sum = 0;
  std::error_code error;
  for (auto at = fs::recursive_directory_iterator(folder_, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) sum += at->file_size(ignored);
  }
  return sum;
}

}  // namespace mq::mqctl
