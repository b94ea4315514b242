#include "mqctl/verbs/partition_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mq::mqctl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

PartitionDescription replicated() {
  PartitionDescription partition;
  partition.partition = 0;
  partition.leader = 1;
  partition.leader_epoch = 7;
  partition.replicas = {1, 2, 3};
  partition.in_sync = {1, 2, 3};
  partition.min_isr = 2;
  return partition;
}

TEST(PartitionView, WhyNobodyLeadsIsSaidOfEachReplicaAndWhatToDo) {
  auto partition = replicated();
  partition.leader = -1;
  partition.in_sync = {2};
  partition.note = "no leader: broker 1 was not in sync; broker 2 is away";
  partition.replica_notes = {{1, "was not in sync: its log ends at offset 5 of leader epoch 3"},
                             {2, "is away"}};
  const auto text = partition_text("orders", partition);
  EXPECT_THAT(text, HasSubstr("orders/0  leader: none (epoch 7)"));
  EXPECT_THAT(text, HasSubstr("  ! broker 1 was not in sync: its log ends at offset 5"));
  EXPECT_THAT(text, HasSubstr("  ! broker 2 is away\n"));
  EXPECT_THAT(text, HasSubstr("mqctl partition elect-leader orders/0 --broker ID --accept-loss"));
  EXPECT_THAT(text, Not(HasSubstr("no leader: broker")));
  EXPECT_THAT(text, Not(HasSubstr("acks=all")));
}

TEST(PartitionView, OfTheOnlyReplicaThereIsOneWay) {
  auto partition = replicated();
  partition.leader = -1;
  partition.replicas = partition.in_sync = {3};
  partition.note = "no leader: broker 3 is away";
  partition.replica_notes = {{3, "is away"}};
  EXPECT_THAT(partition_text("orders", partition),
              HasSubstr("  ! broker 3 is away\n    try: start broker 3; nobody else has a copy\n"));
}

TEST(PartitionView, TheOnlyLogIsDamaged) {
  auto partition = replicated();
  partition.replicas = partition.in_sync = {1};
  partition.min_isr = 1;
  partition.note = "the partition's log is damaged: a segment is missing";
  EXPECT_THAT(partition_text("orders", partition),
              HasSubstr("  ! the partition's log is damaged: a segment is missing\n    try: mqctl "
                        "partition elect-leader orders/0 --broker 1 --accept-loss"));
}

TEST(PartitionView, WhatIsDamagedEverywhereHasTwoWaysOut) {
  auto partition = replicated();
  const std::string place = "damaged: 7.log cannot be read at byte 9 (offsets 750 to 824)";
  partition.note = place;
  for (const bool known : {false, true}) {
    // The replicas' notes come a second later.
    partition.replica_notes.clear();
    partition.in_sync = {1};
    if (known) {
      partition.in_sync = {1, 2};
      partition.replica_notes = {{1, "is " + place}, {2, "is " + place}};
    }
    const auto text = partition_text("orders", partition);
    EXPECT_THAT(text, HasSubstr("  ! broker 1 is damaged: 7.log cannot be read at byte 9"));
    EXPECT_THAT(text, HasSubstr("mqctl topic trim orders -p 0 --to 825 removes all below"));
    EXPECT_THAT(text, HasSubstr("elect-leader orders/0 --broker 1 --accept-loss keeps what is"));
  }
  for (const char* unknown : {"damaged: 7.log cannot be read at byte 9 (offset 750 on)",
                              "damaged: 7.log cannot be read at byte 9"}) {
    partition.replica_notes.clear();
    partition.in_sync = {1};
    partition.note = unknown;
    EXPECT_THAT(partition_text("orders", partition), HasSubstr("-p 0 --to OFFSET removes"));
  }
  partition.in_sync = {1, 2};
  partition.note = place;
  EXPECT_THAT(partition_text("orders", partition), HasSubstr("another replica in sync leads soon"));
}

TEST(PartitionView, OtherReasonsForHavingNoLeaderAreSaidBesides) {
  auto partition = replicated();
  partition.leader = -1;
  partition.note = "/mq/topics/orders/0 does not parse";
  partition.replica_notes = {{1, "is away"}};
  EXPECT_THAT(partition_text("orders", partition), HasSubstr("  ! /mq/topics/orders/0 does not"));
}

TEST(PartitionView, RefusedWritesAndLossesAreNamed) {
  auto partition = replicated();
  EXPECT_THAT(partition_text("orders", partition), Not(HasSubstr("!")));
  partition.in_sync = {1};
  partition.loss_epoch = 5;
  partition.loss_start = 10;
  partition.loss_end = 20;
  const auto text = partition_text("orders", partition);
  EXPECT_THAT(text, HasSubstr("acks=all is refused (NOT_ENOUGH_REPLICAS): 1 of min_isr 2 in sync, "
                              "brokers 2,3 are missing"));
  EXPECT_THAT(text, HasSubstr("since leader epoch 5: those from offset 10 to 19"));
  EXPECT_THAT(text, HasSubstr("acknowledge-loss orders/0"));
}

}  // namespace
}  // namespace mq::mqctl
