#include "protocol/trim_partitions.h"

#include "base/log.h"
#include "broker/connection.h"
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
  std::string text =
      fmt::format("{}: {}", core.partition_name(entry.partition), start.error().message());
  if (error == protocol::WireError::offset_out_of_range)
    text = fmt::format("{}: {} is above the high watermark {}",
                       core.partition_name(entry.partition), entry.to, high_watermark);
  result.status = core.status(error, std::move(text));
  co_return result;
}

asio::awaitable<void> answer(Request request, protocol::TrimPartitionsRequest ask) {
  Core& core = request.core();
  protocol::TrimPartitionsResponse response;
  co_await handle_entries(core, ask.entries, response.results, &trim);
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
