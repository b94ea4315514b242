#include "sim/worlds.h"

#include "sim/broker_world.h"
#include "sim/cluster_world.h"
#include "sim/storage_world.h"

namespace mq::sim {

const std::vector<World>& worlds() {
  static const std::vector<World> all{{"storage", run_storage_world},
                                      {"broker", run_broker_world},
                                      {"cluster", run_cluster_world},
                                      {"replicated", run_replicated_world}};
  return all;
}

}  // namespace mq::sim
