// The C client by itself.
#include "metadata/zookeeper_handle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "unit/metadata/run_loop.h"
#include "unit/metadata/zookeeper_world.h"

namespace mq::metadata {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ZooKeeperHandleTest : public ::testing::Test {
 protected:
  void open() {
    ZooKeeperHandle::Events events;
    events.connected = [this](const ZooKeeperSession& session) { session_ = session; };
    events.disconnected = [] {};
    events.expired = [this] { expired_ = true; };
    events.changed = [](const std::string&, WatchKind) {};
    ZooKeeperHandle::Settings settings;
    settings.servers = fmt::format("127.0.0.1:{}", world_.relay().port());
    settings.session_timeout = world_.options().session_timeout;
    handle_ = ZooKeeperHandle::open(settings, loop_.runtime(), std::move(events));
    ASSERT_TRUE(handle_);
    ASSERT_TRUE(loop_.eventually([this] { return session_.has_value(); }));
  }

  /// The loop stands still meanwhile.
  bool client_knows_that_the_session_has_ended() {
    const auto told = fmt::format("{:x} has expired", session_->id);
    const auto limit = loop_.runtime().now() + seconds(20);
    while (ZooKeeperHandle::last_complaint().find(told) == std::string::npos) {
      if (loop_.runtime().now() > limit) return false;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return true;
  }

  mq::testing::RunLoop loop_;
  mq::testing::ZooKeeperWorld world_;
  std::optional<ZooKeeperSession> session_;
  bool expired_ = false;
  std::unique_ptr<ZooKeeperHandle> handle_;
};

// The client's threads know of the end first. It would free what the later operations point to.
TEST_F(ZooKeeperHandleTest, OperationsTogetherAfterTheEndOfASessionThatNobodyHasHeardOfYet) {
  open();
  world_.relay().refuse(true);
  world_.relay().cut();
  world_.wait_for_end_of(session_->id);
  world_.relay().refuse(false);
  ASSERT_TRUE(client_knows_that_the_session_has_ended());
  ASSERT_FALSE(expired_);

  std::vector<Operation> operations;
  for (int i = 0; i < 4; ++i) {
    auto path = fmt::format("/a/path/that/is/longer/than/what/fits/into/a/string/{}", i);
    operations.emplace_back(Check(path, 0));
    operations.emplace_back(SetValue(path, "value", 0));
    operations.emplace_back(Create(std::move(path), "value"));
  }
  std::optional<ZooKeeperReply> reply;
  handle_->multi(operations, [&reply](ZooKeeperReply given) { reply = std::move(given); });
  ASSERT_TRUE(loop_.eventually([&] { return reply.has_value(); }));
  EXPECT_EQ(reply->error, make_error_code(MetadataErrc::session_lost));
  EXPECT_TRUE(expired_);
}

}  // namespace
}  // namespace mq::metadata
