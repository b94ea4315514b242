#pragma once

#include <functional>
#include <string>

#include "client/core/accumulator.h"
#include "client/core/client_core.h"
#include "client/core/produce_sender.h"

namespace mq::client {

/// A producer without threads: the shell around it blocks and calls back, the simulator drives it
/// directly.
///
///   co_await core.start();
///   auto topic = co_await core.topic("orders");
///   AppendRequest request; ...
///   core.append(**topic, request, refusal);   // any thread
///
/// append(), begin_flush(), flushed() and the counts may be called from any thread, the rest on the
/// runtime.
class ProducerCore {
 public:
  ProducerCore(base::Runtime& runtime, base::Network& network, ProducerConfig config);

  asio::awaitable<Result<void>> start() { return core_.start(); }
  asio::awaitable<Result<ProducerTopicPtr>> topic(std::string name);
  [[nodiscard]] Appended append(ProducerTopic& topic, AppendRequest& request,
                                std::optional<Error>& refusal) {
    return accumulator_.append(topic, request, refusal);
  }
  [[nodiscard]] Appended append(ProducerTopic& topic, AppendRequest& request, Error& refusal) {
    std::optional<Error> why;
    const Appended appended = accumulator_.append(topic, request, why);
    if (why) refusal = std::move(*why);
    return appended;
  }
  std::uint64_t begin_flush() { return accumulator_.begin_flush(); }
  [[nodiscard]] bool flushed(std::uint64_t flush) const { return accumulator_.flushed(flush); }
  [[nodiscard]] Accumulator& accumulator() noexcept { return accumulator_; }
  [[nodiscard]] ClientCore& client() noexcept { return core_; }
  [[nodiscard]] const ProducerConfig& config() const noexcept { return config_; }

  /// Batches with their outcome, on the runtime: give them to deliver(). Without it they are
  /// delivered on the spot.
  void on_outcome(ProduceSender::Sink sink) { sender_.on_outcome(std::move(sink)); }
  /// ProduceSender::on_idle().
  void on_idle(std::function<void()> call) { sender_.on_idle(std::move(call)); }
  [[nodiscard]] ProducerStats stats() const;

  /// Refuses new records, fails what has no outcome with `closed` and disconnects. Returns how many
  /// records that were.
  asio::awaitable<std::size_t> stop();

 private:
  ProducerConfig config_;
  ClientCore core_;
  Accumulator accumulator_;
  ProduceSender sender_;
  std::shared_ptr<void> alive_ =
      std::make_shared<int>(0);  // what is posted does nothing once this is gone
};

/// Delivers a batch to whoever waits for its records.
void deliver(ProduceBatch& batch, const ProducerConfig& config,
             const std::function<void(const std::string&)>& caught);

}  // namespace mq::client
