#pragma once

#include <map>
#include <optional>
#include <vector>

#include "controller/live_brokers.h"
#include "controller/node_writer.h"
#include "metadata/cluster_image.h"

namespace mq::controller {

/// A broker as the store knows it.
struct Registration {
  model::BrokerEpoch epoch;
  base::Uuid incarnation;  ///< of the process
  base::Endpoint advertised;
  std::string rack;
  bool alive = false;
  /// Of the cluster image that is in force on all of its workers, as its last pull says.
  std::uint64_t applied = 0;
  bool leaving = false;  ///< it is about to stop
};

/// The brokers of the cluster, as read from the store: every one that ever registered, and whether
/// it lives. On the controller's runtime.
class Members {
 public:
  explicit Members(metadata::MetadataStore& store) : store_(store) {}

  /// Reads all of them. True: something is different now.
  asio::awaitable<Result<bool>> refresh();

  /// Null: never registered.
  [[nodiscard]] const Registration* find(model::BrokerId broker) const;
  /// Whether the broker lives and this is the epoch of its registration.
  [[nodiscard]] bool is_live(model::BrokerId broker, model::BrokerEpoch epoch) const;
  [[nodiscard]] std::vector<metadata::BrokerInfo> infos() const;
  /// All that live, for elections; as of now.
  [[nodiscard]] const LiveBrokers& live_brokers() const noexcept { return live_; }

  void applied(model::BrokerId broker, std::uint64_t version);
  /// Until its next registration.
  void leaving(model::BrokerId broker);

 private:
  asio::awaitable<Result<std::optional<Registration>>> load(model::BrokerId broker);
  void count_live();

  metadata::MetadataStore& store_;
  std::map<model::BrokerId, Registration> brokers_;
  LiveBrokers live_;
};

}  // namespace mq::controller
