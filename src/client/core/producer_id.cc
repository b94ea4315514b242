#include "client/core/producer_id.h"

#include "client/core/ask_any.h"
#include "client/core/error.h"
#include "protocol/init_producer.h"

namespace mq::client {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPauseMin{50};
constexpr milliseconds kPauseMax{1000};

}  // namespace

ProducerId::ProducerId(ClientCore& core)
    : core_(core), tasks_(core.runtime), stopping_(core.runtime) {}

void ProducerId::want() {
  if (id_ || asking_ || stopped_) return;
  asking_ = true;
  tasks_.spawn("producer id", ask());
}

asio::awaitable<void> ProducerId::ask() {
  milliseconds pause = kPauseMin;
  while (!stopped_) {
    auto answer = co_await ask_once();
    if (stopped_) break;
    if (answer) {
      id_ = *answer;
      trouble_.clear();
      break;
    }
    const Error& error = answer.error();
    trouble_ = "no producer id: " + to_string(error);
    if (!error.retriable) {
      refusal_ = error;
      break;
    }
    core_.log.warning("producer id", trouble_ + "; trying again");
    co_await stopping_.wait_until(core_.runtime.now() + pause);
    pause = std::min(pause * 2, kPauseMax);
  }
  asking_ = false;
  if (!stopped_ && on_change_) on_change_();
}

asio::awaitable<Result<model::ProducerIdentity>> ProducerId::ask_once() {
  const base::TimePoint deadline = core_.runtime.now() + core_.config.request_timeout;
  std::function<net::ClientRequest()> make = [this, deadline] {
    protocol::InitProducerRequest request;
    fill_envelope(request.envelope, core_.config, core_.runtime.now(), deadline);
    net::ClientRequest message;
    message.api = protocol::ApiKey::init_producer;
    message.header = protocol::encode(request);
    return message;
  };
  const auto answer = co_await AskAny<protocol::InitProducerResponse>::ask(
      core_.runtime, core_.pool, tasks_, std::move(make), &protocol::decode_init_producer_response,
      deadline);
  if (!answer) co_return answer.error();
  if (answer->producer_id < 0 || answer->producer_epoch < 0)
    co_return make_error(Errc::protocol_violation, "an answer without a producer id");
  co_return model::ProducerIdentity{answer->producer_id, answer->producer_epoch};
}

void ProducerId::begin_stop() {
  stopped_ = true;
  stopping_.notify_all();
}

asio::awaitable<void> ProducerId::stopped() { co_await tasks_.wait(); }

}  // namespace mq::client
