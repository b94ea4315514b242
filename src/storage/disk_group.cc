#include "storage/disk_group.h"

#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "storage/disk_files.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

using model::Offset;
using model::PartitionId;

/// What one disk holds, as far as it matters for where partitions are.
struct Contents {
  std::set<PartitionId> directories;
  std::set<PartitionId> known;  // to its checkpoint, with data
};

/// On a thread of that disk.
Result<Contents> look_at(base::FileSystem& files, const std::string& path) {
  Contents contents;
  MQ_TRY(const auto entries, files.list_directory(path));
  for (const auto& entry : entries) {
    if (!entry.is_directory) continue;
    if (const auto id = parse_partition_directory_name(entry.name))
      contents.directories.insert(*id);
  }
  const auto checkpoint =
      load_disk_file(files, path, kCheckpointFile, kCheckpointMagic, decode_checkpoint);
  if (!checkpoint) return contents;  // its disk says what is wrong with it
  for (const auto& [id, log] : *checkpoint) {
    if (log.recovery_point_lost || log.recovery_point.offset > Offset(0)) contents.known.insert(id);
  }
  return contents;
}

}  // namespace

/// One recover() call.
struct DiskGroup::Run {
  std::vector<Contents> contents;              // by member
  std::vector<std::vector<LogSpec>> assigned;  // by member
  std::vector<base::Uuid> deleting;
  std::vector<RecoveryProgress> progress;  // by member
  std::vector<std::string> absent;         // disks of an earlier run
  RecoverySummary summary;
  std::function<void(const RecoveryProgress&)> report;
};

DiskGroup::DiskGroup(std::vector<Member> members, base::FileSystem& files, base::Runtime& home)
    : members_(std::move(members)), files_(files), home_(home) {
  MQ_CHECK(!members_.empty() && members_.front().disk, "no first disk");
}

bool DiskGroup::usable(std::size_t member) const {
  const auto& disk = members_[member].disk;
  return disk && members_[member].reason.empty() && !disk->failed();
}

void DiskGroup::leave_out(std::size_t member, std::string reason) {
  base::log_error("storage", "disk {} is left out: {}", members_[member].path, reason);
  members_[member].reason = std::move(reason);
}

asio::awaitable<Result<RecoverySummary>> DiskGroup::recover(
    std::vector<LogSpec> known, std::vector<base::Uuid> deleting,
    std::function<void(const RecoveryProgress&)> progress) {
  Run run;
  run.deleting = std::move(deleting);
  run.report = std::move(progress);
  run.contents.resize(members_.size());
  run.assigned.resize(members_.size());
  run.progress.resize(members_.size());
  run.summary.clean = true;
  MQ_CO_TRY_VOID(co_await look(run));
  assign(run, std::move(known));
  if (!refusal_.empty()) co_return make_error_code(StorageErrc::wrong_directory);
  base::TaskGroup group(home_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    run.progress[i].partitions = run.assigned[i].size();
    if (!usable(i)) continue;
    recovering_.insert(i);
    group.spawn("recovery of a disk", recover_one(run, i));
  }
  co_await group.wait();
  const bool any = usable(0);
  if (!any) {
    refusal_ =
        fmt::format("the first disk {} cannot be used: {}", members_[0].path, members_[0].reason);
    co_return make_error_code(StorageErrc::disk_failed);
  }
  co_return run.summary;
}

asio::awaitable<Result<void>> DiskGroup::look(Run& run) {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!usable(i)) continue;
    Result<Contents> found = make_error_code(StorageErrc::closed);
    const auto work = [&] { found = look_at(files_, members_[i].path); };
    co_await members_[i].executor->run(work);
    if (found) {
      run.contents[i] = *std::move(found);
    } else {
      leave_out(i, fmt::format("it cannot be read: {}", found.error().message()));
    }
  }
  auto absent = co_await absent_disks();
  if (!absent) {
    refusal_ = fmt::format("the list of disks in {} cannot be used: {}", members_[0].path,
                           absent.error().message());
    co_return absent.error();
  }
  run.absent = *std::move(absent);
  absent_ = !run.absent.empty();
  co_return Result<void>();
}

/// Paths of disks that belonged here in an earlier run and are not there now. Those that are there
/// are added to the list, durably, before anything is placed on them.
asio::awaitable<Result<std::vector<std::string>>> DiskGroup::absent_disks() {
  DiskList present;
  for (const auto& member : members_) {
    if (member.disk) present[member.disk->identity().disk] = member.path;
  }
  std::vector<std::string> absent;
  Result<void> done;
  const auto work = [&] {
    const auto& first = members_[0].path;
    auto list = load_disk_file(files_, first, kDisksFile, kDisksMagic, decode_disk_list);
    if (!list && list.error() == make_error_code(StorageErrc::unknown_format_version)) {
      done = list.error();
      return;
    }
    DiskList all = list ? *list : DiskList();
    for (const auto& [disk, path] : all) {
      if (!present.contains(disk)) absent.push_back(path);
    }
    for (const auto& [disk, path] : present) all[disk] = path;
    if (list && all == *list) return;
    if (!list && all.size() == 1) return;  // a single disk needs no list
    done = save_sealed(files_, first + "/" + std::string(kDisksFile), kDisksMagic,
                       encode_disk_list(all));
  };
  co_await members_[0].executor->run(work);
  if (!done) co_return done.error();
  co_return absent;
}

/// Which disk each partition is on. One that is nowhere is new, unless a disk is missing on which
/// it may be: then it stays offline.
void DiskGroup::assign(Run& run, std::vector<LogSpec> known) {
  run.summary.partitions = known.size();
  std::vector<std::string> gone = run.absent;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!usable(i)) gone.push_back(members_[i].path);
  }
  std::vector<LogSpec> nowhere;
  for (auto& spec : known) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (run.contents[i].directories.contains(spec.id)) places.push_back(i);
    }
    for (std::size_t i = 0; places.empty() && i < members_.size(); ++i) {
      // Its directory was there once: that disk says that it is missing.
      if (run.contents[i].known.contains(spec.id)) places.push_back(i);
    }
    if (places.size() > 1) {
      refusal_ = fmt::format("partition {} ({}) is on two disks: {} and {}", spec.id.text(),
                             spec.topic_name, members_[places[0]].path, members_[places[1]].path);
      return;
    }
    if (places.empty()) {
      nowhere.push_back(std::move(spec));
      continue;
    }
    placed_[spec.id] = places[0];
    run.assigned[places[0]].push_back(std::move(spec));
  }
  if (nowhere.empty()) return;
  if (!gone.empty()) {
    for (const auto& spec : nowhere) {
      missing_.insert(spec.id);
      run.summary.offline.push_back(spec.id);
    }
    base::log_error(
        "storage",
        "{} partitions are offline, {} ({}) among them: they are on no disk that can be "
        "read, and {} is missing",
        nowhere.size(), nowhere.front().id.text(), nowhere.front().topic_name,
        fmt::join(gone, ", "));
    return;
  }
  // Half made when the last run ended.
  for (auto& spec : nowhere) {
    std::size_t least = 0;
    for (std::size_t i = 1; i < members_.size(); ++i) {
      if (run.assigned[i].size() < run.assigned[least].size()) least = i;
    }
    placed_[spec.id] = least;
    run.assigned[least].push_back(std::move(spec));
  }
}

asio::awaitable<void> DiskGroup::recover_one(Run& run, std::size_t member) {
  std::function<void(const RecoveryProgress&)> progress = [&run,
                                                           member](const RecoveryProgress& at) {
    run.progress[member] = at;
    RecoveryProgress all;
    for (const auto& one : run.progress) {
      all.partitions += one.partitions;
      all.partitions_done += one.partitions_done;
      all.bytes_scanned += one.bytes_scanned;
    }
    if (run.report) run.report(all);
  };
  std::vector<LogSpec> specs = std::move(run.assigned[member]);
  std::vector<PartitionId> ids;
  ids.reserve(specs.size());
  for (const auto& spec : specs) ids.push_back(spec.id);
  const auto recovered =
      co_await members_[member].disk->recover(std::move(specs), run.deleting, progress);
  recovering_.erase(member);
  if (!recovered) {
    leave_out(member, fmt::format("its recovery failed: {}", recovered.error().message()));
    for (const auto& id : ids) {
      missing_.insert(id);
      run.summary.offline.push_back(id);
    }
    co_return;
  }
  RecoverySummary& all = run.summary;
  all.clean = all.clean && recovered->clean;
  all.lossy_suspect = all.lossy_suspect || recovered->lossy_suspect;
  all.bytes_scanned += recovered->bytes_scanned;
  all.journal_bytes_read += recovered->journal_bytes_read;
  all.bytes_cut += recovered->bytes_cut;
  all.cut.insert(all.cut.end(), recovered->cut.begin(), recovered->cut.end());
  all.offline.insert(all.offline.end(), recovered->offline.begin(), recovered->offline.end());
  all.moved_to_unknown.insert(all.moved_to_unknown.end(), recovered->moved_to_unknown.begin(),
                              recovered->moved_to_unknown.end());
}

void DiskGroup::set_broker_epoch(std::int64_t epoch) {
  broker_epoch_ = epoch;
  for (auto& member : members_) {
    if (member.disk) member.disk->set_broker_epoch(epoch);
  }
}

void DiskGroup::on_ready(const std::function<void(const model::PartitionId&)>& ready) {
  for (const auto& member : members_) {
    if (member.disk) member.disk->on_ready(ready);
  }
}

void DiskGroup::on_changed(const std::function<void()>& changed) {
  for (const auto& member : members_) {
    if (member.disk) member.disk->on_changed(changed);
  }
}

void DiskGroup::start() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (usable(i)) members_[i].disk->start();
  }
}

asio::awaitable<Result<void>> DiskGroup::stop() {
  Result<void> outcome;
  for (auto& member : members_) {
    if (!member.disk) continue;
    const auto stopped = co_await member.disk->stop();
    if (stopped) continue;
    if (outcome) outcome = stopped;
    if (placed_.empty()) continue;  // a start that was refused before anything was looked at
    base::log_error("storage", "disk {}: no clean stop ({}); the next start looks at its logs",
                    member.path, stopped.error().message());
  }
  co_return outcome;
}

PartitionLog* DiskGroup::find(const PartitionId& id) const {
  for (const auto& member : members_) {
    if (!member.disk) continue;
    if (PartitionLog* log = member.disk->find(id)) return log;
  }
  return nullptr;
}

double DiskGroup::busiest() const {
  double most = 0;
  for (const auto& member : members_) {
    if (member.disk) most = std::max(most, member.disk->write_rate());
  }
  return most;
}

/// By free bytes per partition; the disk that is written most counts half, an idle one whole.
Result<std::size_t> DiskGroup::roomiest(const std::vector<std::size_t>& added) const {
  std::optional<std::size_t> best;
  const double busy = std::max(busiest(), 1.0);
  double most = -1;
  bool alive = false;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!usable(i)) continue;
    alive = true;
    const Disk& disk = *members_[i].disk;
    if (disk.full()) continue;
    const double partitions = 1.0 + static_cast<double>(disk.partitions().size() + added[i]);
    const double load = partitions * (1.0 + disk.write_rate() / busy);
    const double room = static_cast<double>(disk.free_bytes()) / load;
    if (room <= most) continue;
    most = room;
    best = i;
  }
  if (best) return *best;
  return alive ? StorageErrc::storage_full : StorageErrc::disk_failed;
}

asio::awaitable<Result<void>> DiskGroup::create_logs(std::vector<LogSpec> specs) {
  std::vector<std::vector<LogSpec>> by_member(members_.size());
  std::vector<std::size_t> added(members_.size(), 0);
  for (auto& spec : specs) {
    if (missing_.contains(spec.id)) co_return make_error_code(StorageErrc::disk_failed);
    const auto tried = placed_.find(spec.id);
    std::size_t member = 0;
    if (tried != placed_.end()) {
      member = tried->second;
    } else {
      MQ_CO_TRY(member, roomiest(added));
    }
    if (!usable(member)) co_return make_error_code(StorageErrc::disk_failed);
    placed_[spec.id] = member;
    ++added[member];
    by_member[member].push_back(std::move(spec));
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (by_member[i].empty()) continue;
    MQ_CO_TRY_VOID(co_await members_[i].disk->create_logs(std::move(by_member[i])));
  }
  co_return Result<void>();
}

std::int64_t DiskGroup::intact_since(const PartitionId& id) const {
  const auto placed = placed_.find(id);
  if (placed == placed_.end() || !members_[placed->second].disk) return broker_epoch_;
  return members_[placed->second].disk->intact_since(id);
}

asio::awaitable<Result<model::Offset>> DiskGroup::replace_damaged(LogSpec spec, model::Offset start,
                                                                  Keep keep) {
  const auto placed = placed_.find(spec.id);
  if (placed == placed_.end()) co_return make_error_code(StorageErrc::not_found);
  if (!usable(placed->second)) co_return make_error_code(StorageErrc::disk_failed);
  co_return co_await members_[placed->second].disk->replace_damaged(std::move(spec), start, keep);
}

asio::awaitable<Result<void>> DiskGroup::delete_topic(base::Uuid topic) {
  Result<void> outcome;
  bool out_of_reach = absent_;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (usable(i)) {
      const auto deleted = co_await members_[i].disk->delete_topic(topic);
      if (!deleted && outcome) outcome = deleted;
    }
    out_of_reach = out_of_reach || !usable(i);
  }
  if (out_of_reach) outcome = make_error_code(StorageErrc::disk_failed);
  std::erase_if(placed_, [&](const auto& entry) { return entry.first.topic == topic; });
  co_return outcome;
}

void DiskGroup::give_up_deletions() {
  for (auto& member : members_) {
    if (member.disk) member.disk->give_up_deletions();
  }
}

std::vector<base::Uuid> DiskGroup::disks() const {
  std::vector<base::Uuid> ids;
  for (const auto& member : members_) {
    if (member.disk) ids.push_back(member.disk->identity().disk);
  }
  return ids;
}

std::vector<DiskStatus> DiskGroup::status() const {
  std::vector<DiskStatus> all;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    DiskStatus& status = all.emplace_back();
    status.path = member.path;
    status.state = "failed";
    status.reason = member.reason;
    if (!member.disk) continue;
    const Disk& disk = *member.disk;
    status.disk = disk.identity().disk;
    status.used_bytes = disk.used_bytes();
    status.free_bytes = disk.free_bytes();
    status.partitions = static_cast<std::uint32_t>(disk.partitions().size());
    status.write_rate = static_cast<std::uint64_t>(disk.write_rate());
    status.scrub = disk.scrub();
    status.aside = disk.put_aside();
    status.intact = disk.intact_since();
    if (!member.reason.empty()) continue;
    status.reason = disk.failure_reason();
    if (disk.failed()) continue;
    status.state = recovering_.contains(i) ? "recovering" : "ok";
    if (!disk.full()) continue;
    status.state = "full";
    status.reason = fmt::format("appends are refused below {} free bytes", disk.low_mark_bytes());
  }
  return all;
}

}  // namespace mq::storage
