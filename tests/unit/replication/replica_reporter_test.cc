#include "replication/replica_reporter.h"

#include <gtest/gtest.h>

#include "scripted_controller.h"
#include "support/run.h"
#include "support/sim_runtime.h"

namespace mq::replication {
namespace {

using namespace std::chrono_literals;
using testing::uuid;
using testing::version;

model::PartitionId id(std::int32_t number) { return {uuid(1), number}; }

class ReplicaReporterTest : public ::testing::Test {
 protected:
  ReplicaReporterTest() {
    link.on_report = [this](const protocol::ReportReplicasRequest&) { return answer(); };
    reporter.start();
  }
  ~ReplicaReporterTest() override { mq::testing::run(simulator, reporter.stop()); }

  base::Result<protocol::ReportReplicasResponse> answer() const {
    if (away) return make_error_code(base::BaseErrc::connection_lost);
    protocol::ReportReplicasResponse response;
    response.envelope.metadata_version = version(1, 9);
    if (refusal) response.envelope.status = protocol::Status::of(*refusal, "no", 1);
    return response;
  }
  void register_as(std::int64_t epoch) { reporter.set_epoch(model::BrokerEpoch(epoch)); }
  void open(std::int32_t number) {
    reporter.opened(id(number), model::LeaderEpoch(3), model::Offset(10), model::Offset(8),
                    model::BrokerEpoch(5));
  }
  /// All partitions reported under that broker epoch, each as often as it was.
  std::multiset<std::int32_t> reported(std::int64_t epoch) const {
    std::multiset<std::int32_t> numbers;
    for (const auto& report : link.reports) {
      if (report.broker_epoch != epoch) continue;
      for (const auto& one : report.replicas) numbers.insert(one.partition.partition);
    }
    return numbers;
  }
  void run_for(base::Duration span) { simulator.run_for(span); }

  mq::testing::Simulator simulator{1};
  mq::testing::SimRuntime runtime{simulator};
  testing::ScriptedController link{runtime};
  ReplicaReporter reporter{model::BrokerId(2), link, runtime};
  bool away = false;
  std::optional<protocol::WireError> refusal;
};

using Numbers = std::multiset<std::int32_t>;

TEST_F(ReplicaReporterTest, EachReplicaIsReportedOnceAndAsItIs) {
  register_as(7);
  open(0);
  reporter.failed(id(1), protocol::Status::of(protocol::WireError::partition_corrupt, "bad", 2));
  run_for(60s);
  EXPECT_EQ(reported(7), (Numbers{0, 1}));
  const auto& first = link.reports.at(0);
  EXPECT_EQ(first.broker, 2);
  EXPECT_EQ(first.replicas.at(0).last_leader_epoch, model::LeaderEpoch(3));
  EXPECT_EQ(first.replicas.at(0).log_end_offset, model::Offset(10));
  EXPECT_EQ(first.replicas.at(1).state, protocol::ReplicaState::failed);
  EXPECT_EQ(first.replicas.at(1).reason.text, "bad");
  EXPECT_EQ(reporter.left(), 0U);
  EXPECT_EQ(reporter.taken_version(), version(1, 9));
}

TEST_F(ReplicaReporterTest, WhatIsAskedIsAskedOnceAlsoWhenTheFirstTryFails) {
  register_as(7);
  open(0);
  run_for(1s);
  away = true;
  reporter.ask(id(0), protocol::ReplicaState::resigns);
  reporter.ask(id(5), protocol::ReplicaState::resigns);  // nothing is known of it
  run_for(5s);
  away = false;
  run_for(5s);
  const auto& asked = link.reports.back().replicas;
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].state, protocol::ReplicaState::resigns);
  EXPECT_EQ(asked[0].log_end_offset, model::Offset(10));
  register_as(8);
  run_for(1s);
  EXPECT_EQ(link.reports.back().replicas.at(0).state, protocol::ReplicaState::opened);
}

TEST_F(ReplicaReporterTest, WhatIsDamagedIsToldWhenItChanges) {
  register_as(7);
  open(0);
  const model::DamagedPlace place{model::Offset(0), 400, model::Offset(7), model::Offset(9)};
  const auto which = protocol::Status::of(protocol::WireError::partition_corrupt, "a place", 2);
  reporter.damaged(id(0), {place}, which);
  run_for(1s);
  ASSERT_EQ(link.reports.size(), 1u);
  EXPECT_EQ(link.reports.back().replicas.at(0).damage, std::vector{place});
  EXPECT_EQ(link.reports.back().replicas.at(0).reason.text, "a place");
  EXPECT_EQ(link.reports.back().replicas.at(0).state, protocol::ReplicaState::opened);
  reporter.damaged(id(0), {place}, which);
  run_for(1s);
  EXPECT_EQ(link.reports.size(), 1u);
  reporter.damaged(id(0), {}, {});
  reporter.damaged(id(5), {place}, which);
  run_for(1s);
  ASSERT_EQ(link.reports.size(), 2u);
  EXPECT_TRUE(link.reports.back().replicas.at(0).damage.empty());
  EXPECT_TRUE(link.reports.back().replicas.at(0).reason.ok());
}

TEST_F(ReplicaReporterTest, NothingIsReportedBeforeTheRegistration) {
  open(0);
  run_for(10s);
  EXPECT_TRUE(link.reports.empty());
  register_as(7);
  run_for(1s);
  EXPECT_EQ(reported(7), (Numbers{0}));
}

TEST_F(ReplicaReporterTest, ManyGoInBatches) {
  for (std::int32_t i = 0; i < 5000; ++i) open(i);
  register_as(7);
  run_for(1s);
  EXPECT_EQ(reported(7).size(), 5000U);
  EXPECT_EQ(link.reports.size(), 3U);
  for (const auto& report : link.reports) EXPECT_LE(report.replicas.size(), protocol::kReportsMax);
}

// C4
TEST_F(ReplicaReporterTest, AnotherRegistrationReportsAllOfThemAgain) {
  register_as(7);
  open(0);
  open(1);
  run_for(1s);
  reporter.leads(id(1), model::LeaderEpoch(4));
  register_as(8);
  run_for(1s);
  EXPECT_EQ(reported(8), (Numbers{0, 1}));
  EXPECT_EQ(link.reports.back().replicas.back().last_leader_epoch, model::LeaderEpoch(4));
}

TEST_F(ReplicaReporterTest, ANewControllerIsToldEverything) {
  register_as(7);
  reporter.note_image(version(1, 1));
  open(0);
  reporter.deleted(uuid(5));
  run_for(1s);
  reporter.note_image(version(1, 2));
  run_for(1s);
  EXPECT_EQ(reported(7), (Numbers{0}));
  reporter.note_image(version(2, 1));
  run_for(1s);
  EXPECT_EQ(reported(7), (Numbers{0, 0}));
  EXPECT_EQ(link.reports.back().deleted, std::vector{uuid(5)});
  reporter.forget_deleted(uuid(5));
  reporter.forget(id(0));
  reporter.note_image(version(3, 1));
  run_for(1s);
  EXPECT_EQ(reported(7), (Numbers{0, 0}));
}

TEST_F(ReplicaReporterTest, WhatWasNotTakenIsSentAgain) {
  away = true;
  register_as(7);
  open(0);
  reporter.deleted(uuid(5));
  run_for(10s);
  EXPECT_EQ(reporter.left(), 2U);
  EXPECT_FALSE(reporter.trouble().empty());
  EXPECT_FALSE(mq::testing::run(simulator, reporter.all_taken(simulator.now() + 1s)));
  away = false;
  EXPECT_TRUE(mq::testing::run(simulator, reporter.all_taken(simulator.now() + 10s)));
  EXPECT_EQ(link.reports.back().deleted, std::vector{uuid(5)});
  EXPECT_TRUE(reporter.trouble().empty());
}

TEST_F(ReplicaReporterTest, WhatWasForgottenMeanwhileIsNotSentAgain) {
  refusal = protocol::WireError::stale_broker_epoch;
  register_as(7);
  open(0);
  reporter.deleted(uuid(5));
  run_for(1s);
  reporter.forget(id(0));
  reporter.forget_deleted(uuid(5));
  run_for(5s);
  EXPECT_EQ(reporter.left(), 0U);
}

}  // namespace
}  // namespace mq::replication
