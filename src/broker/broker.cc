#include "broker/broker.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "base/units.h"
#include "broker/hop.h"
#include "broker/reserve_backed_store.h"
#include "broker/worker.h"
#include "metadata/cluster_identity.h"
#include "metadata/znode_layout.h"
#include "storage/registration_mark.h"
#include "storage/space_reserve.h"

namespace mq::broker {
namespace {

constexpr std::int32_t kReplicasMax = 7;
constexpr auto kProgressLogged = std::chrono::seconds(10);
constexpr auto kWaitToldAgain = std::chrono::seconds(1);
constexpr auto kWaitForLock = std::chrono::seconds(5);
constexpr auto kLockAgain = std::chrono::milliseconds(20);
constexpr auto kWaitForPort = std::chrono::seconds(2);

using base::Error;
using base::Result;
using protocol::WireError;

WireError directory_error(Error error) {
  if (error == make_error_code(storage::StorageErrc::locked)) return WireError::directory_locked;
  if (error == make_error_code(storage::StorageErrc::wrong_directory) ||
      error == make_error_code(storage::StorageErrc::unknown_format_version)) {
    return WireError::wrong_directory;
  }
  return WireError::file_unreadable;
}

using LastRegistration = std::optional<metadata::BrokerEpochValue>;

/// As the metadata knows it; nothing: it does not, so that nothing is compared. An error: it does
/// not answer. A mark that was made without knowing would call the disk an older copy at the next
/// start, if this process does not get so far as to register.
asio::awaitable<Result<LastRegistration>> last_registration(metadata::MetadataStore& store,
                                                            model::BrokerId broker) {
  LastRegistration last;
  const auto node = co_await store.get(metadata::layout::broker_epoch(broker));
  if (!node && node.error() != make_error_code(metadata::MetadataErrc::not_found))
    co_return node.error();
  if (!node) co_return last;
  auto value = metadata::decode_broker_epoch(node->value);
  if (value) last = *std::move(value);
  co_return last;
}

/// REC-11. Not being able to is no reason not to start.
void note_registration(base::FileSystem& files, const std::string& path,
                       const base::Uuid& incarnation, const std::optional<base::Uuid>& last) {
  const auto noted = storage::note_registration(files, path, incarnation, last);
  if (!noted)
    base::log_warning("broker", "data directory {}: its registration cannot be noted: {}", path,
                      noted.error().message());
}

/// For those that are of this cluster: others are refused as they are (REC-7). New ones have to be
/// made first.
void note_registrations(base::FileSystem& files,
                        const std::vector<storage::DataDirectory>& directories,
                        const base::Uuid& cluster, const base::Uuid& incarnation,
                        const std::optional<metadata::BrokerEpochValue>& last) {
  const bool ours = std::ranges::all_of(directories, [&](const auto& directory) {
    return !directory.identity || directory.identity->cluster == cluster;
  });
  if (!ours) return;
  for (const auto& directory : directories) {
    if (!directory.identity) continue;
    // One that was away in that run knows nothing of it.
    const bool had_it = last && std::ranges::count(last->disks, directory.identity->disk) > 0;
    note_registration(files, directory.path, incarnation,
                      had_it ? std::optional(last->incarnation) : std::nullopt);
  }
}

/// A process that was killed holds its locks until the last of its threads has ended.
asio::awaitable<Result<storage::DataDirectory>> lock_directory(const BrokerParts& parts,
                                                               base::Runtime& home,
                                                               std::string path,
                                                               storage::Refusal& refusal) {
  const auto until = home.now() + kWaitForLock;
  bool told = false;
  while (true) {
    auto directory = storage::open_data_directory(*parts.files, path, parts.config.id, refusal);
    const bool held =
        !directory && directory.error() == make_error_code(storage::StorageErrc::locked);
    if (!held || home.now() >= until) co_return directory;
    if (!std::exchange(told, true))
      base::log_warning("broker", "{}: waiting for that process to end, for {} s at most",
                        refusal.text,
                        std::chrono::duration_cast<std::chrono::seconds>(kWaitForLock).count());
    co_await home.sleep_until(std::min(home.now() + kLockAgain, until));
  }
}

}  // namespace

Broker::Broker(BrokerParts parts)
    : parts_(std::move(parts)),
      core_(*parts_.counters, *parts_.files),
      home_(*parts_.workers.front()),
      tasks_(home_) {
  MQ_CHECK(!parts_.config.disks.empty(), "no disk");
  core_.limits = parts_.limits;
  core_.rack = parts_.config.rack;
  core_.catch_up.set_rate(core_.limits.catch_up_bytes_per_second);
  core_.id = parts_.config.id;
  core_.metadata_kind = parts_.config.metadata;
  core_.topic_defaults = parts_.config.topic_defaults;
  core_.warnings = parts_.warnings;
  core_.settings = parts_.settings;
  core_.home = &home_;
  core_.network = parts_.network;
  core_.move_stream = parts_.move_stream;
  for (std::size_t i = 0; i < parts_.workers.size(); ++i)
    core_.workers.push_back(std::make_unique<Worker>(core_, i, *parts_.workers[i]));
}

Broker::~Broker() = default;

asio::awaitable<Result<void>> Broker::start() {
  core_.started_at = home_.now();
  incarnation_ = new_uuid();
  MQ_CO_TRY_VOID(co_await open_disks());
  MQ_CO_TRY_VOID(co_await join_cluster());
  MQ_CO_TRY_VOID(co_await recover());
  disks_->start();
  started_ = true;
  co_return Result<void>{};
}

/// Locks every data directory, in order. One that the system cannot read is left out, but for the
/// first; one that is somebody else's ends the start.
asio::awaitable<Result<std::vector<storage::DataDirectory>>> Broker::lock_directories() {
  std::vector<storage::DataDirectory> directories;
  for (const auto& path : parts_.config.disks) {
    storage::Refusal refusal;
    auto directory = co_await lock_directory(parts_, home_, path, refusal);
    if (directory) {
      directories.push_back(*std::move(directory));
      unreadable_.emplace_back();
      continue;
    }
    const auto number = directory_error(directory.error());
    if (directories.empty() || number != WireError::file_unreadable)
      co_return refuse(directory.error(), number, refusal.text);
    base::log_error("broker", "{}; its partitions are offline", refusal.text);
    directories.emplace_back().path = path;
    unreadable_.push_back(refusal.text);
  }
  co_return directories;
}

asio::awaitable<Result<void>> Broker::open_disks() {
  status("opening the data directories");
  MQ_CO_TRY(auto directories, co_await lock_directories());
  // The port is tried before anything is written.
  MQ_CO_TRY_VOID(co_await listen());

  const std::string path = directories.front().path;
  MQ_CO_TRY_VOID(co_await open_metadata(path));
  std::optional<base::Uuid> new_cluster;
  if (!directories.front().identity) new_cluster = new_uuid();
  const auto cluster = co_await metadata::load_cluster_identity(*metadata_, new_cluster);
  if (!cluster) {
    co_return refuse(cluster.error(), WireError::metadata_unavailable,
                     fmt::format("the metadata store in {} does not name its cluster ({}), but the "
                                 "directory {} belongs to one{}",
                                 metadata_place(path), cluster.error().message(), path,
                                 metadata_is_shared() ? "; correct the path in broker.metadata, or "
                                                        "give the broker another directory"
                                                      : ""));
  }
  core_.cluster_id = cluster->id;
  const auto last = co_await last_registration(*metadata_, parts_.config.id);
  if (!last) {
    co_return refuse(
        last.error(), WireError::metadata_unavailable,
        fmt::format("the metadata store in {} does not say what broker {} was last: {}",
                    metadata_place(path), parts_.config.id, last.error().message()));
  }
  note_registrations(*parts_.files, directories, core_.cluster_id, incarnation_, *last);
  std::vector<std::string> fresh;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    if (!directories[i].identity && unreadable_[i].empty()) fresh.push_back(directories[i].path);
  }
  MQ_CO_TRY_VOID(adopt_directories(std::move(directories)));
  for (const auto& made : fresh) note_registration(*parts_.files, made, incarnation_, std::nullopt);
  co_return Result<void>{};
}

bool Broker::metadata_is_shared() const { return !parts_.config.zookeeper.servers.empty(); }

std::string Broker::metadata_place(const std::string& directory) const {
  return metadata_is_shared() ? parts_.config.metadata : directory;
}

asio::awaitable<Result<void>> Broker::open_metadata(std::string directory) {
  return metadata_is_shared() ? open_shared_metadata(std::move(directory))
                              : open_local_metadata(std::move(directory));
}

asio::awaitable<Result<void>> Broker::open_shared_metadata(std::string directory) {
  status(fmt::format("waiting for {}", parts_.config.metadata));
  base::log_info("broker", "connecting to {}", parts_.config.metadata);
  auto store = co_await parts_.open_metadata(std::move(directory));
  if (store) {
    metadata_ = *std::move(store);
    co_return Result<void>{};
  }
  const std::string why = parts_.metadata_trouble && !parts_.metadata_trouble->empty()
                              ? *parts_.metadata_trouble
                              : store.error().message();
  co_return refuse(
      store.error(), WireError::metadata_unavailable,
      fmt::format("{}; broker.metadata is \"{}\": start ZooKeeper there, or correct it", why,
                  parts_.config.metadata));
}

/// On a disk without a free byte or inode the reserve has to do.
asio::awaitable<Result<void>> Broker::open_local_metadata(std::string directory) {
  int given = 0;
  const auto work = [&] { given = storage::make_room_to_work(*parts_.files, directory); };
  co_await parts_.disk_executor->run(work);
  if (given > 0) {
    base::log_warning("broker",
                      "{} is full: {} slice(s) of its reserve are given up for this start",
                      directory, given);
  }
  auto store = co_await parts_.open_metadata(directory);
  if (!store) {
    co_return refuse(store.error(), WireError::metadata_unavailable,
                     fmt::format("the metadata store in {} cannot be opened: {}", directory,
                                 store.error().message()));
  }
  metadata_ = std::make_unique<ReserveBackedStore>(*std::move(store), *parts_.files,
                                                   *parts_.disk_executor, directory);
  co_return Result<void>{};
}

Result<void> Broker::adopt_directories(std::vector<storage::DataDirectory> directories) {
  // REC-7: nothing is written into any of them while one is of another cluster.
  for (const auto& directory : directories) {
    if (!directory.identity || directory.identity->cluster == core_.cluster_id) continue;
    return refuse(
        make_error_code(storage::StorageErrc::wrong_directory), WireError::wrong_directory,
        fmt::format("data directory {} belongs to cluster {}, this "
                    "broker is of cluster {}",
                    directory.path, directory.identity->cluster.hex(), core_.cluster_id.hex()));
  }
  std::vector<storage::DiskGroup::Member> members;
  for (std::size_t i = 0; i < directories.size(); ++i) {
    auto& member = members.emplace_back();
    member.path = directories[i].path;
    member.reason = unreadable_[i];
    member.executor = i == 0 || i > parts_.more_disk_executors.size()
                          ? parts_.disk_executor
                          : parts_.more_disk_executors[i - 1];
    if (!member.reason.empty()) continue;
    storage::DiskConfig config;
    config.cluster = core_.cluster_id;
    config.broker = parts_.config.id;
    config.incarnation = incarnation_;
    config.boot_id = parts_.boot_id;
    if (i < parts_.mount_ids.size()) config.mount_id = parts_.mount_ids[i];
    config.clock = &core_.clock;
    config.tail_cache_bytes /= directories.size();
    config.read_ahead_bytes = std::max<std::uint64_t>(config.read_ahead_bytes / directories.size(),
                                                      std::uint64_t{16} << 20);
    config.dirty_bytes_max = parts_.config.dirty_bytes_max;
    config.scrub_bytes_per_second = parts_.config.scrub_bytes_per_second;
    if (i < parts_.config.journals.size()) config.journal_path = parts_.config.journals[i];
    const auto threads = i < parts_.disk_threads.size() ? parts_.disk_threads[i]
                                                        : storage::DiskThreads(*member.executor);
    storage::Refusal refusal;
    auto disk = storage::Disk::open(std::move(directories[i]), std::move(config), *parts_.files,
                                    threads, home_, *parts_.counters, refusal);
    if (disk) {
      member.disk = *std::move(disk);
      continue;
    }
    const auto number = directory_error(disk.error());
    if (i == 0 || number != WireError::file_unreadable)
      return refuse(disk.error(), number, refusal.text);
    member.reason = refusal.text;
  }
  disks_ = std::make_unique<storage::DiskGroup>(std::move(members), *parts_.files, home_);
  core_.disks = disks_.get();
  return {};
}

/// A process that was killed gives up its lock a moment before its port.
asio::awaitable<Result<void>> Broker::listen() {
  const auto& bind = parts_.config.listener.bind;
  const auto is_used = [](const Error& error) {
    return error == make_error_code(base::BaseErrc::address_in_use);
  };
  const auto until = home_.now() + kWaitForPort;
  auto acceptor = parts_.network->listen(bind);
  while (!acceptor && is_used(acceptor.error()) && home_.now() < until) {
    co_await home_.sleep_for(kLockAgain);
    acceptor = parts_.network->listen(bind);
  }
  if (!acceptor) {
    const bool used = is_used(acceptor.error());
    const bool foreign = acceptor.error() == make_error_code(base::BaseErrc::not_found);
    const std::string why = used      ? "another process listens there"
                            : foreign ? "it is no address of this machine"
                                      : acceptor.error().message();
    co_return refuse(acceptor.error(), used ? WireError::port_in_use : WireError::config_invalid,
                     fmt::format("cannot listen on {}: {}", bind.text(), why));
  }
  listener_ = std::make_unique<Listener>(core_, *std::move(acceptor));
  core_.advertised = parts_.config.listener.advertised;
  if (core_.advertised.port == 0) core_.advertised.port = listener_->local().port;
  co_return Result<void>();
}

MembershipConfig Broker::membership_config() const {
  MembershipConfig config;
  config.member.broker = parts_.config.id;
  config.member.incarnation = incarnation_;
  config.member.disks = disks_->disks();
  config.member.advertised = core_.advertised;
  config.member.rack = parts_.config.rack;
  config.controller.broker = parts_.config.id;
  config.controller.cluster_id = core_.cluster_id;
  config.controller.advertised = core_.advertised;
  config.controller.topic_defaults = parts_.config.topic_defaults;
  config.controller.default_partitions = parts_.config.default_partitions;
  config.controller.partitions_max = parts_.limits.partitions;
  config.controller.default_replicas = parts_.config.default_replicas;
  config.controller.default_min_isr = parts_.config.default_min_isr;
  config.controller.replicas_max = kReplicasMax;
  config.controller.network = parts_.network;
  config.controller.balance.on = parts_.config.leader_balance_after > base::Duration();
  config.controller.balance.after = parts_.config.leader_balance_after;
  config.controller.balance.limit_percent = parts_.config.leader_balance_limit;
  return config;
}

void Broker::make_isr_keeper() {
  replication::IsrKeeper::Config config;
  config.self = core_.id;
  config.look_every = core_.limits.isr.lag_time / 4;
  std::vector<replication::LedPartitions> led;
  for (const auto& worker : core_.workers)
    led.push_back({&worker->runtime(), &worker->partitions()});
  isr_keeper_ = std::make_unique<replication::IsrKeeper>(
      config, home_, membership_->controller_link(), membership_->view(), std::move(led),
      [this] { return membership_->epoch(); }, [this] { return core_.has_lease(home_.now()); });
  core_.isr_keeper = isr_keeper_.get();
}

asio::awaitable<Result<void>> Broker::join_cluster() {
  status("registering the broker");
  membership_ =
      std::make_unique<Membership>(membership_config(), core_, *metadata_, *parts_.network);
  core_.membership = membership_.get();
  make_isr_keeper();
  keeper_ = std::make_unique<ReplicaKeeper>(core_, membership_->view(), membership_->reporter());
  core_.replica_keeper = keeper_.get();
  keeper_->on_applied([this](const metadata::ClusterImage& image) {
    core_.put_in_force(image);
    membership_->puller().applied(image.version());
  });
  membership_->view().on_image([this](const metadata::ImagePtr& image) {
    core_.adopt(image);
    keeper_->wake();
  });
  auto waiting = [this](const std::string& text) { status(text); };
  membership_->on_id_taken(parts_.on_id_taken);
  const auto started = co_await membership_->start(std::move(waiting));
  if (!started) {
    co_return refuse(started.error(), WireError::metadata_unavailable,
                     fmt::format("the broker cannot be registered: {}", started.error().message()));
  }
  const auto image = co_await membership_->first_image();
  if (!image) {
    co_return refuse(make_error_code(base::BaseErrc::closed), WireError::shutting_down,
                     "stopped before there was a cluster image");
  }
  co_return Result<void>{};
}

/// Connections are taken from now on: partitions are served one after the other as they are
/// recovered, and requests for the others are told to come again.
asio::awaitable<Result<void>> Broker::recover() {
  disks_->set_broker_epoch(membership_->epoch().value());
  disks_->on_ready([this](const model::PartitionId& id) {
    if (parts_.on_recovered) parts_.on_recovered(id);
    keeper_->log_ready(id);
  });
  disks_->on_changed([this] { keeper_->look_for_damage(); });
  MQ_CO_TRY_VOID(co_await recover_disks());
  keeper_->recovery_ended();
  co_await serve_recovered();
  if (core_.stopping) {
    co_return refuse(make_error_code(base::BaseErrc::closed), WireError::shutting_down,
                     "stopped before all partitions were served");
  }
  core_.partitions_recovering = 0;
  co_return Result<void>{};
}

asio::awaitable<Result<void>> Broker::recover_disks() {
  const auto image = membership_->view().image();
  auto known = keeper_->known(*image);
  // Running out of descriptors would look like a disk that fails.
  if (const auto why = parts_.why_not_served ? parts_.why_not_served(known.size()) : std::string();
      !why.empty())
    co_return refuse(make_error_code(base::BaseErrc::not_permitted), WireError::config_invalid,
                     why);
  core_.partitions_recovering = static_cast<std::uint32_t>(known.size());
  tasks_.spawn("listener", listener_->run());
  keeper_->start();
  isr_keeper_->start();
  auto progress = [this](const storage::RecoveryProgress& at) { note_progress(at); };
  auto recovered =
      co_await disks_->recover(std::move(known), keeper_->deleting(*image), std::move(progress));
  if (!recovered) {
    const bool wrong = recovered.error() == make_error_code(storage::StorageErrc::wrong_directory);
    co_return refuse(recovered.error(),
                     wrong ? WireError::wrong_directory : WireError::storage_failed,
                     disks_->refusal());
  }
  recovery_ = *std::move(recovered);
  co_return Result<void>{};
}

/// The controller has been told of every log, and what it made of that is in force.
asio::awaitable<void> Broker::serve_recovered() {
  auto& reporter = membership_->reporter();
  co_await keeper_->all_looked_at();
  bool taken = co_await reporter.all_taken(home_.now() + kWaitToldAgain);
  while (!taken && !core_.stopping) {
    status(fmt::format("waiting for the controller to take {} reports: {}", reporter.left(),
                       reporter.trouble()));
    taken = co_await reporter.all_taken(home_.now() + kWaitToldAgain);
  }
  co_await keeper_->applied(reporter.taken_version());
}

void Broker::give_up_start() {
  core_.stopping = true;
  if (membership_) membership_->give_up();
  if (keeper_) keeper_->give_up();
}

void Broker::note_progress(const storage::RecoveryProgress& at) {
  // At least one is left until the last is served.
  const std::size_t left = std::max<std::size_t>(at.partitions - at.partitions_done, 1);
  core_.partitions_recovering = static_cast<std::uint32_t>(left);
  core_.recovery_bytes_read = at.bytes_scanned;
  const std::string text =
      fmt::format("recovering: {} of {} partitions done, {} read", at.partitions_done,
                  at.partitions, base::format_bytes(at.bytes_scanned));
  status(text);
  if (home_.now() - progress_logged_ < kProgressLogged) return;
  if (progress_logged_ != base::TimePoint{}) base::log_info("broker", "{}", text);
  progress_logged_ = home_.now();
}

/// Whether others keep copies of what is kept here.
bool Broker::has_replicated_partitions() const {
  const auto image = core_.image();
  for (const auto& [name, topic] : image->topics()) {
    for (const auto& one : topic->partitions) {
      if (one.replicas.size() > 1 &&
          std::ranges::find(one.replicas, core_.id) != one.replicas.end())
        return true;
    }
  }
  return false;
}

/// While it still serves, so that clients find the new leaders at once; and it leaves every ISR
/// before its followers can miss it.
asio::awaitable<void> Broker::hand_over_partitions() {
  if (!started_ || core_.stopping || !has_replicated_partitions()) co_return;
  status("handing over the partitions");
  const auto deadline = home_.now() + core_.limits.hand_over_timeout;
  const auto version = co_await membership_->hand_over(deadline);
  if (!version) co_return;
  co_await ends_by(home_, deadline, keeper_->applied(*version));
}

asio::awaitable<Result<void>> Broker::stop() {
  co_await hand_over_partitions();
  core_.stopping = true;
  status("stopping");
  if (metadata_) metadata_->shorten_waits();
  const auto now = home_.now();
  // What is under way gets the drain time; the rest only ends what was told to end.
  const auto bound = now + 2 * core_.limits.drain_timeout;
  const bool serving_stopped = co_await ends_by(home_, bound, stop_serving());
  if (!serving_stopped) {
    base::log_error("broker", "what was under way did not end within {} s{}",
                    std::chrono::duration_cast<std::chrono::seconds>(bound - now).count(),
                    metadata_ && !metadata_->trouble().empty() ? ": " + metadata_->trouble() : "");
    co_return make_error_code(base::BaseErrc::timed_out);
  }
  if (disks_) {
    status("flushing");
    const auto disk_bound = home_.now() + core_.limits.disk_stop_timeout;
    const bool disk_stopped = co_await ends_by(home_, disk_bound, stop_disks());
    if (!disk_stopped) {
      base::log_error("broker", "a disk does not answer");
      co_return make_error_code(base::BaseErrc::timed_out);
    }
  }
  if (metadata_) {
    const auto close_bound = home_.now() + core_.limits.drain_timeout;
    const bool closed = co_await ends_by(home_, close_bound, close_metadata());
    if (!closed) co_return make_error_code(base::BaseErrc::timed_out);
  }
  co_return Result<void>{};
}

asio::awaitable<void> Broker::stop_serving() {
  const auto deadline = home_.now() + core_.limits.drain_timeout;
  if (listener_) listener_->close();
  // The next start goes on with a deletion under way.
  if (disks_) disks_->give_up_deletions();
  co_await tasks_.wait();
  if (isr_keeper_) isr_keeper_->give_up();
  if (membership_) co_await membership_->stop_following();
  if (isr_keeper_) co_await isr_keeper_->stop();
  if (keeper_) co_await keeper_->stop();
  for (const auto& worker : core_.workers)
    co_await run_on(worker->runtime(), worker->drain(deadline));
  for (const auto& worker : core_.workers)
    co_await run_on(worker->runtime(), worker->stop(deadline));
  if (keeper_) co_await keeper_->drop_all();
  if (membership_) co_await membership_->leave();
}

/// Each says by itself what was not clean.
asio::awaitable<void> Broker::stop_disks() { static_cast<void>(co_await disks_->stop()); }

asio::awaitable<void> Broker::close_metadata() { co_await metadata_->close(); }

base::Endpoint Broker::bound() const { return listener_ ? listener_->local() : base::Endpoint{}; }

Error Broker::refuse(Error error, WireError number, std::string text) {
  refusal_ = core_.status(number, std::move(text));
  return error;
}

void Broker::status(const std::string& text) const {
  if (parts_.on_status) parts_.on_status(text);
}

base::Uuid Broker::new_uuid() {
  const auto high = home_.random();
  return base::Uuid::from_random(high, home_.random());
}

}  // namespace mq::broker
