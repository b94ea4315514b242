// Power cuts under load: real brokers on real file systems in loop devices. What was acknowledged
// under durability `disk` is there after each, in order and once; of what was under `memory` a
// prefix is.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <set>

#include "integration/faults/broker_process.h"
#include "integration/faults/client_support.h"
#include "integration/faults/loop_disk.h"
#include "integration/faults/numbered_load.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t kDiskPartitions = 3;

int rounds() {
  const char* const text = std::getenv("MQ_FAULT_ROUNDS");
  return text == nullptr ? 5 : std::atoi(text) / 10 + 1;
}

std::uint64_t seed() {
  const char* const text = std::getenv("MQ_FAULT_SEED");
  return text == nullptr ? std::random_device{}() : std::strtoull(text, nullptr, 10);
}

void create_topic(const std::string& address, const std::string& name, std::int32_t partitions) {
  auto admin = must(Admin::create(quiet<ClientConfig>(address)));
  NewTopic topic(name);
  topic.partitions = partitions;
  topic.config = {{"durability", name}, {"segment.bytes", "1MiB"}};
  for (const auto& [item, created] : admin.create_topics({topic}))
    ASSERT_TRUE(created) << item << ": " << to_string(created.error());
}

/// IDM-2, CLI-2: each number once, and rising.
void check_order(const NumberedLoad::Numbers& found) {
  std::set<std::uint64_t> seen;
  for (const auto& [offset, n] : found) {
    ASSERT_TRUE(seen.insert(n).second) << "record " << n << " is there twice, offset " << offset;
    ASSERT_EQ(*seen.rbegin(), n) << "offset " << offset << " is out of order";
  }
}

void check_complete(const NumberedLoad::Numbers& found, const NumberedLoad::Numbers& acknowledged) {
  for (const auto& [offset, n] : acknowledged) {
    const auto at = found.find(offset);
    ASSERT_TRUE(at != found.end()) << "offset " << offset << " (record " << n << ") is lost";
    ASSERT_EQ(at->second, n) << "offset " << offset;
  }
}

class PowerCut : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto why = LoopDisk::missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
    LoopDisk::keep_mounts_private();
  }
};

// REC-1, REC-2, REC-3, REC-8
TEST_P(PowerCut, WhatWasAcknowledgedUnderDiskIsThere) {
  const std::uint64_t used_seed = seed();
  std::mt19937_64 random(used_seed);
  SCOPED_TRACE("MQ_FAULT_SEED=" + std::to_string(used_seed));
  BrokerProcess broker;
  LoopDisk disk(GetParam(), broker.data());
  broker.start();
  create_topic(broker.address(), "disk", kDiskPartitions);
  create_topic(broker.address(), "memory", 1);
  std::size_t said = broker.log().size();
  {
    NumberedLoad safe(broker.address(), "disk", kDiskPartitions);
    NumberedLoad fast(broker.address(), "memory", 1);
    for (int round = 0; round < rounds() && !HasFailure(); ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 400));
      disk.cut_power(random() % 3 == 0);
      // A while on a dead disk: nothing more may be promised.
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 30));
      broker.kill9();
      disk.power_on();
      std::map<std::int32_t, NumberedLoad::Numbers> before;
      for (std::int32_t p = 0; p < kDiskPartitions; ++p) before[p] = safe.acknowledged(p);
      broker.start();
      for (std::int32_t p = 0; p < kDiskPartitions; ++p) {
        SCOPED_TRACE("partition " + std::to_string(p));
        const auto found = read_numbers(broker.address(), {"disk", p});
        check_complete(found, before[p]);
        check_order(found);
      }
      check_order(read_numbers(broker.address(), {"memory", 0}));
      const auto log = broker.log();
      EXPECT_EQ(log.find("orrupt", said), std::string::npos) << log.substr(said);
      said = log.size();
    }
    safe.finish();
    fast.finish();
    EXPECT_EQ(safe.results(), safe.accepted());  // CLI-1
    EXPECT_EQ(fast.results(), fast.accepted());
    EXPECT_EQ(safe.failed(), 0u);
    EXPECT_GT(safe.accepted(), 100u);
    for (std::int32_t p = 0; p < kDiskPartitions; ++p)
      check_complete(read_numbers(broker.address(), {"disk", p}), safe.acknowledged(p));
  }
  EXPECT_EQ(broker.stop(), 0);
  if (HasFailure()) std::cerr << broker.log();
}

INSTANTIATE_TEST_SUITE_P(FileSystems, PowerCut, ::testing::Values("ext4", "xfs"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mq::faults
