#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/real/asio_network.h"
#include "base/real/posix_file_system.h"
#include "base/real/real_runtime.h"
#include "base/real/stop_signals.h"
#include "base/real/thread_disk_executor.h"
#include "base/wait_list.h"
#include "broker/broker.h"
#include "broker/service_manager.h"
#include "storage/cold_reads.h"

namespace mq::broker {

/// A broker on the machine's own threads, disk and network: what `mqbroker --config FILE` runs.
///
/// The calling thread serves the first worker. SIGTERM or SIGINT stops in order; the second one
/// ends the process at once, which costs the next start a look at the newest segments.
class Daemon {
 public:
  /// `loaded` has no errors.
  Daemon(config::LoadedConfig loaded, std::string config_file);
  ~Daemon();

  /// Until it has stopped. The exit status of the process.
  int run();

 private:
  BrokerParts parts();
  asio::awaitable<base::Result<std::unique_ptr<metadata::MetadataStore>>> open_metadata(
      std::string directory);
  asio::awaitable<void> serve();
  static std::string recovery_text(const storage::RecoverySummary& recovery);
  void log_ready(base::Duration took) const;
  void on_signal(int signal);
  void on_id_taken();
  void on_status(const std::string& text);

  config::BrokerConfig config_;
  std::string config_file_;
  std::vector<std::string> warnings_;
  std::vector<config::EffectiveSetting> settings_;
  base::Counters counters_;
  base::PosixFileSystem files_;
  std::vector<std::unique_ptr<base::RealRuntime>> runtimes_;
  std::unique_ptr<base::AsioNetwork> network_;
  // Declared behind the runtimes, which their work resumes on, and joined before them.
  std::unique_ptr<base::ThreadDiskExecutor> metadata_executor_;
  std::string metadata_trouble_;
  struct DiskExecutors {
    base::ThreadDiskExecutor work{kWorkThreads};
    base::ThreadDiskExecutor cold_reads{storage::ColdReads::kTurnsMax, "mq-read"};
    base::ThreadDiskExecutor appends{4, "mq-append"};
    base::ThreadDiskExecutor syncs{8, "mq-sync"};
  };
  /// The journal, the flusher, write-behind, and one for all that is short.
  static constexpr std::size_t kWorkThreads = 4;
  std::vector<std::unique_ptr<DiskExecutors>> disk_executors_;  // one per disk
  ServiceManager manager_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<base::StopSignals> signals_;
  std::unique_ptr<base::WaitList> stop_asked_list_;
  bool ready_ = false;
  bool stop_asked_ = false;
  std::string last_status_;
  int exit_status_ = 0;
};

}  // namespace mq::broker
