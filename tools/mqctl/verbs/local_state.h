#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "mqctl/cli/context.h"

namespace mq::mqctl {

/// One process of a local cluster, with a folder of its own: configuration, data, log.
struct LocalProcess {
  std::int32_t broker = -1;  ///< its id; 0: ZooKeeper
  std::filesystem::path folder;
  std::int32_t process_id = 0;
  std::string address;

  [[nodiscard]] bool is_zookeeper() const noexcept { return broker == 0; }
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::filesystem::path config() const;
  [[nodiscard]] std::filesystem::path data() const { return folder / "data"; }
  [[nodiscard]] std::filesystem::path log() const;
  /// Its process is there and is this folder's: a number that another process has got meanwhile is
  /// not taken for it.
  [[nodiscard]] bool running() const;
  /// Makes the folder, for this user only. Throws Failed.
  void make_folder() const;
  /// The last lines of its log, indented.
  [[nodiscard]] std::string log_tail() const;
};

/// The folder of what `mqctl local up` starts and who runs there: one broker in the folder itself,
/// or with -n a ZooKeeper and several brokers below `cluster`. $XDG_STATE_HOME/mq, else
/// ~/.local/state/mq.
class LocalState {
 public:
  /// Throws Failed without a home directory.
  explicit LocalState(const Console& console);
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  [[nodiscard]] LocalProcess single() const { return process(1, folder_); }
  [[nodiscard]] LocalProcess zookeeper() const { return process(0, cluster() / "zookeeper"); }
  [[nodiscard]] LocalProcess broker(std::int32_t id) const {
    return process(id, cluster() / ("broker-" + std::to_string(id)));
  }
  [[nodiscard]] std::filesystem::path cluster() const { return folder_ / "cluster"; }

  /// How many brokers the cluster has had.
  [[nodiscard]] std::int32_t cluster_size() const;
  /// What was recorded and still runs, ZooKeeper first.
  [[nodiscard]] std::vector<LocalProcess> running() const;
  void record(const std::vector<LocalProcess>& processes) const;
  void forget() const;
  [[nodiscard]] std::uint64_t data_bytes() const;

 private:
  static LocalProcess process(std::int32_t broker, std::filesystem::path folder);
  std::filesystem::path folder_;
};

/// Replaces the file as a whole, so that nobody reads half of it. Throws Failed.
void write_local_file(const std::filesystem::path& path, const std::string& text);

}  // namespace mq::mqctl
