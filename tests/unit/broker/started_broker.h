#pragma once

#include <gtest/gtest.h>

#include "broker_world.h"

namespace mq::testing {

/// A broker that runs, with as many workers as the parameter says, and its clients.
struct StartedBroker : ::testing::TestWithParam<std::size_t> {
  void SetUp() override { ASSERT_TRUE(world.start()) << world.broker->refusal().text; }
  RawClient client(std::uint64_t instance = 1) { return world.client(instance); }

  BrokerWorld world{1, GetParam()};
};

}  // namespace mq::testing
