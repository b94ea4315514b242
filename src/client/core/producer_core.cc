#include "client/core/producer_core.h"

#include <fmt/format.h>

#include "client/core/error.h"

namespace mq::client {

ProducerCore::ProducerCore(base::Runtime& runtime, base::Network& network, ProducerConfig config)
    : config_(std::move(config)),
      core_(runtime, network, config_),
      accumulator_(runtime, config_),
      sender_(core_, config_, accumulator_) {
  accumulator_.on_news([this] {
    core_.runtime.post([this, alive = std::weak_ptr<void>(alive_)] {
      if (!alive.expired()) sender_.drain();
    });
  });
  sender_.on_outcome([this](const std::vector<ProduceBatchPtr>& batches) {
    for (const ProduceBatchPtr& batch : batches) {
      deliver_immediate(*batch, batch->partition->topic->name, batch->partition->id.partition);
      deliver(*batch, config_, nullptr);
    }
  });
}

asio::awaitable<Result<ProducerTopicPtr>> ProducerCore::topic(std::string name) {
  const base::TimePoint deadline = core_.runtime.now() + config_.request_timeout;
  const auto info = co_await core_.metadata.lookup(std::move(name), deadline);
  if (!info) co_return info.error();
  if ((*info)->partitions.empty()) {
    co_return make_error(Errc::unknown_partition,
                         fmt::format("topic '{}' has no partitions", (*info)->name));
  }
  co_return accumulator_.topic(**info);
}

ProducerStats ProducerCore::stats() const {
  ProducerStats stats = sender_.stats();
  stats.records_accepted = accumulator_.accepted_records();
  stats.bytes_buffered = accumulator_.buffered_bytes();
  return stats;
}

asio::awaitable<std::size_t> ProducerCore::stop() {
  accumulator_.close();
  const std::size_t left = accumulator_.pending_records();
  sender_.fail_all(
      make_error(Errc::closed, "the producer was closed before the record was acknowledged"));
  sender_.begin_stop();
  co_await core_.stop();
  co_await sender_.stopped();
  co_return left;
}

void deliver(ProduceBatch& batch, const ProducerConfig& config,
             const std::function<void(const std::string&)>& caught) {
  deliver(batch, batch.partition->topic->name, batch.partition->id.partition, config.on_delivery,
          caught);
}

}  // namespace mq::client
