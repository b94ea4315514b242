#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/real/asio_network.h"
#include "base/real/real_runtime.h"
#include "support/run.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

/// The worlds that code on the seams of base/ runs in. What one promises the other has to keep, so
/// their tests are the same.
namespace mq::base {

struct RealWorld {
  RealRuntime runtime;
  AsioNetwork client{runtime};
  AsioNetwork server{runtime};
  std::string server_host = "127.0.0.1";
  template <class T>
  T run(asio::awaitable<T> task) {
    return testing::run(runtime, std::move(task));
  }
};

struct SimWorld {
  testing::Simulator simulator{11};
  testing::SimRuntime runtime{simulator};
  testing::SimNetwork network{simulator};
  std::unique_ptr<Network> client_network = network.join("client", runtime);
  std::unique_ptr<Network> server_network = network.join("server", runtime);
  Network& client = *client_network;
  Network& server = *server_network;
  std::string server_host = "server";
  template <class T>
  T run(asio::awaitable<T> task) {
    return testing::run(simulator, std::move(task));
  }
};

using BothWorlds = ::testing::Types<RealWorld, SimWorld>;

template <class World>
class WorldTest : public ::testing::Test {
 protected:
  World world;
};

}  // namespace mq::base
