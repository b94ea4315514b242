#include "protocol/fetch.h"

#include "broker/connection.h"
#include "broker/damaged.h"
#include "broker/error_map.h"
#include "broker/handlers/fetch_wait.h"
#include "broker/handlers/handlers.h"
#include "broker/hop.h"

namespace mq::broker {
namespace {

using protocol::FetchEntry;
using protocol::FetchResult;
using protocol::WireError;

/// What one round of reading found for one entry.
struct Item {
  FetchEntry entry;
  FetchResult result;
  model::Offset high_watermark;  ///< seen in this round
  storage::ReadResult data;
  bool needs_disk = false;
};

/// One fetch over its rounds: look, and if there is too little, wait for an append and look again.
struct Operation {
  explicit Operation(Request fetch_request) : request(std::move(fetch_request)) {}

  Request request;
  std::vector<Item> items;
  std::string rack;  ///< of the client; empty: leaders only
  std::size_t bytes_max = 0;
  std::size_t bytes_min = 0;
  std::size_t round_max = 0;  ///< bytes_max, or less while the answer budget is spent
  std::size_t first = 0;      ///< where a round begins, so that no partition is always last
  std::size_t bytes = 0;      ///< found in this round
  bool failed = false;        ///< an entry has an error, or is to be asked elsewhere: told at once
  bool disk_read_done = false;

  /// The first batch always comes, whatever its size.
  [[nodiscard]] bool full() const noexcept { return bytes > 0 && bytes >= round_max; }
  [[nodiscard]] std::size_t limit(const Item& item) const noexcept {
    return std::min<std::size_t>(item.entry.bytes_max, round_max - std::min(bytes, round_max));
  }
  [[nodiscard]] bool concerns(const Worker& worker) const {
    const Core& core = worker.core();
    return core.workers.size() == 1 ||
           std::any_of(items.begin(), items.end(), [&](const Item& item) {
             return &core.worker_of(item.entry.partition) == &worker;
           });
  }
};

/// The leader's replica, or one that follows it if that is good enough.
std::shared_ptr<replication::Readable> replica_of(Worker& worker, const Operation& fetch,
                                                  const Item& item) {
  const auto& id = item.entry.partition;
  if (auto led = worker.partitions().share(id)) return led;
  if (fetch.rack.empty() || item.entry.of_leader) return nullptr;
  return worker.partitions().share_followed(id);
}

/// The client's rack is another one than this leader's, and a replica there has the same.
void name_nearer_replica(Worker& worker, Operation& fetch, Item& item) {
  const Core& core = worker.core();
  if (fetch.rack.empty() || item.entry.of_leader || fetch.rack == core.rack) return;
  const auto* led = worker.partitions().find(item.entry.partition);
  if (!led || !led->replicated()) return;
  const auto image = core.image();
  const auto near = [&](model::BrokerId id) {
    const auto* broker = image->find_broker(id);
    return broker && broker->alive && broker->rack == fetch.rack;
  };
  const auto nearer = led->reader_near(item.entry.offset, near);
  if (!nearer) return;
  item.result.nearer_replica = nearer->value();
  fetch.failed = true;
}

void set_error(Worker& worker, Item& item, const replication::Readable* partition,
               base::Error error) {
  const Core& core = worker.core();
  const auto name = core.partition_name(item.entry.partition);
  auto wire = to_wire(error);
  std::string text = fmt::format("{}: {}", name, error.message());
  if (wire == WireError::offset_out_of_range && partition) {
    text = fmt::format("{}: offset {} is not in [{}, {}]", name, item.entry.offset,
                       partition->log_start_offset(), partition->high_watermark());
  }
  if (wire == WireError::partition_corrupt) {
    item.result.status =
        damaged_status(worker, item.entry.partition, item.entry.offset,
                       fmt::format("{}: offset {} cannot be read on broker {}: its log is damaged",
                                   name, item.entry.offset, core.id));
    return;
  }
  if (core.stopping && wire == WireError::partition_offline) wire = WireError::shutting_down;
  item.result.status = core.status(wire, std::move(text));
}

void take(Operation& fetch, Item& item, storage::ReadResult data) {
  item.data = std::move(data);
  item.result.payload_bytes = static_cast<std::uint32_t>(item.data.bytes);
  fetch.bytes += item.data.bytes;
}

/// Reads one entry from memory and the page cache, on its partition's worker.
void look(Worker& worker, Operation& fetch, Item& item) {
  item.result = {};
  item.data = {};
  item.needs_disk = false;
  item.result.partition = item.entry.partition;
  item.result.status.broker = worker.core().id.value();
  const auto partition = replica_of(worker, fetch, item);
  if (!partition) {
    item.result.status = worker.core().missing(item.entry.partition);
    fetch.failed = true;
    return;
  }
  item.high_watermark = partition->high_watermark();
  // What clients see of it must not fall when the leader changes.
  item.result.high_watermark =
      partition->latest().has_value() ? item.high_watermark : model::Offset();
  item.result.log_start_offset = partition->log_start_offset();
  item.result.leader_epoch = partition->leader_epoch();
  name_nearer_replica(worker, fetch, item);
  if (fetch.full() || item.result.nearer_replica >= 0) return;
  auto data = partition->read(item.entry.offset, fetch.limit(item));
  if (data) return take(fetch, item, *std::move(data));
  if (data.error() == make_error_code(storage::StorageErrc::not_cached)) {
    item.needs_disk = true;
    return;
  }
  set_error(worker, item, partition.get(), data.error());
  fetch.failed = true;
}

/// On `worker`: one look at each entry whose partition is its own, then at most one read from the
/// disk per fetch, so that a partition that lies far back does not hold up the others for long.
asio::awaitable<void> look_at_own(Worker& worker, Operation& fetch) {
  const Core& core = worker.core();
  Item* cold = nullptr;
  for (std::size_t i = 0; i < fetch.items.size(); ++i) {
    Item& item = fetch.items[(fetch.first + i) % fetch.items.size()];
    if (core.workers.size() > 1 && &core.worker_of(item.entry.partition) != &worker) continue;
    look(worker, fetch, item);
    if (item.needs_disk && !cold) cold = &item;
  }
  if (!cold || fetch.disk_read_done || fetch.full()) co_return;
  fetch.disk_read_done = true;
  const auto partition = replica_of(worker, fetch, *cold);
  worker.core().hot.fetch_disk_reads.add();
  auto data = co_await partition->read_from_disk(cold->entry.offset, fetch.limit(*cold));
  if (data) {
    take(fetch, *cold, *std::move(data));
  } else {
    set_error(worker, *cold, partition.get(), data.error());
    fetch.failed = true;
  }
}

asio::awaitable<void> look_everywhere(Operation& fetch) {
  Core& core = fetch.request.core();
  fetch.bytes = 0;
  fetch.failed = false;
  fetch.disk_read_done = false;
  for (const auto& worker : core.workers) {
    if (fetch.concerns(*worker)) co_await run_on(worker->runtime(), look_at_own(*worker, fetch));
  }
}

/// True if a round would find anything new: the answer, or an error.
bool anything(const replication::Readable* partition, const Item& item) {
  return !partition || partition->unreadable() ||
         partition->high_watermark() != item.high_watermark ||
         item.entry.offset < partition->log_start_offset();
}

/// On `worker`: leaves a waiter at each of its partitions, or wakes `wait` at once if something has
/// changed since the round.
asio::awaitable<void> leave_waiters(Worker& worker, Operation& fetch,
                                    std::shared_ptr<FetchWait> wait) {
  const Core& core = worker.core();
  for (const Item& item : fetch.items) {
    if (core.workers.size() > 1 && &core.worker_of(item.entry.partition) != &worker) continue;
    const auto partition = replica_of(worker, fetch, item);
    if (anything(partition.get(), item)) {
      wait->wake_from(worker.runtime());
      break;
    }
    wait->wait_for(worker, *partition, item.high_watermark);
  }
  co_return;
}

/// Waits for an append to any of the partitions, or for a reason to stop waiting.
asio::awaitable<void> wait_for_more(Operation& fetch, base::TimePoint deadline) {
  Core& core = fetch.request.core();
  Connection& connection = fetch.request.connection();
  const auto wait =
      std::make_shared<FetchWait>(fetch.request.worker().runtime(), core.workers.size());
  connection.add_waiter(*wait);
  for (const auto& worker : core.workers) {
    if (fetch.concerns(*worker))
      co_await run_on(worker->runtime(), leave_waiters(*worker, fetch, wait));
  }
  if (!connection.ending()) co_await wait->until(deadline);
  wait->leave(core.workers);
}

/// Answers with the entries [begin, end), whose batches fit into one frame.
void answer_part(Operation& fetch, std::size_t begin, std::size_t end,
                 const std::shared_ptr<net::Lease>& memory) {
  protocol::FetchResponse response;
  response.envelope = fetch.request.core().envelope();
  std::vector<base::SharedBytes> payload;
  for (std::size_t i = begin; i < end; ++i) {
    Item& item = fetch.items[i];
    response.results.push_back(std::move(item.result));
    for (auto& piece : item.data.batches) payload.push_back(std::move(piece));
  }
  const bool more = end < fetch.items.size();
  fetch.request.answer(protocol::encode(response), std::move(payload), memory, more);
}

/// One frame, or several when the batches do not fit into one of them.
void answer(Operation& fetch, std::shared_ptr<net::Lease> memory) {
  Core& core = fetch.request.core();
  core.hot.fetch_answers.add();
  core.hot.fetch_bytes.add(static_cast<std::int64_t>(fetch.bytes));
  const std::size_t frame_payload_max = core.frame_bytes_max() - protocol::kHeaderBytesMax;
  std::size_t begin = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < fetch.items.size(); ++i) {
    const std::size_t more = fetch.items[i].data.bytes;
    if (i > begin && bytes + more > frame_payload_max) {
      answer_part(fetch, begin, i, memory);
      begin = i;
      bytes = 0;
    }
    bytes += more;
  }
  answer_part(fetch, begin, fetch.items.size(), memory);
}

/// Memory for one round. While the budget is spent by slow readers a connection that has nothing
/// queued gets a little all the same, so that they cannot hold up the others.
asio::awaitable<std::shared_ptr<net::Lease>> take_memory(Operation& fetch) {
  constexpr std::size_t kFree = std::size_t{64} << 10;
  constexpr std::size_t kModest = std::size_t{1} << 20;
  auto& budget = fetch.request.worker().answer_budget();
  const auto lease = std::make_shared<net::Lease>();
  fetch.round_max = std::min(fetch.bytes_max, budget.limit());
  if (budget.try_take(fetch.round_max)) {
    *lease = net::Lease(budget, fetch.round_max);
  } else if (fetch.request.connection().nothing_queued()) {
    fetch.round_max = std::min(fetch.round_max, kFree);
  } else {
    fetch.round_max = co_await budget.take(std::min(fetch.round_max, kModest));
    *lease = net::Lease(budget, fetch.round_max);
  }
  co_return lease;
}

asio::awaitable<void> serve(std::shared_ptr<Operation> operation, base::TimePoint deadline) {
  Operation& fetch = *operation;
  Connection& connection = fetch.request.connection();
  while (true) {
    const bool room = co_await connection.room_for_answer();
    if (!room) co_return fetch.request.finish_silently();
    const auto memory = co_await take_memory(fetch);
    co_await look_everywhere(fetch);
    const bool enough = fetch.failed || fetch.bytes >= std::min(fetch.bytes_min, fetch.round_max);
    if (enough || connection.ending() || fetch.request.worker().runtime().now() >= deadline) {
      memory->shrink(fetch.bytes);
      co_return answer(fetch, memory);
    }
    // Nothing is held while waiting.
    for (Item& item : fetch.items) item.data = {};
    memory->give_back();
    co_await wait_for_more(fetch, deadline);
  }
}

}  // namespace

void handle_fetch(Request request) {
  auto ask = protocol::decode_fetch_request(request.header());
  if (!ask) return request.fail(WireError::malformed_request, "Fetch does not parse");
  const Limits& limits = request.core().limits;
  if (ask->entries.empty() || ask->entries.size() > limits.entries_per_request) {
    return request.fail(WireError::invalid_request,
                        fmt::format("a fetch of {} partitions; 1 to {} are possible",
                                    ask->entries.size(), limits.entries_per_request));
  }
  request.release_memory();
  request.connection().count_data_request(ask->entries);
  auto& worker = request.worker();
  const base::Duration wait =
      std::min<base::Duration>(std::chrono::milliseconds(ask->wait_ms), limits.fetch_wait);
  const auto deadline = worker.runtime().now() + wait;
  auto operation = std::make_shared<Operation>(std::move(request));
  operation->bytes_max = std::min<std::size_t>(ask->bytes_max, limits.fetch_bytes);
  operation->bytes_min = ask->bytes_min;
  operation->rack = std::move(ask->rack);
  operation->first = operation->request.head().correlation_id % ask->entries.size();
  operation->items.resize(ask->entries.size());
  for (std::size_t i = 0; i < ask->entries.size(); ++i) {
    auto& item = operation->items[i];
    item.entry = ask->entries[i];
  }
  worker.tasks().spawn("fetch", serve(std::move(operation), deadline));
}

}  // namespace mq::broker
