#include "sim/topic_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "broker/membership.h"

namespace mq::sim {
namespace {

using namespace std::chrono_literals;
using protocol::WireError;

}  // namespace

TopicKeeper::TopicKeeper(BrokerMachine& machine, PresentBroker& present, SharedLedger& ledger)
    : machine_(machine), present_(present), ledger_(ledger) {
  draw_topics();
}

void TopicKeeper::draw_topics() {
  const auto count = machine_.random.between(1, 3);
  for (std::uint64_t i = 0; i < count; ++i) {
    SimTopic topic;
    topic.memory = machine_.random.chance(0.4);
    topic.name = fmt::format("{}-{}", topic.memory ? "memory" : "disk", i);
    topic.partitions = static_cast<std::int32_t>(machine_.random.between(1, 3));
    topic.overrides["durability"] = topic.memory ? "memory" : "disk";
    topic.overrides["segment.bytes"] = "1MiB";
    const bool retention = machine_.random.chance(0.2);
    topic.overrides["retention.age"] = retention ? "30s" : "forever";
    if (retention) ledger_.with_retention.insert(topic.name);
    topics_.push_back(std::move(topic));
  }
}

void TopicKeeper::start() {
  ended_ = false;
  machine_.spawn("topics", run());
}

asio::awaitable<void> TopicKeeper::run() {
  while (!ending_ && !machine_.failed()) {
    for (auto& topic : topics_) {
      if (topic.leaving) co_await remove(topic);
      if (!topic.leaving && topic.id.is_zero()) co_await make(topic);
    }
    co_await machine_.runtime.sleep_for(machine_.random.duration(10ms, 200ms));
  }
  ended_ = true;
}

void TopicKeeper::replace_one() {
  auto& topic = topics_[machine_.random.below(topics_.size())];
  if (topic.id.is_zero() || topic.leaving) return;
  machine_.simulator.trace(fmt::format("{} will be deleted and made again", topic.name));
  topic.leaving = true;
}

bool TopicKeeper::settled() const {
  return std::ranges::all_of(
      topics_, [](const auto& topic) { return !topic.id.is_zero() && !topic.leaving; });
}

/// What may go wrong with a change while the broker lives and its disk works.
void TopicKeeper::check_refusal(const SimTopic& topic, const protocol::Status& status) const {
  const auto error = status.error();
  const bool store = error == WireError::metadata_unavailable ||
                     error == WireError::metadata_outcome_unknown ||
                     error == WireError::not_controller;
  require((store && machine_.metadata_struck()) || error == WireError::storage_full ||
              error == WireError::timed_out || error == WireError::shutting_down,
          "{} was not changed: {}", topic.name, status.text);
}

asio::awaitable<void> TopicKeeper::make(SimTopic& topic) {
  if (!present_.serves()) co_return;
  const auto life = present_.number;
  protocol::NewTopic wanted;
  wanted.name = topic.name;
  wanted.partitions = topic.partitions;
  wanted.settings = topic.overrides;
  const auto deadline = machine_.runtime.now() + 10s;
  auto* const controller = this->controller();
  if (!controller) co_return;
  const auto made = co_await controller->create_topic(std::move(wanted), false, deadline);
  if (!present_.serves(life)) co_return;  // the next life knows what became of it
  if (!made.status.ok() && made.status.error() != WireError::topic_exists)
    co_return check_refusal(topic, made.status);
  topic.id = id_of(topic.name);
  require(!topic.id.is_zero() && (!made.status.ok() || made.id == topic.id),
          "MET-2: {} was made as {} and is {}", topic.name, made.id.hex(), topic.id.hex());
  require(!deleted_.contains(topic.id), "PAR-6: {} has its old uuid {} again", topic.name,
          topic.id.hex());
  machine_.simulator.trace(fmt::format("{} is {}", topic.name, topic.id.hex()));
}

asio::awaitable<void> TopicKeeper::remove(SimTopic& topic) {
  if (!present_.serves()) co_return;
  const auto life = present_.number;
  const auto deadline = machine_.runtime.now() + 10s;
  auto* const controller = this->controller();
  if (!controller) co_return;
  const auto removed = co_await controller->delete_topic(topic.name, deadline);
  if (!present_.serves(life)) co_return;
  // An earlier try may have done it.
  if (!removed.status.ok() && removed.status.error() != WireError::unknown_topic)
    co_return check_refusal(topic, removed.status);
  require(id_of(topic.name).is_zero(), "MET-2: {} was deleted and is there", topic.name);
  machine_.simulator.trace(fmt::format("{} is gone, which was {}", topic.name, topic.id.hex()));
  deleted_.insert(topic.id);
  topic.id = {};
  topic.leaving = false;
  ++ledger_.generations[topic.name];
}

/// Null while it has lost its session or waits for the store.
controller::Controller* TopicKeeper::controller() const {
  return present_.life->broker().core().membership->controller();
}

base::Uuid TopicKeeper::id_of(const std::string& name) const {
  const auto found = present_.life->broker().core().image()->find_topic(name);
  return found ? found->id : base::Uuid();
}

void TopicKeeper::check_started() {
  for (const auto& topic : topics_) {
    const auto id = id_of(topic.name);
    require(topic.id.is_zero() || topic.leaving || id == topic.id,
            "MET-1: {} was {} and is {} after a restart", topic.name, topic.id.hex(), id.hex());
    require(!deleted_.contains(id), "MET-2: {}, which was deleted, is back as {}", topic.name,
            id.hex());
  }
}

bool TopicKeeper::tidy() const {
  std::set<std::string> ids;
  for (const auto& topic : topics_) ids.insert(topic.id.hex());
  constexpr std::size_t kHexDigits = 32;
  const auto known = [&](std::string_view path, std::string_view folder) {
    if (!path.starts_with(folder) || path.size() < folder.size() + kHexDigits) return true;
    return ids.contains(std::string(path.substr(folder.size(), kHexDigits)));
  };
  for (const auto& [path, node] : machine_.metadata->nodes) {
    if (path.starts_with("/deleting/") || !known(path, "/state/")) return false;
  }
  const auto files = machine_.files.files_below("/disk");
  return std::ranges::all_of(files, [&](const auto& file) {
    return file.find('/', 6) == file.npos || known(file, "/disk/");
  });
}

}  // namespace mq::sim
