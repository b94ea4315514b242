#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <unordered_map>

#include "client/core/error.h"
#include "client/core/producer_core.h"
#include "client/shell_callback_thread.h"
#include "client/shell_deadline.h"
#include "client/shell_io_thread.h"
#include "client/shell_log.h"
#include "mq/producer.h"

namespace mq {
inline namespace v1 {

namespace {

using Clock = std::chrono::steady_clock;
using client::Appended;
using client::AppendRequest;

Error closed_error() { return client::make_error(Errc::closed, "the producer is closed"); }

Error queue_full_error(const ProducerConfig& config) {
  return client::make_error(
      Errc::queue_full,
      fmt::format("the producer's buffer of {} bytes is full", config.buffer_bytes));
}

}  // namespace

/// The blocking and calling-back shell around ProducerCore.
struct Producer::Impl {
  explicit Impl(ProducerConfig config)
      : core(io.runtime(), io.network(), std::move(config)),
        callbacks(std::make_shared<client::CallbackThread>()) {
    core.on_outcome([this](std::vector<client::ProduceBatchPtr> batches) {
      take_outcomes(std::move(batches));
    });
    // With acks=none every write would be the last one: a thread that sends much would do all of
    // the I/O thread's work too.
    if (core.config().acks != Acks::none) core.on_idle([this] { io.step_back(); });
  }
  ~Impl() { io.stop(); }

  // The I/O thread.
  void take_outcomes(std::vector<client::ProduceBatchPtr> batches);
  void log_exception(const std::string& what);

  // Any thread.
  Result<void> append(TopicHandle::Impl& topic, AppendRequest& request, bool may_block);
  Result<void> append_when_there_is_room(TopicHandle::Impl& topic, AppendRequest& request);
  Result<client::ProducerTopicPtr> find_topic(const std::string& name);
  client::ProducerTopicPtr known_topic(const std::string& name);
  Result<void> send_record(const Record& record, std::function<void(Result<Delivery>)> call,
                           bool immediate, bool may_block);
  void begin_lookup(const std::string& name);
  asio::awaitable<void> look_up(std::string name);
  bool wait_flushed(std::uint64_t flush, Clock::time_point deadline);
  Result<void> close(Duration timeout);

  client::IoThread io;
  client::ProducerCore core;
  std::shared_ptr<client::CallbackThread>
      callbacks;  // futures that outlive the producer look for it

  std::mutex mutex;  // guards waiters, topics and looking_up; held while waiting starts, so that no
                     // wake-up is lost
  std::condition_variable room;
  std::condition_variable progress;
  std::size_t waiters = 0;
  std::unordered_map<std::string, client::ProducerTopicPtr> topics;
  std::set<std::string> looking_up;
  std::mutex close_mutex;  // one close() at a time
  std::atomic<bool> closed{false};
};

void Producer::Impl::take_outcomes(std::vector<client::ProduceBatchPtr> batches) {
  const bool ranges = static_cast<bool>(core.config().on_delivery);
  bool due = ranges;
  for (const auto& batch : batches) {
    const auto& partition = *batch->partition;
    client::deliver_immediate(*batch, partition.topic->name, partition.id.partition);
    for (const auto& callback : batch->callbacks) due = due || !callback.immediate;
  }
  if (due) {
    callbacks->post([this, batches = std::move(batches)] {
      for (const auto& batch : batches) {
        client::deliver(*batch, core.config(),
                        [this](const std::string& what) { log_exception(what); });
      }
    });
  }
  bool waiting = false;
  {
    const std::lock_guard lock(mutex);  // whoever waits has begun to, or sees the outcomes
    waiting = waiters > 0;
  }
  progress.notify_all();
  // Not for every batch: whoever waits goes on once there is room for more than one.
  const std::size_t limit = core.config().buffer_bytes;
  if (waiting && core.accumulator().buffered_bytes() <= limit - limit / 8) room.notify_all();
}

void Producer::Impl::log_exception(const std::string& what) {
  io.runtime().post([this, what] {
    core.client().log.line(LogLevel::error, "a delivery callback threw: " + what);
  });
}

Result<void> Producer::Impl::append(TopicHandle::Impl& topic, AppendRequest& request,
                                    bool may_block) {
  std::optional<Error> refusal;
  switch (core.append(topic, request, refusal)) {
    case Appended::accepted:
      io.loop().nudge();
      return {};
    case Appended::refused:
      return std::move(*refusal);
    case Appended::full:
      break;
  }
  if (!may_block || core.config().on_full == OnFull::fail) return queue_full_error(core.config());
  return append_when_there_is_room(topic, request);
}

Result<void> Producer::Impl::append_when_there_is_room(TopicHandle::Impl& topic,
                                                       AppendRequest& request) {
  const auto deadline = Clock::now() + core.config().delivery_timeout;
  std::optional<Error> refusal;
  std::unique_lock lock(mutex);
  ++waiters;
  Appended outcome = Appended::full;
  bool in_time = true;
  while (true) {
    outcome = core.append(topic, request, refusal);
    if (outcome != Appended::full || !in_time) break;
    in_time = room.wait_until(lock, deadline) == std::cv_status::no_timeout;
  }
  --waiters;
  if (outcome == Appended::accepted) return {};
  if (outcome == Appended::refused) return std::move(*refusal);
  return queue_full_error(core.config());
}

client::ProducerTopicPtr Producer::Impl::known_topic(const std::string& name) {
  const std::lock_guard lock(mutex);
  const auto found = topics.find(name);
  return found == topics.end() ? nullptr : found->second;
}

Result<client::ProducerTopicPtr> Producer::Impl::find_topic(const std::string& name) {
  auto found = io.call(core.topic(name));
  if (!found) return closed_error();
  if (!*found) return found->error();
  const std::lock_guard lock(mutex);
  topics[name] = **found;
  return **found;
}

/// For try_send(): the topic is there at one of the next attempts.
void Producer::Impl::begin_lookup(const std::string& name) {
  {
    const std::lock_guard lock(mutex);
    if (closed || !looking_up.insert(name).second) return;
  }
  io.runtime().spawn("topic lookup", look_up(name));
  io.loop().hurry();
}

asio::awaitable<void> Producer::Impl::look_up(std::string name) {
  const auto found = co_await core.topic(name);
  const std::lock_guard lock(mutex);
  looking_up.erase(name);
  if (found) topics[name] = *found;
}

Result<void> Producer::Impl::send_record(const Record& record,
                                         std::function<void(Result<Delivery>)> call, bool immediate,
                                         bool may_block) {
  AppendRequest request;
  if (record.key()) request.record.key = record.key()->bytes();
  if (record.value()) request.record.value = record.value()->bytes();
  std::vector<model::RecordHeader> headers;
  for (const Header& header : record.headers()) {
    auto& mine = headers.emplace_back();
    mine.name = header.name;
    if (header.value) mine.value = header.value->bytes();
  }
  request.record.headers = headers;
  request.partition = record.partition();
  if (record.timestamp()) {
    request.timestamp_given = true;
    request.record.timestamp_ms = record.timestamp()->time_since_epoch().count();
  }
  request.callback = &call;
  request.immediate = immediate;

  client::ProducerTopicPtr topic = known_topic(record.topic());
  if (topic) {
    auto sent = append(*topic, request, may_block);
    // Deleted, perhaps created anew: look again.
    if (sent || sent.error().code != Errc::unknown_topic_id) return sent;
  }
  if (!may_block) {
    begin_lookup(record.topic());
    return client::make_error(Errc::queue_full,
                              fmt::format("topic '{}' is being looked up", record.topic()));
  }
  auto found = find_topic(record.topic());
  if (!found) return found.error();
  return append(**found, request, may_block);
}

bool Producer::Impl::wait_flushed(std::uint64_t flush, Clock::time_point deadline) {
  io.loop().hurry();
  {
    std::unique_lock lock(mutex);
    if (!progress.wait_until(lock, deadline, [&] { return core.flushed(flush); })) return false;
  }
  return callbacks->is_current() || callbacks->wait_idle(deadline);
}

Result<void> Producer::Impl::close(Duration timeout) {
  if (callbacks->is_current())
    return client::make_error(Errc::invalid_argument, "close() was called from a callback");
  const std::lock_guard closing(close_mutex);
  if (closed.exchange(true)) return {};
  core.accumulator().close();
  {
    const std::lock_guard lock(mutex);
    room.notify_all();  // senders that wait learn that it is closed
  }
  wait_flushed(core.begin_flush(), client::deadline_after(Clock::now(), timeout));
  const std::size_t left = io.call(core.stop()).value_or(0);
  callbacks->stop();
  io.stop();
  if (left == 0) return {};
  return client::make_error(
      Errc::timed_out,
      fmt::format("{} records had no result after {} ms and were failed", left, timeout.count()));
}

const std::string& TopicHandle::name() const noexcept { return impl_->name; }
std::size_t TopicHandle::partitions() const noexcept {
  return impl_->partition_count.load(std::memory_order_relaxed);
}

Result<Producer> Producer::create(ProducerConfig config) {
  auto checked = client::check(config.validate());
  if (!checked) return checked.error();
  client::complete(config);
  auto impl = std::make_unique<Impl>(std::move(config));
  auto started = impl->io.call(impl->core.start());
  if (started && !*started) {
    const Error error = started->error();
    (void)impl->close(Duration::zero());
    return error;
  }
  return Producer(std::move(impl));
}

Producer::Producer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Producer::Producer(Producer&&) noexcept = default;
Producer& Producer::operator=(Producer&& other) noexcept {
  Producer old(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Producer::~Producer() {
  if (!impl_) return;
  if (impl_->callbacks->is_current()) {
    // From its own callback there is nobody to wait for: fail the rest, and let the queue of
    // callbacks run out.
    impl_->closed = true;
    impl_->io.call(impl_->core.stop());
    impl_->io.stop();
    const auto callbacks = impl_->callbacks;
    callbacks->post([impl = std::shared_ptr<Impl>(std::move(impl_))] {});
    return;
  }
  const auto closed = impl_->close(impl_->core.config().close_timeout);
  if (!closed) impl_->core.client().log.line(LogLevel::error, closed.error().message);
}

Result<TopicHandle> Producer::topic(std::string_view name) {
  const std::string text(name);
  if (auto known = impl_->known_topic(text); known && !impl_->core.accumulator().gone(*known))
    return TopicHandle(std::move(known));
  auto found = impl_->find_topic(text);
  if (!found) return found.error();
  return TopicHandle(*std::move(found));
}

namespace {

/// Keeps what a send through a handle borrows.
class HandleRequest {
 public:
  HandleRequest(std::optional<Bytes> key, std::optional<Bytes> value, const SendOptions& options,
                std::uint64_t cookie) {
    request_.record.key = key;
    request_.record.value = value;
    request_.partition = options.partition;
    if (options.timestamp) {
      request_.timestamp_given = true;
      request_.record.timestamp_ms = options.timestamp->time_since_epoch().count();
    }
    request_.cookie = cookie;
    if (options.headers.empty()) return;
    headers_.reserve(options.headers.size());
    for (const HeaderView& header : options.headers)
      headers_.push_back(model::RecordHeader{header.name, header.value});
    request_.record.headers = headers_;
  }
  HandleRequest(const HandleRequest&) = delete;
  HandleRequest& operator=(const HandleRequest&) = delete;
  AppendRequest& get() noexcept { return request_; }

 private:
  AppendRequest request_;
  std::vector<model::RecordHeader> headers_;
};

}  // namespace

Result<void> Producer::send(const TopicHandle& topic, std::optional<Bytes> key,
                            std::optional<Bytes> value, const SendOptions& options,
                            std::uint64_t cookie) {
  HandleRequest request(key, value, options, cookie);
  return impl_->append(topic.impl(), request.get(), true);
}

Result<void> Producer::try_send(const TopicHandle& topic, std::optional<Bytes> key,
                                std::optional<Bytes> value, const SendOptions& options,
                                std::uint64_t cookie) {
  HandleRequest request(key, value, options, cookie);
  return impl_->append(topic.impl(), request.get(), false);
}

Result<void> Producer::send(Record record, OnDelivery on_delivery) {
  return impl_->send_record(record, std::move(on_delivery), false, true);
}

Result<void> Producer::try_send(Record& record, OnDelivery on_delivery) {
  return impl_->send_record(record, std::move(on_delivery), false, false);
}

Future<Delivery> Producer::send(Record record) {
  const auto state = std::make_shared<detail::FutureState<Delivery>>(
      [weak = std::weak_ptr(impl_->callbacks)](std::function<void()> work) {
        if (const auto callbacks = weak.lock()) return callbacks->post(std::move(work));
        work();
      });
  const auto sent = impl_->send_record(
      record, [state](Result<Delivery> result) { state->set(std::move(result)); }, true, true);
  if (!sent) state->set(sent.error());
  return Future<Delivery>(state);
}

Result<Delivery> Producer::send_sync(Record record) { return send(std::move(record)).get(); }

Result<void> Producer::flush(Duration timeout) {
  const auto deadline = client::deadline_after(Clock::now(), timeout);
  if (impl_->wait_flushed(impl_->core.begin_flush(), deadline)) return {};
  return client::make_error(Errc::timed_out, fmt::format("{} records have no result after {} ms",
                                                         pending(), timeout.count()));
}

std::size_t Producer::pending() const noexcept {
  return impl_->core.accumulator().pending_records();
}

Result<void> Producer::close(Duration timeout) { return impl_->close(timeout); }

ProducerStats Producer::stats() const { return impl_->core.stats(); }

}  // namespace v1
}  // namespace mq
