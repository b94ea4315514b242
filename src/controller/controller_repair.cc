#include <algorithm>

#include "base/log.h"
#include "controller/controller_impl.h"

// Whatever the store says now becomes true here.
namespace mq::controller {
namespace {

constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPause{60};

}  // namespace

asio::awaitable<Result<void>> Controller::Impl::finish_half_done() {
  recovered_ = true;
  const auto turn = co_await queue_.wait_for_turn();
  for (const auto& id : topics_being_deleted()) finish_later(id, id.hex());
  const auto repaired = co_await repair();
  if (!repaired) want_repair();
  co_return repaired;
}

/// Before a change: nobody may be wrong about which names are taken. Logs and nodes that are only
/// left over do not stop it.
asio::awaitable<Result<void>> Controller::Impl::repair_if_needed() {
  if (!repair_needed_) co_return Result<void>();
  const auto repaired = co_await repair();
  if (!repaired && !names_unsure_) co_return Result<void>();
  co_return repaired;
}

asio::awaitable<Result<void>> Controller::Impl::repair() {
  MQ_CO_TRY_VOID(co_await repair_deletes());
  MQ_CO_TRY_VOID(co_await repair_creates());
  MQ_CO_TRY_VOID(co_await repair_states());
  repair_needed_ = false;
  names_unsure_ = false;
  co_return Result<void>();
}

asio::awaitable<Result<void>> Controller::Impl::repair_deletes() {
  const auto ids = co_await list_deleting(store_);
  if (!ids) co_return ids.error();
  deleting_ = std::set(ids->begin(), ids->end());
  for (const auto& id : *ids) {
    if (finishing_.contains(id) || postponed_.contains(id)) continue;
    if (const auto topic = image()->find_topic(id))
      publish(image()->without_topic(topic->name, next_version()));
    const auto finished = co_await finish_delete(id);
    if (!finished && postponed_.contains(id)) continue;
    MQ_CO_TRY_VOID(finished);
    base::log_info("controller", "finished deleting topic {}", id.hex());
  }
  co_return Result<void>();
}

/// Topics whose creation was confirmed after its answer had been given up.
asio::awaitable<Result<void>> Controller::Impl::repair_creates() {
  const auto names = co_await list_topics(store_);
  if (!names) co_return names.error();
  for (const auto& name : *names) {
    if (image()->find_topic(name)) continue;
    const auto tree = co_await load_topic(store_, name);
    if (!tree) co_return tree.error();
    const auto opened = co_await open(*tree);
    if (!opened.ok()) co_return make_error_code(MetadataErrc::unavailable);
    base::log_info("controller", "finished creating topic {}", name);
  }
  co_return Result<void>();
}

/// State nodes of topics that never became real.
asio::awaitable<Result<void>> Controller::Impl::repair_states() {
  const auto ids = co_await list_state(store_);
  if (!ids) co_return ids.error();
  for (const auto& id : *ids) {
    if (image()->find_topic(id)) continue;
    MQ_CO_TRY_VOID(co_await nodes_.sweep_state(id));
    base::log_info("controller", "swept the state of {}, which is no topic", id.hex());
  }
  co_return Result<void>();
}

void Controller::Impl::want_repair() {
  repair_needed_ = true;
  if (retrying_ || stopping_) return;
  retrying_ = true;
  tasks_.spawn("finishing half-done changes", retry_repair());
}

asio::awaitable<void> Controller::Impl::retry_repair() {
  auto pause = kFirstPause;
  while (repair_needed_ && !stopping_ && store_.online()) {
    const bool stopped = co_await stopped_.wait_until(home_.now() + pause);
    if (stopped) break;
    pause = std::min(2 * pause, kLongestPause);
    const auto turn = co_await queue_.wait_for_turn();
    if (stopping_ || !repair_needed_) break;
    const auto repaired = co_await repair();
    if (!repaired)
      base::log_warning("controller", "a half-done change is not finished yet: {}",
                        repaired.error().message());
  }
  retrying_ = false;
}

}  // namespace mq::controller
