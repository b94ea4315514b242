#include "controller/members.h"

#include "base/log.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;

/// A broker that registers between the two reads is read again.
constexpr int kReadTries = 5;

/// What both nodes of one broker say; nothing if they are not of one registration.
std::optional<Registration> combine(const metadata::Node& epoch_node,
                                    const std::optional<metadata::Node>& live_node) {
  const auto epoch = metadata::decode_broker_epoch(epoch_node.value);
  if (!epoch) return std::nullopt;
  Registration registration;
  registration.epoch = model::BrokerEpoch(epoch_node.version);
  registration.incarnation = epoch->incarnation;
  registration.advertised = epoch->advertised;
  registration.rack = epoch->rack;
  if (!live_node) return registration;
  const auto live = metadata::decode_broker_live(live_node->value);
  if (!live || live->writer != epoch->writer) return std::nullopt;
  registration.alive = true;
  registration.advertised = live->advertised;
  return registration;
}

std::vector<model::BrokerId> to_brokers(const std::vector<std::string>& names) {
  std::vector<model::BrokerId> brokers;
  for (const auto& name : names) {
    if (const auto broker = layout::parse_broker(name))
      brokers.push_back(*broker);
    else
      base::log_warning("controller", "{}/{} is no broker", layout::kBrokersEpoch,
                        base::printable(name, 100));
  }
  return brokers;
}

}  // namespace

asio::awaitable<Result<bool>> Members::refresh() {
  const auto names = co_await store_.children(std::string(layout::kBrokersEpoch));
  if (!names) co_return Result<bool>(boost::system::in_place_error, names.error());
  std::map<model::BrokerId, Registration> found;
  for (const auto broker : to_brokers(*names)) {
    const auto loaded = co_await load(broker);
    if (!loaded) co_return Result<bool>(boost::system::in_place_error, loaded.error());
    if (*loaded) found.emplace(broker, **loaded);
  }
  bool changed = found.size() != brokers_.size();
  for (auto& [broker, registration] : found) {
    const auto* before = find(broker);
    const bool same = before != nullptr && before->epoch == registration.epoch &&
                      before->alive == registration.alive &&
                      before->advertised == registration.advertised &&
                      before->rack == registration.rack;
    changed = changed || !same;
    if (before != nullptr && before->epoch == registration.epoch) {
      registration.applied = before->applied;
      registration.leaving = before->leaving;
    }
  }
  brokers_ = std::move(found);
  count_live();
  co_return changed;
}

/// Its epoch node first: of a broker that registers meanwhile the two are of different writes.
asio::awaitable<Result<std::optional<Registration>>> Members::load(model::BrokerId broker) {
  std::optional<Registration> registration;
  for (int tries = 0; tries < kReadTries && !registration; ++tries) {
    std::vector<std::string> paths{layout::broker_epoch(broker), layout::broker_live(broker)};
    const auto nodes = co_await store_.get_many(std::move(paths));
    if (!nodes) co_return nodes.error();
    const auto& epoch = nodes->front();
    if (!epoch) co_return std::optional<Registration>();
    registration = combine(*epoch, nodes->back());
    if (!registration && tries + 1 == kReadTries) {
      base::log_error("controller", "the nodes of broker {} do not fit together", broker);
      registration = combine(*epoch, std::nullopt);
    }
  }
  co_return registration;
}

void Members::count_live() {
  live_ = {};
  for (const auto& [broker, registration] : brokers_) {
    if (registration.alive) live_.add(broker, registration.epoch, registration.leaving);
  }
}

const Registration* Members::find(model::BrokerId broker) const {
  const auto found = brokers_.find(broker);
  return found == brokers_.end() ? nullptr : &found->second;
}

bool Members::is_live(model::BrokerId broker, model::BrokerEpoch epoch) const {
  const auto* registration = find(broker);
  return registration != nullptr && registration->alive && registration->epoch == epoch;
}

std::vector<metadata::BrokerInfo> Members::infos() const {
  std::vector<metadata::BrokerInfo> infos;
  for (const auto& [broker, registration] : brokers_)
    infos.push_back({broker, registration.epoch, registration.advertised, registration.alive,
                     registration.rack});
  return infos;
}

void Members::applied(model::BrokerId broker, std::uint64_t version) {
  const auto found = brokers_.find(broker);
  if (found != brokers_.end() && found->second.applied < version) found->second.applied = version;
}

void Members::leaving(model::BrokerId broker) {
  const auto found = brokers_.find(broker);
  if (found == brokers_.end()) return;
  found->second.leaving = true;
  count_live();
}

}  // namespace mq::controller
