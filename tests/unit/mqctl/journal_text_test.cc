#include <gtest/gtest.h>

#include "mqctl/verbs/log_journal.h"

namespace mq::mqctl {
namespace {

using model::LeaderEpoch;
using model::Offset;
using namespace storage;

const model::PartitionId kPartition{*base::Uuid::from_hex("303132333435463738393a3b3c3d3e3f"), 2};

InspectedGroup group_of(std::vector<JournalContent> contents) {
  InspectedGroup group;
  group.position = 8'192;
  group.header.number = 42;
  group.header.generation = 3;
  group.header.entries = static_cast<std::uint32_t>(contents.size());
  group.header.body_bytes = 1'000;
  for (auto& content : contents) {
    const bool disk = std::holds_alternative<JournalSnapshot>(content) ||
                      std::holds_alternative<JournalDiskChange>(content);
    group.entries.push_back({disk ? model::PartitionId() : kPartition, std::move(content)});
  }
  return group;
}

TEST(JournalText, EveryKindOfEntry) {
  const SyncPoint point{Offset(7), Offset(0), 400, LeaderEpoch(5), 1'000, 1'000};
  JournalLogState state;
  state.log_start = Offset(1);
  state.recovery_point = point;
  state.end = state.durable = Offset(9);
  JournalSnapshot snapshot;
  snapshot.first_generation = 3;
  snapshot.logs = 1;
  snapshot.disk = {{-1, 12}, 2};
  JournalAppend broken;
  broken.durable = Offset(6);
  broken.segment_base = Offset(0);
  broken.position = 400;
  const std::vector<std::byte> bytes(3);
  JournalImage image{Offset(0), 4'096, bytes};
  EXPECT_EQ(
      journal_group_text(
          "0001.journal",
          group_of({snapshot, JournalSnapshotLog{state}, broken, image,
                    JournalCut{point, LeaderEpoch(6)}, JournalLogStart{Offset(4)},
                    JournalEpochStart{{LeaderEpoch(6), Offset(7)}}, JournalRecoveryPoint{point},
                    JournalCreate{}, JournalDurability{model::Durability::memory, Offset(-1)},
                    JournalDelete{}, JournalDiskChange{{{3, 4}, 5}},
                    JournalRestart{point, LeaderEpoch(6), 8}})),
      R"(0001.journal byte 8192  group 42  generation 3  entries 13  bytes 1000
  snapshot  1 partitions, generations from 3 on, 2 files, intact under disk since always, under memory since broker epoch 12
  partition  303132333435463738393a3b3c3d3e3f-2  disk  log start 1  end 9  durable 9  recovery point offset 7 at byte 400 of segment 0, epoch 5
  append  303132333435463738393a3b3c3d3e3f-2  no record batch  0 bytes at byte 400 of segment 0  durable 6
  image  303132333435463738393a3b3c3d3e3f-2  3 bytes at byte 4096 of segment 0
  cut  303132333435463738393a3b3c3d3e3f-2  offset 7 at byte 400 of segment 0, epoch 5, by epoch 6
  log start  303132333435463738393a3b3c3d3e3f-2  4
  epoch start  303132333435463738393a3b3c3d3e3f-2  6 from offset 7
  recovery point  303132333435463738393a3b3c3d3e3f-2  offset 7 at byte 400 of segment 0, epoch 5
  create  303132333435463738393a3b3c3d3e3f-2  disk
  durability  303132333435463738393a3b3c3d3e3f-2  memory from offset -1
  delete  303132333435463738393a3b3c3d3e3f-2
  disk  5 files, intact under disk since broker epoch 3, under memory since broker epoch 4
  restart  303132333435463738393a3b3c3d3e3f-2  empty from 7 on, by epoch 6  intact since broker epoch 8
)");
}

TEST(JournalText, SaysWhatIsMissing) {
  auto group = group_of({JournalDelete{}});
  group.follows = false;
  group.entries_good = false;
  EXPECT_EQ(journal_group_text("0001.journal", group),
            "0001.journal byte 8192  group 42  generation 3  entries 1  bytes 1000  (does not "
            "follow the one before: groups are missing)\n"
            "  delete  303132333435463738393a3b3c3d3e3f-2\n"
            "  an entry that cannot be read\n");
}

}  // namespace
}  // namespace mq::mqctl
