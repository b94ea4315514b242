#include "broker/local_partitions.h"

#include <algorithm>

#include "base/log.h"
#include "broker/hop.h"
#include "broker/worker.h"

namespace mq::broker {
namespace {

using base::Result;
using metadata::PartitionAssignment;
using storage::PartitionLog;

/// A log on its way to its worker.
struct Opening {
  PartitionLog* log;
  model::LeaderEpoch leader_epoch;
};

/// On the worker. A log that cannot be led is served all the same: its failure tells why.
Result<void> serve(Worker& worker, const Opening& opening) {
  PartitionLog& log = *opening.log;
  Result<void> led{};
  if (!log.failure()) led = log.start_epoch(opening.leader_epoch);
  worker.partitions().add(
      std::make_shared<replication::Partition>(worker.runtime(), log, worker.core().counters));
  return led;
}

/// The same for many; the first error is kept in `outcome`.
asio::awaitable<void> serve_some(Worker& worker, const std::vector<Opening>& openings,
                                 Result<void>& outcome) {
  for (const Opening& opening : openings) {
    const auto led = serve(worker, opening);
    if (!led && outcome) outcome = led;
  }
  co_return;
}

asio::awaitable<void> serve_many(Worker& worker, const std::vector<Opening>& openings,
                                 std::vector<controller::LogEpoch>& ahead) {
  for (const Opening& opening : openings) {
    const auto last = opening.log->leader_epoch();
    if (last >= opening.leader_epoch) {
      ahead.push_back({opening.log->id(), last});
      continue;
    }
    const auto led = serve(worker, opening);
    if (!led) {
      base::log_error("partition", "{} ({}): epoch {} cannot start: {}", opening.log->topic_name(),
                      opening.log->id().text(), opening.leader_epoch, led.error().message());
    }
  }
  co_return;
}

asio::awaitable<void> drop_where(Worker& worker, std::optional<base::Uuid> topic) {
  std::vector<model::PartitionId> ids;
  for (const auto& [id, partition] : worker.partitions().all()) {
    if (!topic || id.topic == *topic) ids.push_back(id);
  }
  for (const auto& id : ids) {
    const auto partition = worker.partitions().remove(id);
    partition->close();
    co_await partition->closed();
  }
}

/// In the order of their partitions: nothing follows addresses, so that a simulation repeats
/// itself.
using ByWorker = std::vector<std::pair<Worker*, std::vector<Opening>>>;

std::vector<Opening>& openings_on(Worker& worker, ByWorker& by_worker) {
  auto found = std::ranges::find(by_worker, &worker, [](const auto& one) { return one.first; });
  if (found == by_worker.end()) found = by_worker.insert(found, {&worker, {}});
  return found->second;
}

void add_openings(const Core& core, const metadata::TopicInfo& topic, ByWorker& by_worker) {
  for (const auto& assignment : topic.partitions) {
    auto* log = core.disks->find(assignment.id);
    if (log)
      openings_on(core.worker_of(assignment.id), by_worker)
          .push_back({log, assignment.leader_epoch});
  }
}

ByWorker openings_of(const Core& core, const metadata::ClusterImage& image,
                     const std::vector<model::PartitionId>& ids) {
  ByWorker by_worker;
  for (const auto& id : ids) {
    const auto topic = image.find_topic(id.topic);
    const auto* assignment = topic ? topic->find(id.partition) : nullptr;
    auto* log = core.disks->find(id);
    if (assignment && log)
      openings_on(core.worker_of(id), by_worker).push_back({log, assignment->leader_epoch});
  }
  return by_worker;
}

bool keeps(const Core& core, const PartitionAssignment& assignment) {
  return std::find(assignment.replicas.begin(), assignment.replicas.end(), core.id) !=
         assignment.replicas.end();
}

}  // namespace

storage::LogSpec LocalPartitions::spec_of(const metadata::TopicInfo& topic,
                                          const PartitionAssignment& assignment) const {
  storage::LogSpec spec;
  spec.id = assignment.id;
  spec.topic_name = topic.name;
  spec.settings = topic.settings;
  spec.worker = &core_.worker_of(assignment.id).runtime();
  return spec;
}

std::vector<storage::LogSpec> LocalPartitions::known(const metadata::ClusterImage& image) const {
  std::vector<storage::LogSpec> specs;
  for (const auto& [name, topic] : image.topics()) {
    for (const auto& assignment : topic->partitions) {
      if (keeps(core_, assignment)) specs.push_back(spec_of(*topic, assignment));
    }
  }
  return specs;
}

asio::awaitable<std::vector<controller::LogEpoch>> LocalPartitions::serve_recovered(
    metadata::ImagePtr image, std::vector<model::PartitionId> ids) {
  std::vector<controller::LogEpoch> ahead;
  const ByWorker by_worker = openings_of(core_, *image, ids);
  for (const auto& [worker, openings] : by_worker)
    co_await run_on(worker->runtime(), serve_many(*worker, openings, ahead));
  co_return ahead;
}

asio::awaitable<void> LocalPartitions::drop_all() {
  for (const auto& worker : core_.workers)
    co_await run_on(worker->runtime(), drop_where(*worker, std::nullopt));
}

asio::awaitable<Result<void>> LocalPartitions::create_missing(metadata::TopicPtr topic) {
  // Each piece waits for one sync of the file system, with whatever others write there.
  constexpr std::size_t kAtOnce = 2048;
  std::vector<storage::LogSpec> specs;
  for (std::size_t i = 0; i < topic->partitions.size(); ++i) {
    const auto& assignment = topic->partitions[i];
    if (keeps(core_, assignment) && !core_.disks->find(assignment.id))
      specs.push_back(spec_of(*topic, assignment));
    const bool last = i + 1 == topic->partitions.size();
    if (specs.empty() || (specs.size() < kAtOnce && !last)) continue;
    // A stop does not wait for the rest of ten thousand.
    if (core_.stopping) co_return make_error_code(base::BaseErrc::closed);
    auto some = std::exchange(specs, {});
    MQ_CO_TRY_VOID(co_await core_.disks->create_logs(std::move(some)));
  }
  co_return Result<void>{};
}

asio::awaitable<Result<void>> LocalPartitions::open_topic(metadata::TopicPtr topic) {
  MQ_CO_TRY_VOID(co_await create_missing(topic));
  ByWorker by_worker;
  add_openings(core_, *topic, by_worker);
  Result<void> outcome{};
  for (const auto& [worker, openings] : by_worker)
    co_await run_on(worker->runtime(), serve_some(*worker, openings, outcome));
  co_return outcome;
}

asio::awaitable<void> LocalPartitions::stop_topic(base::Uuid topic) {
  for (const auto& worker : core_.workers)
    co_await run_on(worker->runtime(), drop_where(*worker, topic));
}

asio::awaitable<Result<void>> LocalPartitions::delete_topic(base::Uuid topic) {
  co_await stop_topic(topic);
  co_return co_await core_.disks->delete_topic(topic);
}

}  // namespace mq::broker
