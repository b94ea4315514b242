#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// The broker that `mqctl local up` started.
struct LocalBroker {
  std::int32_t process_id = 0;
  std::string address;
};

/// The folder of the local broker: its configuration, its data, its log and who runs it.
/// $XDG_STATE_HOME/mq, else ~/.local/state/mq.
class LocalState {
 public:
  /// Throws Failed without a home directory.
  explicit LocalState(const Console& console);
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] std::filesystem::path config() const { return folder_ / "broker.toml"; }
  [[nodiscard]] std::filesystem::path data() const { return folder_ / "data"; }
  [[nodiscard]] std::filesystem::path log() const { return folder_ / "broker.log"; }

  /// Makes the folder, for this user only. Throws Failed.
  void make_folder() const;
  /// The recorded broker if its process is still there and is this folder's broker: a number that
  /// another process has got meanwhile is not taken for it.
  [[nodiscard]] std::optional<LocalBroker> running() const;
  void record(const LocalBroker& broker) const;
  void forget() const;
  void write_config(const std::string& address) const;
  /// The last lines of the broker's log, indented.
  [[nodiscard]] std::string log_tail() const;
  [[nodiscard]] std::uint64_t data_bytes() const;

 private:
  [[nodiscard]] bool is_ours(std::int32_t process_id) const;
  std::filesystem::path folder_;
};

}  // namespace mq::mqctl
