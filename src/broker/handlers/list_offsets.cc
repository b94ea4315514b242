#include "protocol/list_offsets.h"

#include "broker/connection.h"
#include "broker/damaged.h"
#include "broker/handlers/entries_by_worker.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {
namespace {

using protocol::ListOffsetsEntry;
using protocol::ListOffsetsResult;
using protocol::OffsetPoint;

/// PAR-9: another broker may lead it by now, and have more.
bool may_be_deposed(Worker& worker, const replication::Partition& partition) {
  return partition.replicated() && !worker.core().has_lease(worker.runtime().now());
}

asio::awaitable<base::Result<storage::TimeLookup>> place_of(Worker& worker,
                                                            replication::Partition& partition,
                                                            ListOffsetsEntry entry) {
  storage::TimeLookup place;
  switch (entry.point) {
    case OffsetPoint::earliest:
      place.offset = partition.log_start_offset();
      break;
    case OffsetPoint::latest: {
      if (may_be_deposed(worker, partition))
        co_return make_error_code(replication::ReplicationErrc::no_lease);
      MQ_CO_TRY(place.offset, partition.latest());
      break;
    }
    case OffsetPoint::at_time:
      co_return co_await partition.find_time(entry.time_ms);
  }
  if (const auto failed = partition.failure()) co_return failed;
  co_return place;
}

asio::awaitable<ListOffsetsResult> look_up(Worker& worker, ListOffsetsEntry entry) {
  const Core& core = worker.core();
  ListOffsetsResult result;
  result.partition = entry.partition;
  result.status.broker = core.id.value();
  const auto partition = worker.partitions().share(entry.partition);
  if (!partition) {
    result.status = core.missing(entry.partition);
    co_return result;
  }
  const auto leader_epoch = partition->leader_epoch();
  const auto place = co_await place_of(worker, *partition, entry);
  if (!place) {
    result.status = refusal_of(worker, entry.partition, place.error());
    co_return result;
  }
  result.offset = place->offset;
  result.append_time_ms = place->append_time_ms;
  result.leader_epoch = leader_epoch;
  co_return result;
}

asio::awaitable<void> answer(Request request, protocol::ListOffsetsRequest ask) {
  Core& core = request.core();
  protocol::ListOffsetsResponse response;
  co_await handle_entries(core, ask.entries, response.results, &look_up);
  response.envelope = core.envelope();
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_list_offsets(Request request) {
  auto ask = protocol::decode_list_offsets_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "ListOffsets does not parse");
  if (ask->entries.size() > request.core().limits.entries_per_request)
    return request.fail(protocol::WireError::invalid_request,
                        fmt::format("{} partitions in one request", ask->entries.size()));
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("list offsets", answer(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
