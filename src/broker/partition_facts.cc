#include "broker/partition_facts.h"

#include "broker/hop.h"
#include "broker/worker.h"

namespace mq::broker {
namespace {

using Facts = std::map<model::PartitionId, PartitionFacts>;

std::string failure_text(const replication::Partition& partition) {
  if (!partition.failure()) return {};
  const auto text = partition.log().failure_text();
  return text.empty() ? partition.failure().message() : text;
}

asio::awaitable<void> gather_own(Worker& worker, Facts& facts) {
  for (const auto& [id, partition] : worker.partitions().all()) {
    PartitionFacts& fact = facts[id];
    fact.log_start_offset = partition->log_start_offset();
    fact.high_watermark = partition->high_watermark();
    fact.log_end_offset = partition->log_end_offset();
    fact.bytes = partition->log().bytes_on_disk();
    fact.segments = partition->log().segments();
    fact.failure = failure_text(*partition);
    fact.damage = partition->log().read_damage();
    fact.followers = partition->followers();
  }
  co_return;
}

}  // namespace

asio::awaitable<Facts> gather_partition_facts(Core& core) {
  Facts facts;
  for (const auto& worker : core.workers)
    co_await run_on(worker->runtime(), gather_own(*worker, facts));
  co_return facts;
}

std::string partition_note(const Core& core, const PartitionFacts* facts) {
  if (!facts && core.partitions_recovering > 0) return "being recovered after an unclean stop";
  if (!facts) return "not ready on this broker";
  if (!facts->failure.empty()) return facts->failure;
  return facts->damage.empty() ? std::string() : "damaged: " + facts->damage;
}

}  // namespace mq::broker
