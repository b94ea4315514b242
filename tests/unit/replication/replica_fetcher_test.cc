#include "replication/replica_fetcher.h"

#include <deque>

#include "follower_fixture.h"
#include "protocol/hello.h"
#include "support/sim_network.h"

namespace mq::replication {
namespace {

using model::BrokerId;
using model::LeaderEpoch;
using model::Offset;
using testing::ModelLog;
using testing::ScriptedLeader;
using namespace std::chrono_literals;

/// The leader's end of the wire: notes what comes and answers when the test says so.
class LeaderBroker {
 public:
  struct Connection {
    explicit Connection(base::Runtime& runtime, std::unique_ptr<base::Stream> s)
        : stream(std::move(s)), reader(*stream, 32 << 20), writer(runtime, *stream) {}
    std::unique_ptr<base::Stream> stream;
    net::FrameReader reader;
    net::FrameWriter writer;
    void close() {
      stream->close();
      writer.close();
    }
  };
  struct Request {
    std::shared_ptr<Connection> connection;
    protocol::FrameHead head;
    protocol::ReplicaFetchRequest message;
  };

  LeaderBroker(base::Runtime& runtime, base::Network& network)
      : runtime_(runtime), acceptor_(*network.listen({"0.0.0.0", 9500})), tasks_(runtime) {
    tasks_.spawn("leader", accept());
  }

  /// Answers the oldest request that is open.
  void answer(protocol::ReplicaFetchResponse response, std::string payload = {}) {
    ASSERT_FALSE(open.empty());
    const Request request = open.front();
    open.pop_front();
    send(*request.connection, request.head, protocol::encode(response), payload);
  }
  void answer(const std::vector<ScriptedLeader::Answer>& results) {
    protocol::ReplicaFetchResponse response;
    std::string payload;
    for (const auto& result : results) {
      response.results.push_back(result.result);
      payload += base::as_text(result.batches);
    }
    answer(std::move(response), std::move(payload));
  }
  void break_connections() {
    for (const auto& connection : connections_) connection->close();
    connections_.clear();
    open.clear();
  }
  asio::awaitable<void> stop() {
    stopped_ = true;
    acceptor_->close();
    break_connections();
    co_await tasks_.wait();
  }

  int dies_after_hello = 0;  ///< so many connections end right behind the answer to Hello
  bool deaf = false;         ///< answers Hello and reads nothing else
  int accepted = 0;
  std::deque<Request> open;
  std::vector<protocol::ReplicaFetchRequest> seen;

 private:
  asio::awaitable<void> accept() {
    while (!stopped_) {
      auto stream = co_await acceptor_->accept();
      if (!stream) co_return;
      ++accepted;
      const auto connection = std::make_shared<Connection>(runtime_, *std::move(stream));
      connections_.push_back(connection);
      tasks_.spawn("leader writes", write(connection));
      tasks_.spawn("leader reads", read(connection));
    }
  }
  asio::awaitable<void> write(std::shared_ptr<Connection> connection) {
    static_cast<void>(co_await connection->writer.run());
    connection->close();
  }
  asio::awaitable<void> read(std::shared_ptr<Connection> connection) {
    static_cast<void>(co_await connection->reader.read_raw(protocol::kPreface.size()));
    while (!stopped_) {
      const auto frame = co_await connection->reader.next();
      if (!frame) co_return connection->close();
      take(connection, *frame);
    }
  }
  void take(const std::shared_ptr<Connection>& connection, const net::Frame& frame) {
    if (static_cast<protocol::ApiKey>(frame.head.api_key) == protocol::ApiKey::hello) {
      protocol::HelloResponse hello;
      hello.broker_version = "scripted";
      hello.apis.assign(protocol::kSupportedApis.begin(), protocol::kSupportedApis.end());
      hello.frame_bytes_max = 23 << 20;
      hello.batch_bytes_max = 16 << 20;
      send(*connection, frame.head, protocol::encode(hello), {});
      if (dies_after_hello > 0 && dies_after_hello-- > 0) connection->writer.finish();
      return;
    }
    const auto message = protocol::decode_replica_fetch_request(frame.header);
    if (deaf || !message) return;
    seen.push_back(*message);
    open.push_back({connection, frame.head, *message});
  }
  static void send(Connection& connection, const protocol::FrameHead& request,
                   const std::string& header, const std::string& payload) {
    protocol::FrameHead head = request;
    head.flags = protocol::kFrameResponse;
    net::OutgoingFrame frame;
    frame.head_and_header =
        protocol::encode_frame(head, header, static_cast<std::uint32_t>(payload.size()));
    frame.head_and_header += payload;
    connection.writer.push(std::move(frame));
  }

  base::Runtime& runtime_;
  std::unique_ptr<base::Acceptor> acceptor_;
  std::vector<std::shared_ptr<Connection>> connections_;
  base::TaskGroup tasks_;
  bool stopped_ = false;
};

/// Broker 3 follows one partition of broker 2, which has three batches of epoch 4, [0, 6).
struct ReplicaFetcherTest : ::testing::Test {
  explicit ReplicaFetcherTest(bool confirms_at_once = true) : log(confirms_at_once) {
    for (int i = 0; i < 3; ++i) leader.log.append_records("old", 2);
    leader.high_watermark = Offset(6);
    fetcher.set_address(base::Endpoint{"leader", 9500});
    fetcher.start();
  }
  ~ReplicaFetcherTest() override {
    mq::testing::run(simulator, fetcher.stop());
    for (const auto& one : {partition, other}) {
      if (!one) continue;
      one->close();
      mq::testing::run(simulator, one->closed());
    }
    mq::testing::run(simulator, broker.stop());
  }

  ReplicaFetcherConfig config() {
    ReplicaFetcherConfig config;
    config.broker = BrokerId(3);
    config.version = "test";
    config.broker_epoch = [this] { return epoch; };
    return config;
  }
  std::shared_ptr<FollowedPartition> follow(ModelLog& with) {
    auto followed = std::make_shared<FollowedPartition>(runtime, with, counters, memory,
                                                        Following{BrokerId(2), LeaderEpoch(4)});
    fetcher.follow(followed);
    return followed;
  }
  /// Waits for so many open requests at the leader.
  bool open(std::size_t requests) {
    return simulator.run_until([&] { return broker.open.size() >= requests; }, 10s);
  }
  bool seen(const std::function<bool(const protocol::ReplicaFetchRequest&)>& wanted) {
    return simulator.run_until([&] { return std::ranges::any_of(broker.seen, wanted); }, 20s);
  }
  /// The newest subscription that the leader has seen.
  [[nodiscard]] std::optional<protocol::ReplicaSubscribe> subscribed() const {
    for (auto request = broker.seen.rbegin(); request != broker.seen.rend(); ++request) {
      if (!request->subscribe.empty()) return request->subscribe.front();
    }
    return std::nullopt;
  }
  void settle() { simulator.run_for(100ms); }

  mq::testing::Simulator simulator{1};
  mq::testing::SimNetwork net{simulator};
  mq::testing::SimRuntime runtime{simulator};
  mq::testing::SimRuntime leader_runtime{simulator};
  std::unique_ptr<base::Network> network = net.join("follower", runtime);
  std::unique_ptr<base::Network> leader_network = net.join("leader", leader_runtime);
  base::Counters counters;
  net::MemoryBudget memory{runtime, 1 << 20};
  model::BrokerEpoch epoch{7};
  LeaderBroker broker{leader_runtime, *leader_network};
  ReplicaFetcher fetcher{config(), BrokerId(2), runtime, *network, counters};
  ModelLog log;
  ScriptedLeader leader{LeaderEpoch(4)};
  std::shared_ptr<FollowedPartition> partition;
  std::shared_ptr<FollowedPartition> other;
};
struct ReplicaFetcherUnderDisk : ReplicaFetcherTest {
  ReplicaFetcherUnderDisk() : ReplicaFetcherTest(false) {}
};

TEST_F(ReplicaFetcherTest, SubscribesAndFetchesWithTwoRequestsOut) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  settle();
  EXPECT_EQ(broker.open.size(), 2U);
  const auto& first = broker.seen.front();
  EXPECT_EQ(first.broker, 3);
  EXPECT_EQ(first.broker_epoch, 7);
  ASSERT_EQ(first.subscribe.size(), 1U);
  EXPECT_EQ(first.subscribe[0].partition, log.id());
  EXPECT_TRUE(broker.seen.back().subscribe.empty());
  broker.answer({leader.to(first.subscribe[0])});
  ASSERT_TRUE(open(2));
  EXPECT_EQ(log.text(), leader.log.text());
  // The answer is followed by what the log has now.
  ASSERT_FALSE(broker.seen.back().positions.empty());
  EXPECT_EQ(broker.seen.back().positions[0].appended, Offset(6));
}

TEST_F(ReplicaFetcherUnderDisk, AFlushIsToldAtOnceByAThirdRequest) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  broker.answer({leader.to(broker.seen.front().subscribe[0])});
  ASSERT_TRUE(open(2));
  settle();
  ASSERT_EQ(broker.open.size(), 2U);
  log.confirm(Offset(6));
  settle();
  ASSERT_EQ(broker.open.size(), 3U);
  ASSERT_FALSE(broker.seen.back().positions.empty());
  EXPECT_EQ(broker.seen.back().positions[0].durable, Offset(6));
  // One more has to wait for the answer that the third one brings about.
  leader.log.append_records("more");
  broker.answer({leader.batches(subscribed()->number, Offset(6))});
  settle();
  EXPECT_EQ(broker.open.size(), 2U);
  log.confirm(Offset(7));
  settle();
  EXPECT_EQ(broker.open.size(), 3U);
}

TEST_F(ReplicaFetcherTest, AfterALostConnectionItSubscribesAgainFromItsOwnEnd) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  const auto before = *subscribed();
  broker.answer({leader.batches(before.number, Offset(0), 1)});
  ASSERT_TRUE(open(2));
  broker.break_connections();
  broker.seen.clear();
  ASSERT_TRUE(seen([](const auto& request) { return !request.subscribe.empty(); }));
  EXPECT_EQ(broker.accepted, 2);
  EXPECT_EQ(subscribed()->appended, Offset(2));
  EXPECT_GT(subscribed()->number, before.number);
}

TEST_F(ReplicaFetcherTest, ALeaderThatIsAwayIsTriedUntilItIsBack) {
  net.cut("leader", "follower");
  partition = follow(log);
  simulator.run_for(30s);
  EXPECT_TRUE(broker.seen.empty());
  net.heal();
  ASSERT_TRUE(open(2));
  broker.answer({leader.to(*subscribed())});
  settle();
  EXPECT_EQ(log.text(), leader.log.text());
}

TEST_F(ReplicaFetcherTest, AConnectionThatEndsBehindItsHelloIsReplaced) {
  broker.dies_after_hello = 5;
  partition = follow(log);
  EXPECT_TRUE(
      simulator.run_until([&] { return broker.accepted == 6 && broker.open.size() == 2; }, 30s));
}

TEST_F(ReplicaFetcherTest, ALeaderThatFellSilentIsLeft) {
  broker.deaf = true;
  partition = follow(log);
  simulator.run_for(20s);
  EXPECT_GE(broker.accepted, 2);
  broker.deaf = false;
  EXPECT_TRUE(open(2));
}

TEST_F(ReplicaFetcherTest, AnotherRegistrationBeginsAnewOnAnotherConnection) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  epoch = model::BrokerEpoch(8);
  broker.answer(std::vector<ScriptedLeader::Answer>{});
  ASSERT_TRUE(seen(
      [](const auto& request) { return request.broker_epoch == 8 && !request.subscribe.empty(); }));
  EXPECT_EQ(broker.accepted, 2);
}

TEST_F(ReplicaFetcherTest, WhatIsFollowedNoMoreIsUnsubscribed) {
  ModelLog second;
  second.set_partition(1);
  partition = follow(log);
  other = follow(second);
  ASSERT_TRUE(open(2));
  fetcher.unfollow(other->id());
  ASSERT_TRUE(seen([&](const auto& request) {
    return std::ranges::count(request.unsubscribe, other->id()) == 1;
  }));
  other->close();
}

TEST_F(ReplicaFetcherTest, ANewEpochOfTheSameLeaderSubscribesWithAHigherNumber) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  const auto before = *subscribed();
  fetcher.unfollow(partition->id());
  partition->close();
  other = std::make_shared<FollowedPartition>(runtime, log, counters, memory,
                                              Following{BrokerId(2), LeaderEpoch(5)});
  fetcher.follow(other);
  broker.seen.clear();
  ASSERT_TRUE(seen([](const auto& request) { return !request.subscribe.empty(); }));
  EXPECT_EQ(broker.accepted, 1);
  EXPECT_EQ(subscribed()->leader_epoch, LeaderEpoch(5));
  EXPECT_GT(subscribed()->number, before.number);
  // What the old subscription still brings is not taken.
  broker.answer({leader.batches(before.number, Offset(0))});
  settle();
  EXPECT_EQ(log.log_end_offset(), Offset(0));
}

TEST_F(ReplicaFetcherTest, WithoutPartitionsThereIsNoConnection) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  fetcher.unfollow(partition->id());
  settle();
  while (!broker.open.empty()) broker.answer(std::vector<ScriptedLeader::Answer>{});
  settle();
  EXPECT_FALSE(fetcher.connected());
  broker.seen.clear();
  simulator.run_for(5s);
  EXPECT_TRUE(broker.seen.empty());
}

TEST_F(ReplicaFetcherTest, ARefusalOfTheWholeRequestIsFollowedByAPause) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  protocol::ReplicaFetchResponse refusal;
  refusal.envelope.status = protocol::Status::of(protocol::WireError::stale_broker_epoch, "no");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(open(1));
    broker.answer(refusal);
    settle();
    broker.open.clear();
  }
  simulator.run_for(3s);
  EXPECT_LE(broker.accepted, 10);
  ASSERT_TRUE(open(1));
  broker.open.clear();
}

TEST_F(ReplicaFetcherTest, AnAnswerThatDoesNotAddUpEndsTheConnection) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  auto answer = leader.to(*subscribed());
  answer.result.payload_bytes += 1;
  broker.answer({answer});
  simulator.run_until([&] { return broker.accepted == 2; }, 10s);
  EXPECT_EQ(broker.accepted, 2);
}

TEST_F(ReplicaFetcherTest, ALeaderThatMovedIsFollowedToItsNewAddress) {
  partition = follow(log);
  ASSERT_TRUE(open(2));
  mq::testing::SimRuntime moved_runtime{simulator};
  const auto moved_network = net.join("moved", moved_runtime);
  LeaderBroker moved(moved_runtime, *moved_network);
  fetcher.set_address(base::Endpoint{"moved", 9500});
  EXPECT_TRUE(simulator.run_until([&] { return moved.open.size() == 2; }, 10s));
  fetcher.set_address(base::Endpoint{"leader", 9500});
  mq::testing::run(simulator, moved.stop());
}

TEST_F(ReplicaFetcherTest, ManyPartitionsSubscribeInSeveralRequests) {
  constexpr std::int32_t kPartitions =
      2 * static_cast<std::int32_t>(protocol::kReplicaFetchEntriesMax) + 10;
  std::vector<std::unique_ptr<ModelLog>> logs;
  std::vector<std::shared_ptr<FollowedPartition>> many;
  for (std::int32_t i = 0; i < kPartitions; ++i) {
    logs.push_back(std::make_unique<ModelLog>());
    logs.back()->set_partition(i);
    many.push_back(follow(*logs.back()));
  }
  std::size_t subscriptions = 0;
  simulator.run_until(
      [&] {
        subscriptions = 0;
        for (const auto& request : broker.seen) subscriptions += request.subscribe.size();
        return subscriptions == static_cast<std::size_t>(kPartitions);
      },
      10s);
  EXPECT_EQ(subscriptions, static_cast<std::size_t>(kPartitions));
  mq::testing::run(simulator, fetcher.stop());
  for (const auto& one : many) one->close();
}

}  // namespace
}  // namespace mq::replication
