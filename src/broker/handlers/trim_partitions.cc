#include "protocol/trim_partitions.h"

#include "base/log.h"
#include "broker/connection.h"
#include "broker/error_map.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"

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
  std::string text =
      fmt::format("{}: {}", core.partition_name(entry.partition), start.error().message());
  if (error == protocol::WireError::offset_out_of_range)
    text = fmt::format("{}: {} is above the high watermark {}",
                       core.partition_name(entry.partition), entry.to, high_watermark);
  result.status = core.status(error, std::move(text));
  co_return result;
}

/// On `worker`: the entries whose partitions are its own.
asio::awaitable<void> trim_own(Worker& worker, const std::vector<TrimEntry>& entries,
                               std::vector<TrimResult>& results) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (&worker.core().worker_of(entries[i].partition) != &worker) continue;
    auto result = co_await trim(worker, entries[i]);
    results[i] = std::move(result);
  }
}

asio::awaitable<void> answer(Request request, protocol::TrimPartitionsRequest ask) {
  Core& core = request.core();
  protocol::TrimPartitionsResponse response;
  response.results.resize(ask.entries.size());
  for (const auto& worker : core.workers)
    co_await run_on(worker->runtime(), trim_own(*worker, ask.entries, response.results));
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
