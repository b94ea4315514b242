#include "producer_fixture.h"

namespace mq::testing {
namespace {

using client::Appended;
using protocol::Status;
using protocol::WireError;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// One world of random refusals, lost answers and broken connections.
class RandomWorld : public ProducerWorld {
 public:
  explicit RandomWorld(std::uint64_t seed) : ProducerWorld(seed), random_(seed * 77 + 1) {}
  void TestBody() override {
    broker->add_topic("orders", 3);
    idempotent = random_.chance(0.5);
    auto made = producer_config();
    made.batch_bytes = 1024;
    made.buffer_bytes = 50'000;
    made.linger = milliseconds(random_.below(3) * 5);
    made.request_timeout = seconds(2);
    made.compression = static_cast<Compression>(random_.below(3));
    start(made);
    const auto orders = topic("orders");
    script();
    send_all(*orders);
    broker->refuse = nullptr;
    broker->lose = nullptr;
    ASSERT_TRUE(wait_for_results());
    for (int partition = 0; partition < 3; ++partition) check(partition);
    EXPECT_EQ(core->accumulator().buffered_bytes(), 0u);
  }

 private:
  void script() {
    broker->refuse = [this](const FakeBroker::Produced&) -> std::optional<Status> {
      if (random_.chance(0.1)) return Status::of(WireError::storage_full, "no space", 1);
      if (random_.chance(0.05)) return Status::of(WireError::overloaded, "busy", 1);
      if (random_.chance(0.02)) return Status::of(WireError::invalid_request, "no", 1);
      return std::nullopt;
    };
    broker->lose = [this](const FakeBroker::Produced&) { return random_.chance(0.03); };
  }

  void send_all(client::ProducerTopic& orders) {
    for (int i = 0; i < 600; ++i) {
      const int partition = static_cast<int>(random_.below(3));
      const std::string value = "r" + std::to_string(i) + std::string(random_.below(300), 'x');
      for (int tries = 0; send(orders, value, partition) != Appended::accepted; ++tries) {
        ASSERT_LT(tries, 10'000);
        simulator.run_for(milliseconds(20));
      }
      sent_[partition].push_back(value);
      if (random_.chance(0.2)) simulator.run_for(std::chrono::microseconds(random_.below(2000)));
      if (random_.chance(0.01)) network.reset_connections("client");
    }
  }

  /// CLI-1, CLI-2: one result each, in order; what was delivered is where the result says, and the
  /// last copies of the records lie in the order in which they were sent.
  void check(int partition) {
    EXPECT_EQ(order[partition], sent_[partition]);
    const auto stored = broker->values("orders", partition);
    std::map<std::string, std::size_t> last;
    for (std::size_t i = 0; i < stored.size(); ++i) {
      EXPECT_FALSE(idempotent && last.contains(stored[i])) << stored[i] << " is there twice";
      last[stored[i]] = i;
    }
    std::size_t floor = 0;
    for (const std::string& value : sent_[partition]) {
      ASSERT_EQ(results[value].size(), 1u);
      const auto& result = results[value].front();
      if (!result) continue;
      ASSERT_TRUE(last.contains(value));
      EXPECT_EQ(stored.at(static_cast<std::size_t>(result->offset)), value);
      EXPECT_GE(last[value], floor) << value << " came out of order";
      floor = last[value];
    }
  }

  SimRandom random_;
  std::map<int, std::vector<std::string>> sent_;
};

TEST(ProducerRandom, EveryRecordHasOneResultAndKeepsItsPlace) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld world(seed);
    world.TestBody();
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace mq::testing
