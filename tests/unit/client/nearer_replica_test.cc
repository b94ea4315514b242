// Consumers that read from a replica near them.
#include "several_brokers_fixture.h"

namespace mq::testing {
namespace {

using std::chrono::seconds;

/// A consumer in the rack of broker 3; broker 1 leads.
class NearerReplicaTest : public SeveralBrokersTest {
 protected:
  void SetUp() override {
    add_topic("orders", {1});
    cluster->nearer = 3;
    start_producer(config<ProducerConfig>());
    auto made = config<ConsumerConfig>();
    made.rack = "c";
    consumer = std::make_unique<client::ConsumerCore>(client_runtime, *client_network, made);
    ASSERT_TRUE(run(simulator, consumer->start()));
    ASSERT_TRUE(run(simulator, consumer->assign({{{"orders", 0}, {Start::earliest}}})));
  }
  void write(const std::string& value) { send(*topic("orders"), value, 0); }
  std::string read() {
    std::optional<Result<Batch>> taken;
    simulator.run_until([&] { return (taken = consumer->take()).has_value(); }, seconds(5));
    return taken && *taken ? std::string(as_text(*(**taken)[0].value)) : "nothing";
  }
  std::int64_t position() { return consumer->positions().at({"orders", 0}); }
  int asked(int id) { return broker(id).fetch_requests; }
};

TEST_F(NearerReplicaTest, IsReadOnceTheLeaderHasNamedIt) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  const int at_leader = asked(1);
  for (int i = 0; i < 20; ++i) {
    write(fmt::format("more {}", i));
    EXPECT_EQ(read(), fmt::format("more {}", i));
  }
  EXPECT_EQ(asked(1), at_leader);
  EXPECT_GE(asked(3), 20);
  EXPECT_EQ(position(), 21);
}

TEST_F(NearerReplicaTest, WhatItDoesNotHaveTheLeaderHas) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  cluster->nearer_end = 0;  // it says that it does not have what comes next
  write("two");
  EXPECT_EQ(read(), "two");
  EXPECT_EQ(position(), 2);
  // For a while nobody else is asked; then it is tried again.
  const int before = asked(3);
  simulator.run_for(seconds(5));
  EXPECT_EQ(asked(3), before);
  cluster->nearer_end = 1000;
  simulator.run_for(seconds(7));
  EXPECT_GT(asked(3), before);
  write("three");
  EXPECT_EQ(read(), "three");
}

TEST_F(NearerReplicaTest, WithoutItTheLeaderIsRead) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  ASSERT_GT(asked(3), 0);
  silence(3);
  write("two");
  EXPECT_EQ(read(), "two");
}

TEST_F(NearerReplicaTest, OfOneThatIsAwayFromTheStartNothingIsLost) {
  silence(3);
  for (const std::string value : {"one", "two", "three"}) {
    write(value);
    EXPECT_EQ(read(), value);
  }
}

TEST_F(NearerReplicaTest, AnotherLeaderChangesNothingForIt) {
  write("one");
  EXPECT_EQ(read(), "one");
  simulator.run_for(seconds(2));
  move_leader("orders", 0, 2);
  write("two");
  EXPECT_EQ(read(), "two");
  move_leader("orders", 0, 3);  // which is the one that is read
  write("three");
  EXPECT_EQ(read(), "three");
  move_leader("orders", 0, 1);
  write("four");
  EXPECT_EQ(read(), "four");
  EXPECT_EQ(position(), 4);
}

}  // namespace
}  // namespace mq::testing
