#include "base/network.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include "both_worlds.h"

namespace mq::base {
namespace {

using namespace std::chrono_literals;
using namespace boost::asio::experimental::awaitable_operators;

template <class World>
class NetworkTest : public WorldTest<World> {
 protected:
  std::unique_ptr<Acceptor> listen() { return *this->world.server.listen({"127.0.0.1", 0}); }
  Endpoint address_of(const Acceptor& acceptor) {
    return {this->world.server_host, acceptor.local().port};
  }
};
TYPED_TEST_SUITE(NetworkTest, BothWorlds);

struct Pair {
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

asio::awaitable<Pair> connect_pair(Runtime& runtime, Network& from, Endpoint to,
                                   Acceptor& acceptor) {
  auto connected = co_await from.connect(to, runtime.now() + 10s);
  auto accepted = co_await acceptor.accept();
  Pair pair;
  pair.client = std::move(*connected);
  pair.server = std::move(*accepted);
  co_return pair;
}

asio::awaitable<Result<void>> write_text(Stream& stream, std::string text) {
  const std::array<asio::const_buffer, 2> pieces{
      asio::buffer(text.data(), text.size() / 2),
      asio::buffer(text.data() + text.size() / 2, text.size() - text.size() / 2)};
  co_return co_await stream.write_all(pieces);
}

/// Reads until `bytes` are there or the stream ends; the error, if any, comes behind a '!'.
asio::awaitable<std::string> read_text(Stream& stream, std::size_t bytes) {
  std::string text;
  std::string block(1 << 16, '\0');
  while (text.size() < bytes) {
    const std::array<asio::mutable_buffer, 2> into{asio::buffer(block.data(), 100),
                                                   asio::buffer(block.data() + 100, 60'000)};
    const auto got = co_await stream.read_some(into);
    if (!got) co_return text + "!" + got.error().message();
    text.append(block, 0, *got);
  }
  co_return text;
}

asio::awaitable<std::string> both_ways(Stream& a, Stream& b, std::string text) {
  auto [sent, received] = co_await (write_text(a, text) && read_text(b, text.size()));
  co_return sent ? received : "write failed";
}

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 131 % 251);
  return text;
}

TYPED_TEST(NetworkTest, BytesArriveInOrderBothWays) {
  const auto acceptor = this->listen();
  auto pair = this->world.run(connect_pair(this->world.runtime, this->world.client,
                                           this->address_of(*acceptor), *acceptor));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{1000}, std::size_t{8} << 20}) {
    const auto text = pattern(bytes);
    EXPECT_TRUE(this->world.run(both_ways(*pair.client, *pair.server, text)) == text) << bytes;
    EXPECT_TRUE(this->world.run(both_ways(*pair.server, *pair.client, text)) == text) << bytes;
  }
}

asio::awaitable<std::string> close_and_read(Stream& closing, Stream& reading) {
  (void)co_await write_text(closing, "last words");
  closing.close();
  closing.close();
  co_return co_await read_text(reading, 100);
}

TYPED_TEST(NetworkTest, WhatWasSentBeforeCloseArrivesThenTheStreamEnds) {
  const auto acceptor = this->listen();
  auto pair = this->world.run(connect_pair(this->world.runtime, this->world.client,
                                           this->address_of(*acceptor), *acceptor));
  EXPECT_EQ(this->world.run(close_and_read(*pair.client, *pair.server)),
            "last words!" + make_error_code(BaseErrc::end_of_stream).message());
  EXPECT_EQ(this->world.run(read_text(*pair.client, 1)),
            "!" + make_error_code(BaseErrc::closed).message());
}

asio::awaitable<std::string> close_while_reading(Runtime& runtime, Stream& stream) {
  runtime.start_timer(runtime.now() + 5ms, [&stream] { stream.close(); });
  co_return co_await read_text(stream, 1);
}

TYPED_TEST(NetworkTest, CloseEndsACallInProgress) {
  const auto acceptor = this->listen();
  auto pair = this->world.run(connect_pair(this->world.runtime, this->world.client,
                                           this->address_of(*acceptor), *acceptor));
  EXPECT_EQ(this->world.run(close_while_reading(this->world.runtime, *pair.client)),
            "!" + make_error_code(BaseErrc::closed).message());
}

asio::awaitable<Error> accept_closed(Runtime& runtime, Acceptor& acceptor) {
  runtime.start_timer(runtime.now() + 5ms, [&acceptor] { acceptor.close(); });
  const auto stream = co_await acceptor.accept();
  co_return stream ? Error() : stream.error();
}

TYPED_TEST(NetworkTest, CloseEndsAccept) {
  const auto acceptor = this->listen();
  EXPECT_EQ(this->world.run(accept_closed(this->world.runtime, *acceptor)), BaseErrc::closed);
}

asio::awaitable<std::size_t> read_with_deadline(Runtime& runtime, Stream& stream) {
  std::array<char, 16> block;
  const std::array<asio::mutable_buffer, 1> into{asio::buffer(block)};
  auto winner = co_await (stream.read_some(into) || runtime.sleep_for(5ms));
  co_return winner.index();
}

TYPED_TEST(NetworkTest, AReadCanLoseARaceAgainstADeadline) {
  const auto acceptor = this->listen();
  auto pair = this->world.run(connect_pair(this->world.runtime, this->world.client,
                                           this->address_of(*acceptor), *acceptor));
  EXPECT_EQ(this->world.run(read_with_deadline(this->world.runtime, *pair.server)), 1u);
  EXPECT_EQ(this->world.run(both_ways(*pair.client, *pair.server, "goes on")), "goes on");
}

asio::awaitable<Error> try_connect(Runtime& runtime, Network& from, Endpoint to, Duration limit) {
  const auto stream = co_await from.connect(std::move(to), runtime.now() + limit);
  co_return stream ? Error() : stream.error();
}

TYPED_TEST(NetworkTest, NobodyListensIsRefused) {
  auto acceptor = this->listen();
  const auto address = this->address_of(*acceptor);
  acceptor.reset();
  EXPECT_EQ(this->world.run(try_connect(this->world.runtime, this->world.client, address, 10s)),
            BaseErrc::connection_refused);
}

TYPED_TEST(NetworkTest, APortIsGivenOnce) {
  const auto acceptor = this->listen();
  EXPECT_NE(acceptor->local().port, 0);
  const auto second = this->world.server.listen({"127.0.0.1", acceptor->local().port});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), BaseErrc::address_in_use);
}

TEST(AsioNetwork, UnknownHostIsNotFound) {
  RealRuntime runtime;
  AsioNetwork network(runtime);
  const Endpoint nowhere{"no-such-host.invalid", 1};
  const auto error = testing::run(runtime, try_connect(runtime, network, nowhere, 15s));
  EXPECT_TRUE(error == BaseErrc::not_found || error == BaseErrc::timed_out) << error.message();
}

TEST(AsioNetwork, AStreamMovesToAnotherRuntime) {
  RealRuntime first;
  RealRuntime second;
  AsioNetwork network(first);
  const auto acceptor = *network.listen({"127.0.0.1", 0});
  auto pair = testing::run(
      first, connect_pair(first, network, {"127.0.0.1", acceptor->local().port}, *acceptor));
  EXPECT_EQ(testing::run(first, both_ways(*pair.client, *pair.server, "one")), "one");
  auto moved = move_stream(std::move(pair.server), second);
  ASSERT_TRUE(moved);
  EXPECT_TRUE(testing::run(first, write_text(*pair.client, "two")));
  EXPECT_EQ(testing::run(second, read_text(**moved, 3)), "two");
}

class SimNetworkTest : public ::testing::Test {
 protected:
  SimWorld world;
  std::unique_ptr<Acceptor> acceptor = *world.server.listen({"0.0.0.0", 9500});
  Endpoint address{"server", 9500};
  Pair pair = world.run(connect_pair(world.runtime, world.client, address, *acceptor));

  std::string read(Stream& stream) { return world.run(read_text(stream, 100)); }
  static std::string ended(BaseErrc code) { return "!" + make_error_code(code).message(); }
};

TEST_F(SimNetworkTest, ResetReachesBothSides) {
  EXPECT_EQ(world.network.connections(), 1u);
  world.network.reset_connections("server");
  EXPECT_EQ(read(*pair.client), ended(BaseErrc::connection_lost));
  EXPECT_EQ(read(*pair.server), ended(BaseErrc::connection_lost));
  EXPECT_EQ(world.run(write_text(*pair.client, "x")).error(), BaseErrc::connection_lost);
  EXPECT_EQ(world.network.connections(), 0u);
}

asio::awaitable<Error> write_until_lost(Stream& stream) {
  while (true) {
    const auto written = co_await write_text(stream, std::string(1 << 20, 'x'));
    if (!written) co_return written.error();
  }
}

TEST_F(SimNetworkTest, AWriterBlocksWhenNobodyReads) {
  world.runtime.start_timer(world.runtime.now() + 10s,
                            [this] { world.network.reset_connections("client"); });
  const auto start = world.runtime.now();
  EXPECT_EQ(world.run(write_until_lost(*pair.client)), BaseErrc::connection_lost);
  EXPECT_GE(world.runtime.now() - start, 10s);
}

TEST_F(SimNetworkTest, ResetMayCutAMessageInItsMiddle) {
  bool seen = false;
  for (std::uint64_t seed = 0; seed < 40 && !seen; ++seed) {
    auto fresh = world.run(connect_pair(world.runtime, world.client, address, *acceptor));
    (void)world.run(write_text(*fresh.client, std::string(500'000, 'x')));
    world.simulator.run_for(300us);
    world.network.reset_connections("client");
    const auto got = world.run(read_text(*fresh.server, 500'000));
    seen = got.size() > 1000 && got.size() < 500'000;
  }
  EXPECT_TRUE(seen);
}

TEST_F(SimNetworkTest, ACrashedProcessResetsItsPeersAndItsPortIsFree) {
  world.network.crash("server", testing::SimNetwork::Crash::reset);
  EXPECT_EQ(read(*pair.client), ended(BaseErrc::connection_lost));
  EXPECT_EQ(read(*pair.server), ended(BaseErrc::closed));
  EXPECT_FALSE(world.run(write_text(*pair.server, "from the grave")));
  const auto again = world.network.join("server", world.runtime);
  EXPECT_TRUE(again->listen({"0.0.0.0", 9500}));
  EXPECT_FALSE(world.server.listen({"0.0.0.0", 9501})) << "the dead incarnation";
}

TEST_F(SimNetworkTest, ACrashedMachineIsSilentUntilItIsBack) {
  world.network.crash("server", testing::SimNetwork::Crash::silent);
  EXPECT_TRUE(world.run(write_text(*pair.client, "anyone there?")));
  EXPECT_EQ(world.run(read_with_deadline(world.runtime, *pair.client)), 1u);
  EXPECT_EQ(world.run(try_connect(world.runtime, world.client, address, 1s)), BaseErrc::timed_out);
  const auto again = world.network.join("server", world.runtime);
  EXPECT_EQ(read(*pair.client), ended(BaseErrc::connection_lost));
  EXPECT_EQ(world.run(try_connect(world.runtime, world.client, address, 1s)),
            BaseErrc::connection_refused);
}

TEST_F(SimNetworkTest, ACutHoldsBytesBackUntilItHeals) {
  world.network.cut("server", "client");
  EXPECT_TRUE(world.run(write_text(*pair.client, "late")));
  EXPECT_EQ(world.run(read_with_deadline(world.runtime, *pair.server)), 1u);
  EXPECT_EQ(world.run(try_connect(world.runtime, world.client, address, 1s)), BaseErrc::timed_out);
  world.network.heal();
  EXPECT_EQ(world.run(read_text(*pair.server, 4)), "late");
}

TEST_F(SimNetworkTest, AOneWayCutLetsTheOtherDirectionThrough) {
  world.network.cut_one_way("server", "client");
  EXPECT_TRUE(world.run(write_text(*pair.client, "heard")));
  EXPECT_EQ(world.run(read_text(*pair.server, 5)), "heard");
  EXPECT_TRUE(world.run(write_text(*pair.server, "late")));
  EXPECT_EQ(world.run(read_with_deadline(world.runtime, *pair.client)), 1u);
  EXPECT_EQ(world.run(try_connect(world.runtime, world.client, address, 1s)), BaseErrc::timed_out);
  world.network.mend("client", "server");
  EXPECT_EQ(world.run(read_text(*pair.client, 4)), "late");
}

TEST_F(SimNetworkTest, ALongCutBreaksTheConnection) {
  world.network.cut("server", "client");
  EXPECT_TRUE(world.run(write_text(*pair.client, "lost")));
  EXPECT_EQ(read(*pair.client), ended(BaseErrc::connection_lost));
}

}  // namespace
}  // namespace mq::base
