#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/core/client_core.h"
#include "client/core/fetch_buffer.h"
#include "client/core/fetcher.h"
#include "client/core/offset_lookup.h"

namespace mq::client {

/// A consumer without threads: the shell around it blocks, the simulator drives it directly.
/// take(), positions(), set_paused() and trouble() belong to the one thread that reads; the rest to
/// the runtime. Both may be the same thread.
class ConsumerCore {
 public:
  ConsumerCore(base::Runtime& runtime, base::Network& network, ConsumerConfig config);

  asio::awaitable<Result<void>> start() { return core_.start(); }
  asio::awaitable<Result<TopicPtr>> topic(std::string name);
  /// What `whole_topics` have besides, now or later, is read from its beginning.
  asio::awaitable<Result<void>> assign(std::map<TopicPartition, Start> partitions,
                                       std::set<std::string> whole_topics = {});
  /// Every partition of these topics, and those that are added later from their beginning.
  asio::awaitable<Result<void>> assign_topics(std::map<std::string, Start> topics);
  asio::awaitable<Result<void>> seek(TopicPartition partition, Start to);
  asio::awaitable<Result<std::map<TopicPartition, OffsetRange>>> offsets(
      std::vector<TopicPartition> partitions);
  asio::awaitable<Result<std::map<TopicPartition, TimedOffset>>> offsets_for_times(
      std::map<TopicPartition, Timestamp> times);
  asio::awaitable<void> stop();

  /// The next records, or an error of one partition; nothing when there is nothing now. Never
  /// waits: on_data() tells.
  [[nodiscard]] std::optional<Result<Batch>> take();
  void on_data(std::function<void(std::size_t)> call) { buffer_.on_data(std::move(call)); }
  Result<void> set_paused(const std::vector<TopicPartition>& partitions, bool paused);
  [[nodiscard]] std::map<TopicPartition, std::int64_t> positions() const {
    return buffer_.positions();
  }
  [[nodiscard]] std::optional<Error> trouble() const { return fetcher_.trouble(); }
  [[nodiscard]] ClientCore& client() noexcept { return core_; }
  [[nodiscard]] const ConsumerConfig& config() const noexcept { return config_; }

 private:
  [[nodiscard]] base::TimePoint deadline() const;
  void wake_fetcher();
  void read_added();
  using Topics = std::map<std::string, TopicPtr>;
  /// Each name once: the answer about a topic may be long.
  asio::awaitable<Result<Topics>> look_up(std::set<std::string> names);

  ConsumerConfig config_;
  ClientCore core_;
  FetchBuffer buffer_;
  Fetcher fetcher_;
  OffsetLookup lookup_;
  std::set<base::Uuid> whole_topics_;  ///< on the runtime
  std::shared_ptr<void> alive_ =
      std::make_shared<int>(0);  // what is posted does nothing once this is gone
};

}  // namespace mq::client
