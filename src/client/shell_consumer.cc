#include <chrono>
#include <condition_variable>
#include <mutex>

#include "client/core/consumer_core.h"
#include "client/core/error.h"
#include "client/shell_deadline.h"
#include "client/shell_io_thread.h"
#include "client/shell_log.h"
#include "mq/consumer.h"

namespace mq {
inline namespace v1 {

namespace {

using Clock = std::chrono::steady_clock;

/// A fetch of as much means that the reader is behind: two threads are better then, one that reads
/// the socket and one that takes records.
constexpr std::size_t kBulkBytes = std::size_t{32} << 10;

Error closed_error() { return client::make_error(Errc::closed, "the consumer is closed"); }

}  // namespace

/// The blocking shell around ConsumerCore.
struct Consumer::Impl {
  explicit Impl(ConsumerConfig config) : core(io.runtime(), io.network(), std::move(config)) {
    core.on_data([this](std::size_t bytes) { announce(bytes >= kBulkBytes); });
  }
  ~Impl() { close(); }

  void announce(bool much);
  Result<Batch> poll(Duration timeout);
  /// Until there is news behind `seen`; false at `deadline`.
  bool wait(std::uint64_t seen, Clock::time_point deadline);
  void close();
  /// A call on the I/O thread, or `closed`.
  template <class T>
  Result<T> call(asio::awaitable<Result<T>> task) {
    auto result = io.call(std::move(task));
    if (!result) return closed_error();
    return std::move(*result);
  }

  client::IoThread io;
  client::ConsumerCore core;
  std::mutex mutex;  // guards what is below
  std::condition_variable changed;
  std::uint64_t announced = 0;  ///< how often data came
  bool bulk = false;            ///< the last data were many
  bool woken = false;
  bool closed = false;
};

void Consumer::Impl::announce(bool much) {
  {
    const std::lock_guard lock(mutex);
    ++announced;
    bulk = much;
  }
  changed.notify_one();  // outside the mutex, which the woken thread wants
}

bool Consumer::Impl::wait(std::uint64_t seen, Clock::time_point deadline) {
  const auto news = [&] { return announced != seen || woken || closed; };
  std::unique_lock lock(mutex);
  if (!bulk && Clock::now() < deadline) {
    lock.unlock();
    const bool visited = io.visit(deadline, [&] {
      const std::lock_guard looking(mutex);
      return news();
    });
    lock.lock();
    if (visited && bulk) io.loop().hurry();
    if (visited) return news();
  }
  return changed.wait_until(lock, deadline, news);
}

Result<Batch> Consumer::Impl::poll(Duration timeout) {
  const auto deadline = client::deadline_after(Clock::now(), timeout);
  std::uint64_t seen = 0;
  while (true) {
    {
      const std::lock_guard lock(mutex);
      if (closed) return closed_error();
      if (std::exchange(woken, false)) return Batch();
      seen = announced;
    }
    if (auto taken = core.take()) return std::move(*taken);
    if (wait(seen, deadline)) continue;
    if (auto trouble = core.trouble()) return std::move(*trouble);
    return Batch();
  }
}

void Consumer::Impl::close() {
  {
    const std::lock_guard lock(mutex);
    if (closed) return;
    closed = true;
    changed.notify_all();
  }
  io.loop().interrupt();
  io.call(client::done_after(core.stop()));
  io.stop();
}

Result<Consumer> Consumer::create(ConsumerConfig config) {
  auto checked = client::check(config.validate());
  if (!checked) return checked.error();
  client::complete(config);
  auto impl = std::make_unique<Impl>(std::move(config));
  auto started = impl->call(impl->core.start());
  if (!started) return started.error();
  return Consumer(std::move(impl));
}

Consumer::Consumer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Consumer::Consumer(Consumer&&) noexcept = default;
Consumer& Consumer::operator=(Consumer&&) noexcept = default;
Consumer::~Consumer() = default;

Result<std::vector<std::int32_t>> Consumer::partitions(const std::string& topic) {
  const auto found = impl_->call(impl_->core.topic(topic));
  if (!found) return found.error();
  std::vector<std::int32_t> numbers;
  for (const auto& partition : (*found)->partitions) numbers.push_back(partition.partition);
  return numbers;
}

Result<void> Consumer::assign(const std::map<TopicPartition, Start>& partitions,
                              const std::vector<std::string>& whole_topics) {
  return impl_->call(impl_->core.assign(partitions, {whole_topics.begin(), whole_topics.end()}));
}

Result<void> Consumer::assign_topics(const std::map<std::string, Start>& topics) {
  return impl_->call(impl_->core.assign_topics(topics));
}

Result<Batch> Consumer::poll(Duration timeout) { return impl_->poll(timeout); }

Result<void> Consumer::seek(const TopicPartition& partition, Start to) {
  return impl_->call(impl_->core.seek(partition, to));
}

Result<void> Consumer::pause(std::span<const TopicPartition> partitions) {
  return impl_->core.set_paused({partitions.begin(), partitions.end()}, true);
}

Result<void> Consumer::resume(std::span<const TopicPartition> partitions) {
  auto resumed = impl_->core.set_paused({partitions.begin(), partitions.end()}, false);
  impl_->announce(false);  // what was fetched before the pause is there now
  return resumed;
}

std::map<TopicPartition, std::int64_t> Consumer::positions() const {
  return impl_->core.positions();
}

Result<std::map<TopicPartition, OffsetRange>> Consumer::offsets(
    std::span<const TopicPartition> partitions) {
  std::vector<TopicPartition> names(partitions.begin(), partitions.end());
  if (names.empty()) {
    for (const auto& [name, position] : positions()) names.push_back(name);
  }
  return impl_->call(impl_->core.offsets(std::move(names)));
}

Result<std::map<TopicPartition, TimedOffset>> Consumer::offsets_for_times(
    const std::map<TopicPartition, Timestamp>& times) {
  return impl_->call(impl_->core.offsets_for_times(times));
}

void Consumer::wakeup() noexcept {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->woken = true;
    impl_->changed.notify_all();
  }
  impl_->io.loop().interrupt();
}

Result<void> Consumer::close(Duration) {
  impl_->close();
  return {};
}

}  // namespace v1
}  // namespace mq
