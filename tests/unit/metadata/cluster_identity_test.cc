#include "metadata/cluster_identity.h"

#include <gtest/gtest.h>

#include "metadata/memory_store.h"
#include "metadata/node_values.h"
#include "unit/metadata/run_loop.h"

namespace mq::metadata {
namespace {

class ClusterIdentityTest : public ::testing::Test {
 protected:
  Result<ClusterIdentity> load(std::optional<base::Uuid> new_id) {
    return loop_.run(load_cluster_identity(*store_, new_id));
  }
  mq::testing::RunLoop loop_;
  std::shared_ptr<MemoryStoreState> state_ = std::make_shared<MemoryStoreState>();
  std::unique_ptr<MetadataStore> store_ = open_memory_store(state_, loop_.runtime());
  const base::Uuid id_ = base::Uuid::from_random(1, 2);
  const base::Uuid other_ = base::Uuid::from_random(3, 4);
};

TEST_F(ClusterIdentityTest, BrokerWithoutDataMakesItOnce) {
  ASSERT_TRUE(load(id_));
  EXPECT_EQ(load(other_)->id, id_);
  EXPECT_EQ(load(std::nullopt)->id, id_);
}

TEST_F(ClusterIdentityTest, BrokerWithDataNeverInventsACluster) {
  EXPECT_EQ(load(std::nullopt).error(), make_error_code(MetadataErrc::not_found));
  EXPECT_TRUE(state_->nodes.empty());
}

TEST_F(ClusterIdentityTest, LostAnswerIsResolvedByReading) {
  state_->fault = [](bool write) { return write ? StoreFault::lost_answer : StoreFault::none; };
  ASSERT_TRUE(load(id_));
  EXPECT_EQ(load(other_)->id, id_);
}

TEST_F(ClusterIdentityTest, LostRequestIsAnErrorAndTheNextTryWorks) {
  state_->fault = [](bool write) { return write ? StoreFault::lost_request : StoreFault::none; };
  EXPECT_FALSE(load(id_));
  state_->fault = nullptr;
  EXPECT_EQ(load(id_)->id, id_);
}

TEST_F(ClusterIdentityTest, NewerLayoutOrFeatureLevelIsRefused) {
  const ClusterValue layout{{id_, 0}, id_, kLayoutVersion + 1, kFeatureLevel};
  ASSERT_TRUE(loop_.run(store_->create("/cluster", encode(layout))));
  EXPECT_EQ(load(id_).error(), make_error_code(MetadataErrc::unknown_format));
  const ClusterValue features{{id_, 0}, id_, kLayoutVersion, kFeatureLevel + 1};
  ASSERT_TRUE(loop_.run(store_->set("/cluster", encode(features), 0)));
  EXPECT_EQ(load(id_).error(), make_error_code(MetadataErrc::unknown_format));
}

TEST_F(ClusterIdentityTest, DamagedValueIsRefused) {
  ASSERT_TRUE(loop_.run(store_->create("/cluster", "garbage")));
  EXPECT_EQ(load(id_).error(), make_error_code(MetadataErrc::damaged));
}

}  // namespace
}  // namespace mq::metadata
