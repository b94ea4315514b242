// What the ZooKeeper backend does beyond the conformance suite: lost answers, lost connections,
// lost sessions, a server that does not answer.
#include "metadata/zookeeper_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/metadata/run_loop.h"
#include "unit/metadata/zookeeper_world.h"

namespace mq::metadata {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const Error kUnavailable = MetadataErrc::unavailable;
const Error kUnknown = MetadataErrc::outcome_unknown;
const Error kSessionLost = MetadataErrc::session_lost;

class ZooKeeperStoreTest : public ::testing::Test {
 protected:
  ~ZooKeeperStoreTest() override {
    for (auto* store : {&store_, &other_}) {
      if (*store) loop_.run((*store)->close());
    }
  }

  std::unique_ptr<MetadataStore> open(ZooKeeperOptions options) {
    auto store = loop_.run(open_zookeeper_store(std::move(options), loop_.runtime(), trouble_));
    if (!store) throw std::runtime_error(store.error().message() + ": " + trouble_);
    return *std::move(store);
  }
  void open() { store_ = open(world_.options()); }
  /// A second broker, which no fault touches.
  MetadataStore& other() {
    if (!other_) other_ = open(world_.direct_options());
    return *other_;
  }
  static std::string value(mq::testing::RunLoop& loop, MetadataStore& store, std::string path) {
    const auto node = loop.run(store.get(std::move(path)));
    return node ? node->value : "<" + node.error().message() + ">";
  }
  std::string value(std::string path) { return value(loop_, *store_, std::move(path)); }
  std::string value_seen_by_other(std::string path) {
    return value(loop_, other(), std::move(path));
  }

  /// A call whose answer the test does not wait for.
  template <class T>
  std::shared_ptr<std::optional<Result<T>>> begin(asio::awaitable<Result<T>> call) {
    auto outcome = std::make_shared<std::optional<Result<T>>>();
    loop_.runtime().spawn("call", keep(std::move(call), outcome));
    return outcome;
  }
  template <class T>
  static asio::awaitable<void> keep(asio::awaitable<Result<T>> call,
                                    std::shared_ptr<std::optional<Result<T>>> outcome) {
    auto result = co_await std::move(call);
    outcome->emplace(std::move(result));
  }

  mq::testing::RunLoop loop_;
  mq::testing::ZooKeeperWorld world_;
  std::string trouble_;
  std::unique_ptr<MetadataStore> store_;
  std::unique_ptr<MetadataStore> other_;
};

// MET-1: the write took effect, its answer was lost; whoever reads afterwards finds it.
TEST_F(ZooKeeperStoreTest, WriteWhoseAnswerIsLostIsUnknownAndThenRead) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "old")));
  world_.relay().lose_answers(true);
  const auto set = begin(store_->set("/a", "new", 0));
  ASSERT_TRUE(loop_.eventually([&] { return value_seen_by_other("/a") == "new"; }));
  world_.relay().cut();
  world_.relay().lose_answers(false);
  ASSERT_TRUE(loop_.eventually([&] { return set->has_value(); }));
  EXPECT_EQ((*set)->error(), kUnknown);
  EXPECT_EQ(value("/a"), "new");
  EXPECT_TRUE(store_->online());
}

// The request itself was lost: the same answer, and nothing has changed.
TEST_F(ZooKeeperStoreTest, WriteThatIsLostOnItsWayIsUnknownAndChangesNothing) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "old")));
  world_.relay().hold(true);
  const auto set = begin(store_->set("/a", "new", 0));
  loop_.run(loop_.runtime().sleep_for(milliseconds(50)));
  world_.relay().cut();
  world_.relay().hold(false);
  ASSERT_TRUE(loop_.eventually([&] { return set->has_value(); }));
  EXPECT_EQ((*set)->error(), kUnknown);
  EXPECT_EQ(value("/a"), "old");
  EXPECT_TRUE(loop_.run(store_->set("/a", "newer", 0)));
}

TEST_F(ZooKeeperStoreTest, ReadIsAskedAgainWhenItsAnswerIsLost) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "one")));
  ASSERT_TRUE(loop_.run(store_->create("/a/b", "")));
  world_.relay().lose_answers(true);
  const auto node = begin(store_->get("/a"));
  const auto names = begin(store_->children("/a"));
  loop_.run(loop_.runtime().sleep_for(milliseconds(50)));
  EXPECT_FALSE(node->has_value());
  world_.relay().lose_answers(false);
  world_.relay().cut();
  ASSERT_TRUE(loop_.eventually([&] { return node->has_value() && names->has_value(); }));
  ASSERT_TRUE(**node);
  EXPECT_EQ((**node)->value, "one");
  ASSERT_TRUE(**names);
  EXPECT_THAT(***names, ::testing::ElementsAre("b"));
}

TEST_F(ZooKeeperStoreTest, SessionAndItsNodesSurviveACut) {
  open();
  const auto session = store_->session();
  ASSERT_TRUE(loop_.run(store_->create("/e", "", CreateMode::ephemeral)));
  for (int i = 0; i < 5; ++i) {
    world_.relay().cut();
    // A write that goes onto the dead connection is unknown; the next one is not.
    ASSERT_TRUE(loop_.eventually(
        [&] { return loop_.run(store_->set("/e", "x", kAnyVersion)).has_value(); }));
  }
  EXPECT_EQ(value_seen_by_other("/e"), "x");
  EXPECT_EQ(store_->session(), session);
}

// A watch is a hint: what it may have missed while the store was away, it says on return.
TEST_F(ZooKeeperStoreTest, EveryWatchFiresWhenTheConnectionIsBack) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "")));
  int fired = 0;
  const auto count = [&fired] { ++fired; };
  ASSERT_TRUE(loop_.run(store_->watch("/a", WatchKind::data, count)));
  ASSERT_TRUE(loop_.run(store_->watch("/a", WatchKind::children, count)));
  ASSERT_TRUE(loop_.run(store_->watch("/not-there", WatchKind::data, count)));
  world_.relay().cut();
  EXPECT_TRUE(loop_.eventually([&] { return fired == 3; }));
  ASSERT_TRUE(loop_.run(store_->set("/a", "x", kAnyVersion)));
  EXPECT_EQ(value("/a"), "x");
  EXPECT_EQ(fired, 3);
}

TEST_F(ZooKeeperStoreTest, WatchSeesWhatOthersDo) {
  open();
  int fired = 0;
  const auto count = [&fired] { ++fired; };
  ASSERT_TRUE(loop_.run(store_->watch("/made", WatchKind::data, count)));
  ASSERT_TRUE(loop_.run(store_->watch("/", WatchKind::children, count)));
  ASSERT_TRUE(loop_.run(other().create("/made", "")));
  EXPECT_TRUE(loop_.eventually([&] { return fired == 2; }));
}

TEST_F(ZooKeeperStoreTest, LostSessionIsSaidOnceAndRenewed) {
  open();
  int lost = 0;
  store_->on_session_lost([&lost] { ++lost; });
  const auto first = store_->session();
  ASSERT_TRUE(loop_.run(store_->create("/e", "", CreateMode::ephemeral)));
  ASSERT_TRUE(loop_.run(store_->create("/p", "kept")));
  world_.relay().refuse(true);
  world_.relay().cut();
  world_.wait_for_end_of(first);
  world_.relay().refuse(false);
  ASSERT_TRUE(loop_.eventually([&] { return lost == 1; }));
  EXPECT_FALSE(store_->online());
  EXPECT_EQ(loop_.run(store_->get("/p")).error(), kSessionLost);
  EXPECT_EQ(loop_.run(store_->set("/p", "x", 0)).error(), kSessionLost);
  EXPECT_EQ(value_seen_by_other("/p"), "kept");

  ASSERT_TRUE(loop_.run(store_->renew()));
  EXPECT_TRUE(store_->online());
  EXPECT_NE(store_->session(), first);
  EXPECT_EQ(loop_.run(store_->get("/e")).error(), make_error_code(MetadataErrc::not_found));
  EXPECT_TRUE(loop_.run(store_->create("/e", "", CreateMode::ephemeral)));
  EXPECT_EQ(value("/p"), "kept");
  EXPECT_EQ(lost, 1);
}

TEST_F(ZooKeeperStoreTest, AwayForLongItRefusesAtOnceAndComesBackByItself) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "")));
  EXPECT_EQ(store_->trouble(), "");
  world_.relay().refuse(true);
  world_.relay().cut();
  ASSERT_TRUE(loop_.eventually([&] { return !store_->trouble().empty(); }));
  const auto began = loop_.runtime().now();
  EXPECT_EQ(loop_.run(store_->create("/b", "")).error(), kUnavailable);
  EXPECT_GE(loop_.runtime().now() - began, milliseconds(1500));
  const auto again = loop_.runtime().now();
  EXPECT_EQ(loop_.run(store_->create("/c", "")).error(), kUnavailable);
  EXPECT_EQ(loop_.run(store_->get("/a")).error(), kUnavailable);
  EXPECT_LT(loop_.runtime().now() - again, milliseconds(500));
  EXPECT_THAT(store_->trouble(), ::testing::HasSubstr("has not answered for 2 s"));
  world_.relay().refuse(false);
  ASSERT_TRUE(loop_.eventually([&] {
    if (!store_->online()) static_cast<void>(loop_.run(store_->renew()));
    return loop_.run(store_->get("/a")).has_value();
  }));
  EXPECT_EQ(loop_.run(store_->get("/b")).error(), make_error_code(MetadataErrc::not_found));
  EXPECT_EQ(store_->trouble(), "");
}

TEST_F(ZooKeeperStoreTest, SilentServerBoundsEveryCall) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "old")));
  world_.relay().hold(true);
  const auto began = loop_.runtime().now();
  EXPECT_EQ(loop_.run(store_->set("/a", "new", 0)).error(), kUnknown);
  EXPECT_EQ(loop_.run(store_->get("/a")).error(), kUnavailable);
  EXPECT_LT(loop_.runtime().now() - began, seconds(15));
  world_.relay().hold(false);
  ASSERT_TRUE(loop_.eventually([&] {
    if (!store_->online()) static_cast<void>(loop_.run(store_->renew()));
    return loop_.run(store_->get("/a")).has_value();
  }));
  // What was held has arrived; either way there is one truth.
  EXPECT_EQ(value("/a"), value_seen_by_other("/a"));
}

TEST_F(ZooKeeperStoreTest, OwnerThatStopsWaitsOnlyShortly) {
  auto options = world_.options();
  options.session_timeout = seconds(20);
  store_ = open(options);
  ASSERT_TRUE(loop_.run(store_->create("/a", "")));
  world_.relay().hold(true);
  const auto set = begin(store_->set("/a", "x", 0));
  const auto get = begin(store_->get("/a"));
  loop_.run(loop_.runtime().sleep_for(milliseconds(20)));
  const auto began = loop_.runtime().now();
  store_->shorten_waits();
  ASSERT_TRUE(loop_.eventually([&] { return set->has_value() && get->has_value(); }));
  EXPECT_LT(loop_.runtime().now() - began, seconds(4));
  EXPECT_EQ((*set)->error(), kUnknown);
  EXPECT_EQ((*get)->error(), kUnavailable);
  world_.relay().hold(false);
  EXPECT_TRUE(loop_.run(store_->get("/a")));  // one that answers is waited for
}

TEST_F(ZooKeeperStoreTest, SlowAnswersAreWaitedFor) {
  open();
  world_.relay().delay(milliseconds(100));
  ASSERT_TRUE(loop_.run(store_->create("/a", "x")));
  EXPECT_EQ(value("/a"), "x");
  world_.relay().delay(milliseconds(0));
}

TEST_F(ZooKeeperStoreTest, CloseIsBoundedWhileTheServerIsSilent) {
  open();
  const auto set = begin(store_->set("/none", "x", 0));
  world_.relay().hold(true);
  const auto began = loop_.runtime().now();
  loop_.run(store_->close());
  EXPECT_LT(loop_.runtime().now() - began, seconds(9));
  EXPECT_TRUE(loop_.eventually([&] { return set->has_value(); }));
  EXPECT_EQ(loop_.run(store_->get("/a")).error(), kUnavailable);
  store_.reset();
  world_.relay().hold(false);
}

TEST_F(ZooKeeperStoreTest, CloseIsQuickWhileTheServerIsGone) {
  open();
  world_.relay().refuse(true);
  world_.relay().cut();
  loop_.run(loop_.runtime().sleep_for(milliseconds(50)));
  const auto began = loop_.runtime().now();
  loop_.run(store_->close());
  EXPECT_LT(loop_.runtime().now() - began, seconds(5));
}

TEST_F(ZooKeeperStoreTest, OrderlyCloseEndsTheSessionAtOnce) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/e", "", CreateMode::ephemeral)));
  loop_.run(store_->close());
  EXPECT_EQ(value_seen_by_other("/e"), "<no such node>");
}

TEST_F(ZooKeeperStoreTest, CallUnderWayIsAnsweredWhenTheStoreGoes) {
  open();
  ASSERT_TRUE(loop_.run(store_->create("/a", "")));
  world_.relay().hold(true);
  const auto set = begin(store_->set("/a", "x", 0));
  const auto get = begin(store_->get("/a"));
  loop_.run(loop_.runtime().sleep_for(milliseconds(20)));
  store_.reset();
  world_.relay().hold(false);
  ASSERT_TRUE(loop_.eventually([&] { return set->has_value() && get->has_value(); }));
  EXPECT_EQ((*set)->error(), kUnknown);
  EXPECT_EQ((*get)->error(), kUnavailable);
}

TEST_F(ZooKeeperStoreTest, NobodyThereIsRefusedInTimeAndExplained) {
  auto options = world_.options();
  world_.relay().refuse(true);
  options.connect_timeout = milliseconds(600);
  const auto store = loop_.run(open_zookeeper_store(options, loop_.runtime(), trouble_));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error(), kUnavailable);
  EXPECT_THAT(trouble_, ::testing::StartsWith("ZooKeeper 127.0.0.1:"));
  EXPECT_THAT(trouble_, ::testing::HasSubstr("/tests/"));
}

TEST_F(ZooKeeperStoreTest, UnknownNameIsExplained) {
  auto options = world_.options();
  options.servers = {base::Endpoint{"no-such-host.invalid", 2181}};
  options.connect_timeout = milliseconds(500);
  const auto store = loop_.run(open_zookeeper_store(options, loop_.runtime(), trouble_));
  ASSERT_FALSE(store);
  EXPECT_THAT(trouble_, ::testing::HasSubstr("no-such-host.invalid"));
}

/// A dead server among others costs nothing but a try.
TEST_F(ZooKeeperStoreTest, OneServerThatAnswersIsEnough) {
  mq::testing::TcpRelay dead(1);
  auto options = world_.options();
  options.servers.insert(options.servers.begin(), base::Endpoint{"127.0.0.1", dead.port()});
  store_ = open(options);
  EXPECT_TRUE(loop_.run(store_->create("/a", "")));
}

TEST_F(ZooKeeperStoreTest, MultiThatTheServerWouldNotTakeIsRefusedUntried) {
  auto options = world_.options();
  options.session_timeout = seconds(8);  // the largest takes a busy machine a while
  store_ = open(options);
  // Short paths, no values: below the limit of bytes, but far above it on the wire.
  std::vector<Operation> many;
  for (int i = 0; i < 20000; ++i) many.emplace_back(Create("/" + std::to_string(i), ""));
  EXPECT_EQ(loop_.run(store_->multi(many)).error(), make_error_code(MetadataErrc::too_large));
  // The largest that is let through is taken.
  many.resize(8000, Create("/", ""));
  const auto result = loop_.run(store_->multi(many));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->applied());
  EXPECT_EQ(loop_.run(store_->children("/"))->size(), 8000u);
}

TEST_F(ZooKeeperStoreTest, ChrootOfSeveralPartsIsMadeOnce) {
  auto options = world_.direct_options();
  options.chroot += "/deep/er";
  store_ = open(options);
  EXPECT_TRUE(loop_.run(store_->create("/a", "below")));
  EXPECT_EQ(value_seen_by_other("/deep/er/a"), "below");
  other_ = open(options);
  EXPECT_EQ(value_seen_by_other("/a"), "below");
}

TEST_F(ZooKeeperStoreTest, WhoeverOnlyReadsMakesNoChroot) {
  auto options = world_.direct_options();
  options.chroot += "/wrong/place";
  store_ = open(options);
  EXPECT_EQ(loop_.run(store_->get("/cluster")).error(), make_error_code(MetadataErrc::not_found));
  other_ = open(world_.direct_options());
  EXPECT_EQ(loop_.run(other_->get("/wrong")).error(), make_error_code(MetadataErrc::not_found));
}

TEST_F(ZooKeeperStoreTest, WithoutChrootZooKeepersOwnNodeIsNotSeen) {
  auto options = world_.direct_options();
  options.chroot.clear();
  store_ = open(options);
  const auto names = loop_.run(store_->children("/"));
  ASSERT_TRUE(names);
  EXPECT_THAT(*names, ::testing::Not(::testing::Contains("zookeeper")));
}

}  // namespace
}  // namespace mq::metadata
