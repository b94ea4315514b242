// The controller on another broker: one connection, opened when it is needed, gone when it is of no
// use.
#include "replication/remote_controller.h"

#include <gtest/gtest.h>

#include <deque>

#include "net/frame_stream.h"
#include "protocol/hello.h"
#include "protocol/parts.h"
#include "scripted_controller.h"
#include "support/run.h"
#include "support/sim_network.h"
#include "support/sim_runtime.h"

namespace mq::replication {
namespace {

using namespace std::chrono_literals;
using protocol::PullImageResponse;
using testing::image_topic;
using testing::partition;
using testing::version;

/// What answers at the controller's address: notes requests and answers them when the test says so.
class Peer {
 public:
  Peer(base::Runtime& runtime, base::Network& network)
      : runtime_(runtime), acceptor_(*network.listen({"0.0.0.0", 9500})), tasks_(runtime) {
    tasks_.spawn("peer", accept());
  }
  void answer(const PullImageResponse& response) {
    ASSERT_FALSE(open.empty());
    const auto [connection, head] = open.front();
    open.pop_front();
    const auto parts = protocol::encode_in_parts(response);
    for (std::size_t i = 0; i < parts.size(); ++i)
      send(*connection, head, parts[i], i + 1 < parts.size());
  }
  asio::awaitable<void> stop() {
    acceptor_->close();
    for (const auto& connection : connections_) connection->close();
    open.clear();
    co_await tasks_.wait();
  }

  int accepted = 0;
  int closed = 0;
  base::Duration hello_delay{};

 private:
  struct Connection {
    explicit Connection(base::Runtime& runtime, std::unique_ptr<base::Stream> s)
        : stream(std::move(s)), reader(*stream, 32 << 20), writer(runtime, *stream) {}
    void close() {
      stream->close();
      writer.close();
    }
    std::unique_ptr<base::Stream> stream;
    net::FrameReader reader;
    net::FrameWriter writer;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

 public:
  std::deque<std::pair<ConnectionPtr, protocol::FrameHead>> open;

 private:
  asio::awaitable<void> accept() {
    while (true) {
      auto stream = co_await acceptor_->accept();
      if (!stream) co_return;
      ++accepted;
      const auto connection = std::make_shared<Connection>(runtime_, *std::move(stream));
      connections_.push_back(connection);
      tasks_.spawn("peer writes", write(connection));
      tasks_.spawn("peer reads", read(connection));
    }
  }
  asio::awaitable<void> write(ConnectionPtr connection) {
    static_cast<void>(co_await connection->writer.run());
    connection->close();
  }
  asio::awaitable<void> read(ConnectionPtr connection) {
    static_cast<void>(co_await connection->reader.read_raw(protocol::kPreface.size()));
    while (true) {
      const auto frame = co_await connection->reader.next();
      if (!frame) break;
      if (static_cast<protocol::ApiKey>(frame->head.api_key) == protocol::ApiKey::hello) {
        co_await runtime_.sleep_for(hello_delay);
        greet(*connection, frame->head);
      } else {
        open.emplace_back(connection, frame->head);
      }
    }
    ++closed;
    connection->close();
  }
  static void greet(Connection& connection, const protocol::FrameHead& head) {
    protocol::HelloResponse hello;
    hello.broker_version = "scripted";
    hello.apis.assign(protocol::kSupportedApis.begin(), protocol::kSupportedApis.end());
    hello.frame_bytes_max = 23 << 20;
    hello.batch_bytes_max = 16 << 20;
    send(connection, head, protocol::encode(hello), false);
  }
  static void send(Connection& connection, const protocol::FrameHead& request,
                   const std::string& header, bool more) {
    protocol::FrameHead head = request;
    head.flags = static_cast<std::uint8_t>(protocol::kFrameResponse |
                                           (more ? protocol::kFrameMoreFollows : 0));
    net::OutgoingFrame frame;
    frame.head_and_header = protocol::encode_frame(head, header, 0);
    connection.writer.push(std::move(frame));
  }

  base::Runtime& runtime_;
  std::unique_ptr<base::Acceptor> acceptor_;
  std::vector<ConnectionPtr> connections_;
  base::TaskGroup tasks_;
};

class RemoteControllerTest : public ::testing::Test {
 protected:
  ~RemoteControllerTest() override {
    remote.set_address(std::nullopt);
    simulator.run_for(1s);
    mq::testing::run(simulator, first.stop());
    mq::testing::run(simulator, second.stop());
    simulator.run_for(1s);
  }
  struct Node {
    Node(mq::testing::Simulator& simulator, mq::testing::SimNetwork& network,
         const std::string& name)
        : runtime(simulator), network(network.join(name, runtime)) {}
    mq::testing::SimRuntime runtime;
    std::unique_ptr<base::Network> network;
  };
  using Answer = base::Result<PullImageResponse>;
  auto pull(base::Duration patience = 10s) {
    return mq::testing::start_for_outcome(simulator.executor(),
                                          remote.pull({}, own.runtime.now() + patience), [] {});
  }
  template <class Outcome>
  bool done(const Outcome& outcome, base::Duration limit = 20s) {
    return simulator.run_until([&] { return outcome->value.has_value(); }, limit);
  }
  bool asked(const Peer& peer, std::size_t requests) {
    return simulator.run_until([&] { return peer.open.size() == requests; }, 5s);
  }
  static PullImageResponse image(std::uint64_t at) {
    PullImageResponse response;
    response.version = at;
    response.controller = 2;
    return response;
  }

  mq::testing::Simulator simulator{3};
  mq::testing::SimNetwork network{simulator};
  Node own{simulator, network, "own"};
  Node first_node{simulator, network, "first"};
  Node second_node{simulator, network, "second"};
  Peer first{first_node.runtime, *first_node.network};
  Peer second{second_node.runtime, *second_node.network};
  RemoteController remote{{}, own.runtime, *own.network};
};

TEST_F(RemoteControllerTest, WithoutAnAddressEveryCallFailsAtOnce) {
  EXPECT_FALSE(remote.has_address());
  const auto outcome = pull();
  ASSERT_TRUE(done(outcome, 1ms));
  EXPECT_FALSE(*outcome->value);
}

TEST_F(RemoteControllerTest, CallsShareOneConnectionAlsoWhileItIsOpened) {
  remote.set_address(base::Endpoint{"first", 9500});
  first.hello_delay = 500ms;
  const auto one = pull();
  simulator.run_for(100ms);
  const auto two = pull();
  ASSERT_TRUE(asked(first, 2));
  EXPECT_EQ(first.accepted, 1);
  first.answer(image(7));
  first.answer(image(8));
  ASSERT_TRUE(done(one) && done(two));
  ASSERT_TRUE(*one->value && *two->value);
  EXPECT_EQ((**one->value).version, 7U);
  EXPECT_EQ((**two->value).version, 8U);
}

TEST_F(RemoteControllerTest, AnAnswerOfSeveralFramesIsOneImage) {
  remote.set_address(base::Endpoint{"first", 9500});
  auto whole = image(version(1, 1));
  std::vector<protocol::ImagePartition> partitions;
  for (std::int32_t i = 0; i < 100'000; ++i) partitions.push_back(partition(i, 1, 5, 6));
  whole.topics = {image_topic("orders", 1, partitions), image_topic("small", 2, {})};
  ASSERT_GT(protocol::encode_in_parts(whole).size(), 1U);
  const auto outcome = pull();
  ASSERT_TRUE(asked(first, 1));
  first.answer(whole);
  ASSERT_TRUE(done(outcome));
  ASSERT_TRUE(*outcome->value);
  EXPECT_TRUE(**outcome->value == whole);
}

TEST_F(RemoteControllerTest, ASilentOneIsLeftAndConnectedToAnew) {
  remote.set_address(base::Endpoint{"first", 9500});
  const auto lost = pull(2s);
  ASSERT_TRUE(done(lost, 3s));
  EXPECT_FALSE(*lost->value);
  ASSERT_TRUE(simulator.run_until([&] { return first.closed == 1; }, 1s));
  first.open.clear();
  const auto outcome = pull();
  ASSERT_TRUE(asked(first, 1));
  EXPECT_EQ(first.accepted, 2);
  first.answer(image(7));
  ASSERT_TRUE(done(outcome));
  EXPECT_TRUE(*outcome->value);
}

TEST_F(RemoteControllerTest, WhoeverWaitsForAnEarlierControllerIsToldOfTheChange) {
  remote.set_address(base::Endpoint{"first", 9500});
  const auto early = pull(60s);
  ASSERT_TRUE(asked(first, 1));
  remote.set_address(base::Endpoint{"second", 9500});
  ASSERT_TRUE(done(early, 1s));
  EXPECT_FALSE(*early->value);
  EXPECT_TRUE(simulator.run_until([&] { return first.closed == 1; }, 1s));
  const auto outcome = pull();
  ASSERT_TRUE(asked(second, 1));
  second.answer(image(9));
  ASSERT_TRUE(done(outcome));
  EXPECT_TRUE(*outcome->value);
  EXPECT_EQ(first.accepted, 1);
}

// The connection to the earlier one may come only now: it is none of the new one's.
TEST_F(RemoteControllerTest, AnAddressThatChangesWhileItIsConnectedToIsNotUsed) {
  remote.set_address(base::Endpoint{"first", 9500});
  first.hello_delay = 1s;
  const auto early = pull(60s);
  simulator.run_for(500ms);
  remote.set_address(base::Endpoint{"second", 9500});
  simulator.run_for(3s);
  ASSERT_TRUE(done(early, 1s));
  EXPECT_FALSE(*early->value);
  EXPECT_TRUE(first.open.empty());
  const auto outcome = pull();
  ASSERT_TRUE(asked(second, 1));
  second.answer(image(9));
  ASSERT_TRUE(done(outcome));
  EXPECT_TRUE(*outcome->value);
}

}  // namespace
}  // namespace mq::replication
