#include "storage/log_inspect.h"

#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;
using storage::BatchState;

storage::JournalPlace journal_of(StorageWorld& world) {
  return *storage::find_journal(*world.files, StorageWorld::kPath, world.config.journal_path);
}

struct Inspected : ::testing::Test {
  Inspected() {
    world.config.index_stride_bytes = 1'000;
    world.start();
    for (int i = 0; i < 200; ++i) world.append(2, 600);
    EXPECT_TRUE(world.settle());
    world.pass(std::chrono::seconds(11));
    for (int i = 0; i < 5; ++i) world.append(2, 600);
    world.kill();
  }
  storage::PartitionDirectory partition() {
    auto found = storage::list_partition_directory(*world.files, world.directory());
    EXPECT_TRUE(found);
    std::vector<storage::PartitionDirectory> one{*found};
    storage::take_from_journal(*world.files, journal_of(world), one);
    return one.front();
  }
  storage::VerifyReport verify() {
    const auto report = storage::verify_partition(*world.files, partition());
    EXPECT_TRUE(report);
    return *report;
  }
  StorageWorld world;
};

TEST_F(Inspected, ListsTheDataDirectory) {
  const auto listing = storage::list_data_directory(*world.files, "data");
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->partitions.size(), 1u);
  EXPECT_EQ(listing->partitions[0].topic_name, "orders");
  EXPECT_EQ(listing->partitions[0].id, world.id());
  EXPECT_EQ(listing->partitions[0].recovery_point, Offset(400));
  EXPECT_EQ(listing->identity->broker, model::BrokerId(1));
  EXPECT_FALSE(listing->clean);
  EXPECT_TRUE(listing->strangers.empty());
}

TEST_F(Inspected, GoodLogIsGoodAndUnchangedByLooking) {
  const auto before = world.files->clone();
  const auto report = verify();
  EXPECT_TRUE(report.good);
  EXPECT_FALSE(report.damage);
  EXPECT_EQ(report.batches, 205u);
  EXPECT_EQ(report.records, 410u);
  EXPECT_EQ(report.end_offset, Offset(410));
  for (const auto& file : before->files_below(""))
    EXPECT_EQ(before->content(file), world.files->content(file));
}

TEST_F(Inspected, NamesTheFirstBadBatch) {
  const auto segments = partition().segments;
  ASSERT_GT(segments.size(), 2u);
  world.files->flip(segments[1].path, 1'500, std::byte{1});  // in the second batch's records
  const auto report = verify();
  EXPECT_FALSE(report.good);
  ASSERT_TRUE(report.damage);
  EXPECT_EQ(report.damage->file, segments[1].path);
  EXPECT_EQ(report.damage->state, BatchState::bad_body_crc);
  EXPECT_GT(report.damage->position, 1'000u);
  EXPECT_NE(report.damage->want, report.damage->got);
  EXPECT_EQ(report.damage->last_good_offset, Offset(segments[1].base_offset.value() + 1));
  EXPECT_FALSE(report.damage->torn_tail);
}

TEST_F(Inspected, TornTailAboveTheRecoveryPointIsNoDamage) {
  const auto last = partition().segments.back();
  world.files->truncate_file(last.path, last.bytes - 7);
  auto report = verify();
  EXPECT_TRUE(report.good);
  ASSERT_TRUE(report.damage);
  EXPECT_TRUE(report.damage->torn_tail);
  EXPECT_EQ(report.damage->state, BatchState::torn);
  world.files->truncate_file(last.path, 10);
  report = verify();
  EXPECT_FALSE(report.good);
}

TEST_F(Inspected, WhatASoundBatchFollowsIsNoTornTail) {
  // Of the five batches behind the recovery point, of which the journal knows none yet.
  ASSERT_EQ(partition().journal->bound, Offset(400));
  std::vector<std::uint64_t> positions;
  ASSERT_TRUE(storage::for_each_batch(*world.files, partition(), Offset(402),
                                      [&](const storage::InspectedBatch& batch) {
                                        positions.push_back(batch.position);
                                        return true;
                                      }));
  ASSERT_EQ(positions.size(), 4u);
  const auto last = partition().segments.back();
  // In its records, in its length, and in what says where it belongs.
  for (const std::uint64_t byte : {300, 9, 0}) {
    world.files->flip(last.path, positions[0] + byte, std::byte{4});
    auto report = verify();
    EXPECT_FALSE(report.good) << byte;
    ASSERT_TRUE(report.damage);
    EXPECT_FALSE(report.damage->torn_tail);
    EXPECT_EQ(report.damage->position, positions[0]);
    EXPECT_EQ(report.damage->last_good_offset, Offset(401));
    EXPECT_EQ(report.damage->sound_from, Offset(404)) << byte;
    world.files->flip(last.path, positions[0] + byte, std::byte{4});
    // Of the last one nothing follows.
    world.files->flip(last.path, positions[3] + byte, std::byte{4});
    report = verify();
    EXPECT_TRUE(report.good) << byte;
    ASSERT_TRUE(report.damage);
    EXPECT_TRUE(report.damage->torn_tail);
    EXPECT_EQ(report.damage->sound_from, Offset());
    world.files->flip(last.path, positions[3] + byte, std::byte{4});
  }
  EXPECT_FALSE(verify().damage);
}

/// As long as no checkpoint knows of a sync, the journal alone says that what it covered is there.
TEST(InspectedJournal, SaysWhatTheSegmentsMustHold) {
  StorageWorld world;
  world.settings.durability = model::Durability::memory;
  world.config.memory_sync_interval = std::chrono::seconds(1);
  world.start();
  for (int i = 0; i < 10; ++i) world.append(2, 600);
  world.pass(std::chrono::seconds(11));
  const std::string checkpoint = std::string(StorageWorld::kPath) + "/checkpoint";
  const auto before = world.files->content(checkpoint);
  for (int i = 0; i < 10; ++i) world.append(2, 600);
  world.pass(std::chrono::seconds(11));
  world.kill();
  world.files->set_content(checkpoint, before);
  const auto verify = [&] {
    std::vector<storage::PartitionDirectory> one{
        *storage::list_partition_directory(*world.files, world.directory())};
    EXPECT_EQ(one.front().recovery_point, Offset(20));
    storage::take_from_journal(*world.files, journal_of(world), one);
    EXPECT_EQ(one.front().journal->recovery_point, Offset(40));
    return *storage::verify_partition(*world.files, one.front());
  };
  EXPECT_FALSE(verify().damage);
  const auto path = world.segment(0);
  const auto bytes = world.files->content(path).size();
  // Inside of the last batch, and between two.
  for (const auto cut : {bytes - 7, bytes / 20 * 19}) {
    world.files->truncate_file(path, cut);
    const auto report = verify();
    EXPECT_FALSE(report.good) << cut;
    ASSERT_TRUE(report.damage);
    EXPECT_FALSE(report.damage->torn_tail);
    EXPECT_EQ(report.damage->last_good_offset, Offset(37));
    EXPECT_EQ(report.damage->durable_to, Offset(40));
  }
}

/// What is durable there alone is put back by a start.
TEST(InspectedJournal, MendsATailThatItHolds) {
  StorageWorld world;
  world.start();
  for (int i = 0; i < 10; ++i) world.append(2, 600);
  ASSERT_TRUE(world.settle());
  const auto all = world.read_all();
  world.kill();
  const auto path = world.segment(0);
  world.files->flip(path, 300, std::byte{4});
  std::vector<storage::PartitionDirectory> one{
      *storage::list_partition_directory(*world.files, world.directory())};
  storage::take_from_journal(*world.files, journal_of(world), one);
  ASSERT_EQ(one.front().journal->bound, Offset(20));
  const auto report = *storage::verify_partition(*world.files, one.front());
  EXPECT_TRUE(report.good);
  ASSERT_TRUE(report.damage);
  EXPECT_TRUE(report.damage->from_journal);
  EXPECT_TRUE(world.start().offline.empty());
  EXPECT_EQ(world.read_all(), all);
}

TEST(InspectedJournal, IsReadWhereTheDiskHasIt) {
  StorageWorld world;
  world.config.journal_path = "fast";
  world.start();
  for (int i = 0; i < 10; ++i) world.append(2, 600);
  ASSERT_TRUE(world.settle());
  world.kill();
  auto& files = *world.files;
  const auto own = "fast/" + (*storage::read_identity(files, StorageWorld::kPath))->disk.hex();
  EXPECT_EQ(journal_of(world).directory, own);
  EXPECT_EQ(storage::find_journal(files, StorageWorld::kPath, own)->directory, own);
  EXPECT_FALSE(storage::find_journal(files, world.directory(), "fast"));
  const auto taken_from = [&](const storage::JournalPlace& journal) {
    std::vector<storage::PartitionDirectory> one{
        *storage::list_partition_directory(files, world.directory())};
    storage::take_from_journal(files, journal, one);
    return one.front().journal.has_value();
  };
  EXPECT_TRUE(taken_from(journal_of(world)));
  EXPECT_FALSE(taken_from(*storage::find_journal(files, StorageWorld::kPath, "")));
  auto foreign = journal_of(world);
  foreign.owner.disk = foreign.owner.cluster;
  EXPECT_FALSE(taken_from(foreign));
}

TEST_F(Inspected, MissingSegmentIsAHole) {
  const auto segments = partition().segments;
  world.files->remove_tree(segments[1].path);
  const auto report = verify();
  EXPECT_FALSE(report.good);
  EXPECT_EQ(report.damage->state, BatchState::bad_offset);
  EXPECT_EQ(report.damage->want, static_cast<std::uint64_t>(segments[1].base_offset.value()));
}

TEST_F(Inspected, EveryFlippedBitIsFound) {
  const auto first = partition().segments.front();
  for (std::uint64_t at = 0; at < first.bytes; at += 97) {
    world.files->flip(first.path, at, std::byte{32});
    ASSERT_FALSE(verify().good) << at;
    world.files->flip(first.path, at, std::byte{32});
  }
}

TEST_F(Inspected, WalkFromAnOffsetStartsWithItsBatch) {
  for (const std::int64_t from : {0, 1, 77, 300, 409}) {
    Offset first;
    int count = 0;
    const auto walked = storage::for_each_batch(*world.files, partition(), Offset(from),
                                                [&](const storage::InspectedBatch& batch) {
                                                  if (count++ == 0)
                                                    first = batch.view.base_offset();
                                                  return count < 3;
                                                });
    ASSERT_TRUE(walked);
    EXPECT_EQ(first, Offset(from / 2 * 2));
  }
}

TEST_F(Inspected, ASingleSegmentFileCanBeGiven) {
  const auto segments = partition().segments;
  const auto one = storage::list_partition_directory(*world.files, segments[1].path);
  ASSERT_TRUE(one);
  ASSERT_EQ(one->segments.size(), 1u);
  EXPECT_EQ(one->segments[0].base_offset, segments[1].base_offset);
  const auto report = storage::verify_partition(*world.files, *one);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->good);
}

}  // namespace
}  // namespace mq::testing
