#include "controller/producer_ids.h"

#include "base/mutants.h"
#include "metadata/node_values.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

using metadata::MetadataErrc;

/// Another broker may take a block at the same moment; one of them wins each time.
constexpr int kTries = 20;
constexpr std::chrono::seconds kTakeAgain{1};

}  // namespace

asio::awaitable<Result<std::int64_t>> ProducerIds::next() {
  const auto id = co_await take();
  want_stock();
  co_return id;
}

asio::awaitable<Result<std::int64_t>> ProducerIds::take() {
  const auto turn = co_await turns_.wait_for_turn();
  if (current_.next == current_.end) current_ = std::exchange(ahead_, {});
  if (current_.next == current_.end) {
    const auto taken = co_await take_block();
    if (!taken) co_return taken.error();
    current_ = *taken;
  }
  co_return current_.next++;
}

// The stock

void ProducerIds::want_stock() {
  if (!keep_stock_ || stopping_ || filling_ || ahead_.next != ahead_.end) return;
  filling_ = true;
  tasks_.spawn("taking producer ids", fill_stock());
}

asio::awaitable<void> ProducerIds::fill_stock() {
  while (!stopping_) {
    const auto taken = co_await take_ahead();
    if (taken) break;
    const auto due = home_.now() + kTakeAgain;
    bool in_time = true;
    while (in_time && !stopping_) in_time = co_await stopped_.wait_until(due);
  }
  filling_ = false;
}

asio::awaitable<Result<void>> ProducerIds::take_ahead() {
  const auto turn = co_await turns_.wait_for_turn();
  if (ahead_.next != ahead_.end) co_return Result<void>();
  const auto taken = co_await take_block();
  if (!taken) co_return taken.error();
  ahead_ = *taken;
  co_return Result<void>();
}

asio::awaitable<void> ProducerIds::stop() {
  stopping_ = true;
  writer_.hurry();
  stopped_.notify_all();
  co_await tasks_.wait();
}

asio::awaitable<Result<ProducerIds::Block>> ProducerIds::take_block() {
  const std::string path(metadata::layout::kProducerIds);
  for (int tries = 0; tries < kTries; ++tries) {
    const auto node = co_await store_.get(path);
    const bool missing = !node && node.error() == make_error_code(MetadataErrc::not_found);
    if (!node && !missing) co_return node.error();
    metadata::ProducerIdsValue value;
    if (node) {
      MQ_CO_TRY(value, metadata::decode_producer_ids(node->value));
    }
    const std::int64_t first = value.next_id;
    value.writer = writer_.next_tag();
    value.next_id = first + block_;
    std::vector<metadata::Operation> operations;
    if (missing) {
      operations.emplace_back(metadata::Create(path, metadata::encode(value)));
    } else {
      operations.emplace_back(metadata::SetValue(path, metadata::encode(value), node->version));
    }
    const auto done = co_await writer_.commit(std::move(operations), path, value.writer);
    if (!done) co_return done.error();
    if (done->applied()) {
      const Block taken{first, first + block_};
      co_return taken;
    }
    const Error refused = done->first_error();
    const bool raced = refused == make_error_code(MetadataErrc::bad_version) ||
                       refused == make_error_code(MetadataErrc::already_exists);
    if (!raced) co_return refused;
  }
  co_return make_error_code(MetadataErrc::unavailable);
}

}  // namespace mq::controller
