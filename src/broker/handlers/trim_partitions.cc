#include "protocol/trim_partitions.h"

#include "base/log.h"
#include "broker/connection.h"
#include "broker/damaged.h"
#include "broker/error_map.h"
#include "broker/handlers/entries_by_worker.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {
namespace {

using protocol::TrimEntry;
using protocol::TrimResult;

asio::awaitable<TrimResult> trim(Worker& worker, TrimEntry entry) {
  const Core& core = worker.core();
  TrimResult result;
  result.partition = entry.partition;
  result.status.broker = core.id.value();
  const auto partition = worker.partitions().share(entry.partition);
  if (!partition) {
    result.status = core.missing(entry.partition);
    co_return result;
  }
  const auto high_watermark = partition->high_watermark();
  const auto start = co_await partition->trim(entry.to);
  if (start) {
    result.log_start_offset = *start;
    co_return result;
  }
  const auto error = to_wire(start.error());
  result.status = error == protocol::WireError::offset_out_of_range
                      ? core.status(error, fmt::format("{}: {} is above the high watermark {}",
                                                       core.partition_name(entry.partition),
                                                       entry.to, high_watermark))
                      : refusal_of(worker, entry.partition, start.error());
  co_return result;
}

/// What is trimmed here and has to be gone everywhere.
struct Trimmed {
  model::PartitionId partition;
  model::Offset log_start;
  base::TimePoint deadline;
};

std::string names(const std::vector<model::BrokerId>& brokers) {
  std::string text;
  for (const auto id : brokers) text += fmt::format("{}{}", text.empty() ? "" : ", ", id);
  return text;
}

/// Whoever leads next must not begin below what was answered.
asio::awaitable<protocol::Status> wait_for_isr(Worker& worker, Trimmed trimmed) {
  const Core& core = worker.core();
  const auto partition = worker.partitions().share(trimmed.partition);
  if (!partition) co_return core.missing(trimmed.partition);
  const auto done = co_await partition->trimmed_everywhere(trimmed.log_start, trimmed.deadline);
  if (done) {
    protocol::Status ok;
    ok.broker = core.id.value();
    co_return ok;
  }
  const auto text = fmt::format("{}: it begins at {} here, but ",
                                core.partition_name(trimmed.partition), trimmed.log_start);
  auto status = refusal_of(worker, trimmed.partition, done.error());
  if (done.error() == make_error_code(replication::ReplicationErrc::timed_out))
    status.text = fmt::format("broker {} has not removed the records yet",
                              names(partition->not_trimmed(trimmed.log_start)));
  status.text.insert(0, text);
  co_return status;
}

/// Waits for the ISRs of all that were trimmed at the same time.
asio::awaitable<void> wait_for_isrs(const Core& core, protocol::TrimPartitionsResponse& response,
                                    base::TimePoint deadline) {
  std::vector<Trimmed> trimmed;
  std::vector<TrimResult*> results;
  for (auto& result : response.results) {
    if (!result.status.ok()) continue;
    trimmed.push_back({result.partition, result.log_start_offset, deadline});
    results.push_back(&result);
  }
  std::vector<protocol::Status> statuses;
  co_await handle_entries(core, trimmed, statuses, &wait_for_isr);
  for (std::size_t i = 0; i < results.size(); ++i) results[i]->status = std::move(statuses[i]);
}

asio::awaitable<void> answer(Request request, protocol::TrimPartitionsRequest ask) {
  Core& core = request.core();
  const auto deadline = request.deadline_for_answer(ask.envelope.deadline_ms);
  protocol::TrimPartitionsResponse response;
  co_await handle_entries(core, ask.entries, response.results, &trim);
  co_await wait_for_isrs(core, response, deadline);
  for (const auto& result : response.results) {
    if (result.status.ok())
      base::log_info("broker", "{} was trimmed to {} by {}", core.partition_name(result.partition),
                     result.log_start_offset, base::printable(ask.envelope.client_name, 128));
  }
  response.envelope = core.envelope();
  request.answer(protocol::encode(response));
}

}  // namespace

void handle_trim_partitions(Request request) {
  auto ask = protocol::decode_trim_partitions_request(request.header());
  if (!ask)
    return request.fail(protocol::WireError::malformed_request, "TrimPartitions does not parse");
  if (ask->entries.size() > request.core().limits.entries_per_request)
    return request.fail(protocol::WireError::invalid_request,
                        fmt::format("{} partitions in one request", ask->entries.size()));
  request.release_memory();
  auto& worker = request.worker();
  worker.tasks().spawn("trim partitions", answer(std::move(request), *std::move(ask)));
}

}  // namespace mq::broker
