#include "broker/daemon.h"

#include <csignal>
#include <cstdlib>

#include "base/log.h"
#include "base/real/runtime_thread.h"
#include "broker/exit_status.h"
#include "broker/start_checks.h"
#include "broker/version.h"
#include "metadata/sqlite_store.h"
#include "metadata/zookeeper_store.h"

namespace mq::broker {
namespace {

/// One worker leaves the second of two cores to the clients and the kernel.
std::size_t workers_of(const config::BrokerConfig& config) {
  if (config.workers > 0) return config.workers;
  const std::size_t cores = base::available_cores();
  return cores <= 2 ? 1 : cores;
}

/// Leaves without destructors, whose threads may hang.
[[noreturn]] void leave_now(int status) {
  base::flush_log();
  std::_Exit(status);
}

int exit_status_of(const protocol::Status& refusal) {
  const bool configuration = refusal.error() == protocol::WireError::wrong_directory ||
                             refusal.error() == protocol::WireError::config_invalid;
  return configuration ? kExitConfig : kExitFailed;
}

}  // namespace

Daemon::Daemon(config::LoadedConfig loaded, std::string config_file)
    : config_(std::move(loaded.config)),
      config_file_(std::move(config_file)),
      warnings_(std::move(loaded.warnings)),
      settings_(std::move(loaded.settings)) {
  const std::size_t workers = workers_of(config_);
  for (std::size_t i = 0; i < workers; ++i)
    runtimes_.push_back(std::make_unique<base::RealRuntime>());
  network_ = std::make_unique<base::AsioNetwork>(*runtimes_.front());
  metadata_executor_ = std::make_unique<base::ThreadDiskExecutor>(1, "mq-metadata");
  for (std::size_t i = 0; i < config_.disks.size(); ++i)
    disk_executors_.push_back(std::make_unique<DiskExecutors>());
  stop_asked_list_ = std::make_unique<base::WaitList>(*runtimes_.front());
}

Daemon::~Daemon() = default;

BrokerParts Daemon::parts() {
  raise_open_files_limit();
  const std::string boot_id = read_boot_id(files_, std::getenv("MQ_BOOT_ID"));
  const auto around = look_around();
  for (auto& line : start_warnings(config_, around)) warnings_.push_back(std::move(line));
  if (boot_id.empty()) {
    warnings_.emplace_back(
        "the machine's boot id is unknown (MQ_BOOT_ID and /proc/sys/kernel/random/boot_id): a "
        "power cut cannot be told from a kill");
  }
  for (const auto& line : warnings_) base::log_warning("broker", "{}", line);

  BrokerParts parts;
  parts.config = config_;
  parts.limits = limits_of(config_, runtimes_.size());
  parts.limits.connections = connections_possible(config_, around);
  parts.limits.partitions = partitions_possible(config_, around);
  parts.why_not_served = [this, around](std::size_t partitions) {
    return broker::why_not_served(config_, around, partitions);
  };
  for (const auto& runtime : runtimes_) parts.workers.push_back(runtime.get());
  parts.network = network_.get();
  parts.move_stream = [this](std::unique_ptr<base::Stream> stream, std::size_t worker) {
    return base::move_stream(std::move(stream), *runtimes_[worker]);
  };
  parts.files = &files_;
  parts.disk_executor = &disk_executors_.front()->work;
  for (std::size_t i = 1; i < disk_executors_.size(); ++i)
    parts.more_disk_executors.push_back(&disk_executors_[i]->work);
  for (const auto& executors : disk_executors_)
    parts.disk_threads.emplace_back(executors->work, executors->cold_reads, executors->appends,
                                    executors->syncs);
  parts.counters = &counters_;
  parts.open_metadata = [this](std::string directory) {
    return open_metadata(std::move(directory));
  };
  parts.metadata_trouble = &metadata_trouble_;
  parts.boot_id = boot_id;
  parts.mount_ids = read_mount_ids(files_, std::getenv("MQ_MOUNTS"), config_.disks);
  parts.warnings = warnings_;
  parts.settings = settings_;
  parts.on_status = [this](const std::string& text) { on_status(text); };
  parts.on_id_taken = [this] { on_id_taken(); };
  return parts;
}

asio::awaitable<base::Result<std::unique_ptr<metadata::MetadataStore>>> Daemon::open_metadata(
    std::string directory) {
  if (config_.zookeeper.servers.empty()) {
    return metadata::open_sqlite_store(directory + "/metadata.db", *metadata_executor_,
                                       *runtimes_.front());
  }
  metadata::ZooKeeperOptions options;
  options.servers = config_.zookeeper.servers;
  options.chroot = config_.zookeeper.chroot;
  return metadata::open_zookeeper_store(std::move(options), *runtimes_.front(), metadata_trouble_);
}

int Daemon::run() {
  broker_ = std::make_unique<Broker>(parts());
  auto& home = *runtimes_.front();
  signals_ = std::make_unique<base::StopSignals>(home, [this](int signal) { on_signal(signal); });
  home.spawn("broker", serve());
  {
    std::vector<std::unique_ptr<base::RuntimeThread>> threads;
    for (std::size_t i = 1; i < runtimes_.size(); ++i)
      threads.push_back(
          std::make_unique<base::RuntimeThread>(*runtimes_[i], fmt::format("mq-worker-{}", i)));
    home.run();
  }
  broker_.reset();
  base::flush_log();
  return exit_status_;
}

asio::awaitable<void> Daemon::serve() {
  auto& home = *runtimes_.front();
  const auto began = home.now();
  const auto started = co_await broker_->start();
  if (started) {
    ready_ = true;
    log_ready(home.now() - began);
    while (!stop_asked_) co_await stop_asked_list_->wait();
    manager_.stopping();
  } else {
    const auto& refusal = broker_->refusal();
    base::log_error("broker", "{} ({})", refusal.text, protocol::error_info(refusal.error()).name);
    exit_status_ = exit_status_of(refusal);
  }
  const auto stopped = co_await broker_->stop();
  if (!stopped) {
    base::log_error("broker", "stopped without a clean end; the next start looks at the logs");
    leave_now(kExitFailed);
  }
  if (started) base::log_info("broker", "stopped");
  signals_->cancel();
  home.stop();
}

std::string Daemon::recovery_text(const storage::RecoverySummary& recovery) {
  if (recovery.clean)
    return fmt::format(" (after a clean stop, {} bytes of journal read)",
                       recovery.journal_bytes_read);
  if (recovery.bytes_scanned + recovery.journal_bytes_read == 0) return {};
  return fmt::format(" ({} bytes of log read, {} of journal, {} cut off torn tails)",
                     recovery.bytes_scanned, recovery.journal_bytes_read, recovery.bytes_cut);
}

void Daemon::log_ready(base::Duration took) const {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
  const auto& recovery = broker_->recovery();
  const std::string bound = broker_->bound().text();
  const std::string advertised = broker_->advertised().text();
  base::log_info("broker",
                 "mqbroker {} ready in {} ms: broker {} of cluster {}, {} (bound to {}), config "
                 "{}, data {}, {} "
                 "partitions{}, {} workers",
                 kVersion, ms, config_.id, broker_->core().cluster_id.hex(), advertised, bound,
                 config_file_, fmt::join(config_.disks, ", "), recovery.partitions,
                 recovery_text(recovery), runtimes_.size());
  ServiceManager manager;
  manager.ready(fmt::format("serving {}, {} partitions", advertised, recovery.partitions));
}

void Daemon::on_signal(int signal) {
  const char* name = signal == SIGTERM ? "SIGTERM" : "SIGINT";
  if (stop_asked_) {
    base::log_warning("broker", "{} again: ending at once; the next start looks at the logs", name);
    leave_now(128 + signal);
  }
  stop_asked_ = true;
  if (!ready_) {
    // Recovery cannot be interrupted half way, and there is nothing to lose.
    base::log_info("broker", "{} during the start: ending", name);
    leave_now(kExitOk);
  }
  base::log_info("broker", "{}: stopping", name);
  stop_asked_list_->notify_all();
}

void Daemon::on_id_taken() {
  exit_status_ = kExitFailed;
  stop_asked_ = true;
  base::log_error("broker", "stopping: two processes must not serve as one broker");
  stop_asked_list_->notify_all();
}

void Daemon::on_status(const std::string& text) {
  if (text == last_status_) return;
  last_status_ = text;
  manager_.working(text);
}

}  // namespace mq::broker
