#include "sim/storage_machine.h"

#include <fmt/format.h>

namespace mq::sim {

StorageMachine::StorageMachine(std::uint64_t seed)
    : simulator(seed), random(simulator.random().fork()), capture(simulator) {
  files.set_capacity(kStorageBytes);
  if (random.chance(0.5)) files.set_cold_share(0.3);
  files.set_early_write_back(0.1);
  if (!files.make_directory(kStoragePath) || !files.sync_directory("/")) fail("no data directory");
  const auto count = random.between(1, 4);
  for (std::uint64_t i = 0; i < count; ++i) add_partition(static_cast<std::int32_t>(i));
}

void StorageMachine::add_partition(std::int32_t number) {
  storage::LogSpec spec;
  spec.id = {base::Uuid::from_random(random.next(), random.next()), number};
  spec.topic_name = fmt::format("topic-{}", number);
  spec.worker = &runtime;
  auto& settings = spec.settings;
  settings.durability = random.chance(0.6) ? model::Durability::disk : model::Durability::memory;
  settings.segment_bytes = std::uint64_t{8} << (10 + random.below(6));
  settings.retention_age = std::chrono::milliseconds(random.chance(0.3) ? 20'000 : 0);
  if (random.chance(0.3)) settings.retention_bytes = settings.segment_bytes * 3;
  const auto name = fmt::format("{} ({})", spec.topic_name,
                                settings.durability == model::Durability::disk ? "disk" : "memory");
  partitions.push_back(std::make_unique<StoredPartition>(std::move(spec), name));
}

void StorageMachine::fail(std::string what) {
  if (!violation.empty()) return;
  violation = std::move(what);
  simulator.trace("VIOLATION " + violation);
}

void StorageMachine::damage_a_finished_segment() {
  const auto& partition = *partitions[random.below(partitions.size())];
  const auto& settings = partition.spec.settings;
  // Retention may have taken it already, for all we know.
  if (settings.retention_age.count() > 0 || settings.retention_bytes > 0) return;
  if (partition.durable_seen.empty() ||
      partition.durable_seen.front().first + kCheckpointed > simulator.now())
    return;
  const auto durable = partition.durable_seen.front().second;
  std::vector<std::string> segments;
  for (const auto& file :
       files.files_below(fmt::format("{}/{}", kStoragePath, partition.spec.id.text())))
    if (file.ends_with(".log")) segments.push_back(file);
  const auto base_of = [&](std::size_t i) {
    return std::stoll(segments[i].substr(segments[i].size() - 24, 20));
  };
  std::size_t finished = 0;
  while (finished + 1 < segments.size() && base_of(finished + 1) < durable) ++finished;
  if (finished == 0) return;
  const auto& file = segments[random.below(finished)];
  damage = Damage{partition.spec.id, file, files.content(file)};
  files.truncate_file(file, random.below(damage->whole.size()));
  simulator.trace(fmt::format("the end of {} is lost", file));
}

}  // namespace mq::sim
