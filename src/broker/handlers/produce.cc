#include "protocol/produce.h"

#include "broker/connection.h"
#include "broker/damaged.h"
#include "broker/error_map.h"
#include "broker/handlers/handlers.h"

namespace mq::broker {
namespace {

using protocol::Acks;
using protocol::ProduceResult;
using protocol::WireError;

/// One batch of the request, on its way through its partition.
struct Item {
  std::size_t position;  ///< in the request
  model::PartitionId partition;
  base::MutableBytes batch;
  replication::BatchOrigin origin;
  storage::AppendInfo appended;
  ProduceResult result;
  bool waits = false;
  std::uint64_t later = 0;  ///< its number while the partition cannot take it yet
};

/// The batches of one request whose partitions belong to one worker. Lives there from start() until
/// `done` is called, once, on that worker. No coroutine: in the usual case nothing has to be waited
/// for.
class Part final : public std::enable_shared_from_this<Part> {
 public:
  Part(Worker& worker, Acks acks, base::Buffer body, base::TimePoint deadline)
      : worker_(worker), acks_(acks), body_(std::move(body)), deadline_(deadline) {}

  void add(Item item) { items_.push_back(std::move(item)); }
  [[nodiscard]] Worker& worker() const noexcept { return worker_; }
  [[nodiscard]] std::vector<Item>& items() noexcept { return items_; }
  /// Batches wait to be appended: their memory cannot be given back yet.
  [[nodiscard]] bool appends_later() const {
    return std::ranges::any_of(items_, [](const Item& item) { return item.later != 0; });
  }

  void start(std::function<void()> done) {
    done_ = std::move(done);
    waiting_ = 1;  // until all are appended
    for (Item& item : items_) append(item);
    body_ = {};
    if (--waiting_ == 0) return finish();
    timer_ = worker_.runtime().start_timer(deadline_, [self = shared_from_this()] {
      self->timer_ = 0;
      self->time_out();
    });
  }

 private:
  void append(Item& item) {
    Core& core = worker_.core();
    item.result.partition = item.partition;
    item.result.status.broker = core.id.value();
    auto* partition = worker_.partitions().find(item.partition);
    if (!partition) {
      item.result.status = core.missing(item.partition);
      return;
    }
    if (lacks_lease(*partition)) return refuse(item, replication::ReplicationErrc::no_lease);
    if (partition->appends_inline()) [[likely]]
      return appended(item, *partition, partition->append(body_, item.batch, item.origin, acks_));
    core.counters.get("produce_delayed_total").add();
    item.waits = true;
    ++waiting_;
    item.later = partition->append_later(
        body_, item.batch, item.origin, acks_,
        [self = shared_from_this(), &item, held = worker_.partitions().share(item.partition)](
            const base::Result<storage::AppendInfo>& outcome) {
          self->appended_later(item, *held, outcome);
        });
  }

  /// PAR-9: another broker may lead it by now and know nothing of what only this one confirms.
  [[nodiscard]] bool lacks_lease(const replication::Partition& partition) const {
    return partition.replicated() && acks_ != Acks::all &&
           !worker_.core().has_lease(worker_.runtime().now());
  }

  void appended_later(Item& item, replication::Partition& partition,
                      const base::Result<storage::AppendInfo>& outcome) {
    item.later = 0;
    if (!std::exchange(item.waits, false)) return;  // its time is over
    appended(item, partition, outcome);
    if (--waiting_ == 0) finish();
  }

  void appended(Item& item, replication::Partition& partition,
                const base::Result<storage::AppendInfo>& appended) {
    if (!appended) return refuse(item, appended.error());
    Core& core = worker_.core();
    if (appended->repeat) {
      core.counters.get("produce_repeats_total").add();
    } else {
      core.hot.produce_batches.add();
      core.hot.produce_bytes.add(static_cast<std::int64_t>(item.batch.size()));
    }
    item.appended = *appended;
    item.result.base_offset = appended->base_offset;
    item.result.append_time_ms = appended->append_time_ms;
    item.result.leader_epoch = appended->leader_epoch;
    if (partition.is_acknowledged(*appended, acks_)) return check_lease(item, partition);  // PAR-2
    item.waits = true;
    ++waiting_;
    partition.when_acknowledged(
        *appended, acks_,
        [self = shared_from_this(), &item](base::Error error) { self->acknowledged(item, error); });
  }

  void acknowledged(Item& item, base::Error error) {
    if (!item.waits) return;  // its time is over
    item.waits = false;
    if (error) refuse(item, error);
    const auto* partition = worker_.partitions().find(item.partition);
    if (!error && partition) check_lease(item, *partition);
    if (--waiting_ == 0) finish();
  }

  /// Once more after the work, just before the answer leaves.
  void check_lease(Item& item, const replication::Partition& partition) {
    if (acks_ == Acks::leader && lacks_lease(partition))
      refuse(item, replication::ReplicationErrc::no_lease);
  }

  void refuse(Item& item, base::Error error) {
    Core& core = worker_.core();
    const auto name = core.partition_name(item.partition);
    auto wire = to_wire(error);
    if (core.stopping && wire == WireError::partition_offline) wire = WireError::shutting_down;
    auto text = fmt::format("{}: {}{}", name, error.message(), detail(item, error));
    item.result.status =
        wire == WireError::partition_corrupt
            ? damaged_status(worker_, item.partition, model::Offset(), std::move(text))
            : core.status(wire, std::move(text));
    // Appended and then failed: it may be there after all.
    if (item.result.base_offset != model::Offset()) item.result.status.advice.maybe_applied = true;
  }

  [[nodiscard]] std::string detail(const Item& item, base::Error error) const {
    if (error == make_error_code(storage::StorageErrc::batch_too_large)) {
      const auto* partition = worker_.partitions().find(item.partition);
      return fmt::format(" ({} bytes, the topic takes {})", item.batch.size(),
                         partition ? partition->log().settings().batch_bytes : 0);
    }
    if (error == make_error_code(replication::ReplicationErrc::out_of_order))
      return fmt::format(" (number {})", item.origin.sequence);
    const auto batch = model::RecordBatchView::parse(item.batch);
    if (error.category() == replication::replication_category() && batch &&
        batch->producer().known()) {
      return fmt::format(" (producer {} epoch {}, sequence {})", batch->producer_id(),
                         batch->producer_epoch(), batch->base_sequence());
    }
    return {};
  }

  void time_out() {
    for (Item& item : items_) {
      if (!std::exchange(item.waits, false)) continue;
      const bool late = item.later != 0;
      const bool never_begun = late && given_up(item);
      refuse(item, !late && lacks_replicas(item)
                       ? replication::ReplicationErrc::not_enough_replicas_after_append
                       : replication::ReplicationErrc::timed_out);
      if (!late) continue;
      item.result.status.text += ": the disk is behind with writing";
      item.result.status.advice.maybe_applied = !never_begun;
    }
    waiting_ = 0;
    finish();
  }

  [[nodiscard]] bool lacks_replicas(const Item& item) const {
    const auto* partition = worker_.partitions().find(item.partition);
    return acks_ == Acks::all && partition && !partition->enough_replicas();
  }

  /// True if it will not be appended any more.
  bool given_up(Item& item) {
    auto* partition = worker_.partitions().find(item.partition);
    return partition && partition->give_up(item.later);
  }

  void finish() {
    if (timer_ != 0) worker_.runtime().cancel_timer(std::exchange(timer_, 0));
    const auto done = std::move(done_);
    done();
  }

  Worker& worker_;
  Acks acks_;
  base::Buffer body_;
  base::TimePoint deadline_;
  std::vector<Item> items_;
  std::size_t waiting_ = 0;
  base::Runtime::TimerId timer_ = 0;
  std::function<void()> done_;
};

/// One produce request: split by worker, appended there, answered here.
class Operation final : public std::enable_shared_from_this<Operation> {
 public:
  Operation(Request request, protocol::ProduceRequest ask)
      : request_(std::move(request)), ask_(std::move(ask)) {}

  void start() {
    split();
    results_.resize(ask_.entries.size());
    open_parts_ = parts_.size();
    const bool answers = ask_.acks != Acks::none;
    Worker& home = request_.worker();
    AnswerOrder& order = request_.connection().produce_order();
    // The usual case needs no place in the order: everything is here and done at once.
    const bool may_wait = parts_.size() > 1 || &parts_.front()->worker() != &home;
    if (answers && (may_wait || !order.empty())) enqueue();
    for (const auto& part : parts_) {
      if (&part->worker() == &home) {
        part->start([this, self = shared_from_this(), &part = *part] { part_done(part); });
      } else {
        part->worker().runtime().post([part, self = shared_from_this(), &home] {
          part->start([self, part, &home] {
            home.runtime().post([self, part] { self->part_done(*part); });
          });
        });
      }
    }
    if (open_parts_ == 0 || !answers) return;
    // What waits to be appended still needs its bytes; what other workers do is not known here.
    const bool keeps = std::ranges::any_of(parts_, [&](const auto& part) {
      return &part->worker() != &home || part->appends_later();
    });
    if (!keeps) request_.release_memory();
    if (!enqueued_) enqueue();
  }

 private:
  void split() {
    const Core& core = request_.core();
    const auto* client = request_.connection().client();
    const auto deadline = request_.deadline(ask_.envelope.deadline_ms);
    base::MutableBytes rest = request_.payload();
    for (std::size_t i = 0; i < ask_.entries.size(); ++i) {
      const auto& entry = ask_.entries[i];
      Item item;
      item.position = i;
      item.partition = entry.partition;
      item.batch = rest.first(entry.batch_bytes);
      item.origin = {client->instance, client->connection_number, entry.sequence};
      rest = rest.subspan(entry.batch_bytes);
      part_of(core.worker_of(entry.partition), deadline).add(std::move(item));
    }
  }

  Part& part_of(Worker& worker, base::TimePoint deadline) {
    for (const auto& part : parts_) {
      if (&part->worker() == &worker) return *part;
    }
    parts_.push_back(std::make_shared<Part>(worker, ask_.acks, request_.body(), deadline));
    return *parts_.back();
  }

  void enqueue() {
    std::vector<model::PartitionId> partitions;
    for (const auto& entry : ask_.entries) partitions.push_back(entry.partition);
    place_ = request_.connection().produce_order().begin(std::move(partitions));
    enqueued_ = true;
  }

  void part_done(Part& part) {
    for (Item& item : part.items()) results_[item.position] = std::move(item.result);
    if (--open_parts_ > 0) return;
    if (ask_.acks == Acks::none) return end_without_answer();
    if (!enqueued_) return answer();
    request_.connection().produce_order().done(place_,
                                               [self = shared_from_this()] { self->answer(); });
  }

  void answer() {
    protocol::ProduceResponse response;
    response.envelope = request_.core().envelope();
    response.results = std::move(results_);
    request_.answer(protocol::encode(response));
  }

  void end_without_answer() {
    for (auto& result : results_) {
      if (!result.status.ok()) return request_.fail(std::move(result.status));
    }
    request_.finish_silently();
  }

  Request request_;
  protocol::ProduceRequest ask_;
  std::vector<std::shared_ptr<Part>> parts_;
  std::size_t open_parts_ = 0;
  std::vector<ProduceResult> results_;
  bool enqueued_ = false;
  AnswerOrder::Ticket place_;
};

/// What is wrong with the request as a whole; empty if nothing.
std::string check(const Request& request, const protocol::ProduceRequest& ask) {
  if (ask.entries.empty()) return "a produce request without batches";
  if (ask.entries.size() > request.core().limits.entries_per_request)
    return fmt::format("{} batches in one request", ask.entries.size());
  if ((ask.acks == Acks::none) != !request.wants_answer())
    return "acks=none and the flag for no answer belong together";
  std::uint64_t bytes = 0;
  for (const auto& entry : ask.entries) bytes += entry.batch_bytes;
  if (bytes != request.payload().size()) {
    return fmt::format("the batches have {} bytes together, the payload {}", bytes,
                       request.payload().size());
  }
  return {};
}

}  // namespace

void handle_produce(Request request) {
  auto ask = protocol::decode_produce_request(request.header());
  if (!ask) return request.fail(WireError::malformed_request, "Produce does not parse");
  const std::string wrong = check(request, *ask);
  if (!wrong.empty()) return request.fail(WireError::malformed_request, wrong);
  request.connection().count_data_request(ask->entries);
  std::make_shared<Operation>(std::move(request), *std::move(ask))->start();
}

}  // namespace mq::broker
