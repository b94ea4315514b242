#include "storage/disk_group.h"

#include "storage/disk_files.h"
#include "storage/sealed_file.h"
#include "storage/storage_format.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;

/// A machine with two disks, in one simulated file system: "a" and "b".
struct Group : ::testing::Test {
  ~Group() override {
    if (group) static_cast<void>(stop());
    base::set_log_sink({});
  }
  Group() {
    base::set_log_sink([this](base::LogLevel, std::string_view, std::string_view text) {
      lines.emplace_back(text);
    });
  }

  storage::LogSpec spec(int partition) {
    return {{base::Uuid::from_random(7, 7), partition}, "orders", settings, &runtime};
  }
  storage::DiskGroup::Member member(const std::string& path) {
    storage::DiskGroup::Member made;
    made.path = path;
    made.executor = &executor;
    storage::Refusal refusal;
    auto directory = storage::open_data_directory(files, path, model::BrokerId(1), refusal);
    if (!directory) {
      made.reason = refusal.text;
      return made;
    }
    storage::DiskConfig config;
    config.cluster = base::Uuid::from_random(1, 2);
    config.broker = model::BrokerId(1);
    config.incarnation = base::Uuid::from_random(++incarnations, 5);
    config.boot_id = "boot";
    auto disk = storage::Disk::open(*std::move(directory), std::move(config), files, executor,
                                    runtime, counters, refusal);
    EXPECT_TRUE(disk) << refusal.text;
    made.disk = *std::move(disk);
    return made;
  }
  base::Result<storage::RecoverySummary> start(std::vector<std::string> paths, int partitions,
                                               std::vector<base::Uuid> being_deleted = {}) {
    std::vector<storage::DiskGroup::Member> members;
    for (const auto& path : paths) members.push_back(member(path));
    group = std::make_unique<storage::DiskGroup>(std::move(members), files, runtime);
    group->set_broker_epoch(++starts);
    std::vector<storage::LogSpec> known;
    for (int i = 0; i < partitions; ++i) known.push_back(spec(i));
    auto recovering = group->recover(std::move(known), std::move(being_deleted), {});
    auto summary = run(simulator, std::move(recovering));
    if (!summary) return summary;
    group->start();
    for (int i = 0; i < partitions; ++i) {
      auto* log = group->find(spec(i).id);
      if (!log || log->failure()) continue;
      EXPECT_TRUE(log->start_epoch(model::LeaderEpoch(static_cast<int>(incarnations))));
    }
    return summary;
  }
  base::Result<void> stop() {
    auto stopping = group->stop();
    auto stopped = run(simulator, std::move(stopping));
    group = nullptr;
    simulator.run_for(std::chrono::seconds(1));
    return stopped;
  }
  base::Result<void> create(int first, int count) {
    std::vector<storage::LogSpec> specs;
    for (int i = first; i < first + count; ++i) specs.push_back(spec(i));
    auto creating = group->create_logs(std::move(specs));
    auto created = run(simulator, std::move(creating));
    if (!created) return created;
    for (int i = first; i < first + count; ++i)
      EXPECT_TRUE(group->find(spec(i).id)->start_epoch(model::LeaderEpoch(1)));
    return created;
  }
  base::Result<storage::AppendInfo> append(int partition) {
    auto batch = make_batch(++batches, 1, 100);
    base::MutableBytes bytes(const_cast<std::byte*>(batch.bytes.data()), batch.bytes.size());
    return group->find(spec(partition).id)->append(batch.owner, bytes);
  }
  /// "a", "b", both or nothing: where a partition's directory is.
  std::string places(int partition) {
    std::string found;
    for (const auto* disk : {"a", "b"}) {
      const auto there = files.exists(std::string(disk) + "/" + spec(partition).id.text());
      if (there && *there) found += disk;
    }
    return found;
  }
  bool said(const std::string& text) const {
    return std::ranges::any_of(
        lines, [&](const auto& line) { return line.find(text) != std::string::npos; });
  }

  Simulator simulator{1};
  SimRuntime runtime{simulator};
  SimFileSystem files;
  SimDiskExecutor executor{simulator, {}};
  base::Counters counters;
  model::TopicSettings settings;
  std::unique_ptr<storage::DiskGroup> group;
  std::vector<std::string> lines;
  std::int64_t starts = 0;
  std::uint64_t incarnations = 0;
  std::uint64_t batches = 0;
};

TEST_F(Group, NewPartitionsSpreadOverTheDisksAndStayThere) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 6));
  std::string where;
  for (int i = 0; i < 6; ++i) {
    where += places(i);
    ASSERT_TRUE(append(i));
  }
  EXPECT_EQ(std::ranges::count(where, 'a'), 3) << where;
  EXPECT_EQ(where.size(), 6u);
  ASSERT_TRUE(stop());
  // In another order: the directories tell, but the first disk has to stay the first.
  const auto summary = start({"a", "b"}, 6);
  ASSERT_TRUE(summary);
  EXPECT_TRUE(summary->clean);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(places(i), where.substr(static_cast<std::size_t>(i), 1));
    EXPECT_EQ(group->find(spec(i).id)->log_end_offset(), Offset(1));
  }
  const auto status = group->status();
  ASSERT_EQ(status.size(), 2u);
  EXPECT_EQ(status[0].partitions, 3u);
  EXPECT_EQ(status[1].state, "ok");
}

TEST_F(Group, EachDiskSaysSinceWhenItIsIntact) {
  const auto intact = [&](std::size_t disk) { return group->status()[disk].intact; };
  ASSERT_TRUE(start({"a", "b"}, 0));
  EXPECT_EQ(intact(0), (storage::IntactSince{1, 1}));
  ASSERT_TRUE(stop());
  for (const auto& file : files.files_below("b/journal")) ASSERT_TRUE(files.remove_file(file));
  ASSERT_TRUE(start({"a", "b"}, 0));
  EXPECT_EQ(intact(0), (storage::IntactSince{1, 1}));
  EXPECT_EQ(intact(1), (storage::IntactSince{2, 2}));
}

TEST_F(Group, OneFailedDiskTakesOnlyItsPartitionsOffline) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 4));
  files.inject({.operation = FileOperation::sync, .path_part = "b/", .times = -1});
  for (int i = 0; i < 4; ++i) static_cast<void>(append(i));
  simulator.run_for(std::chrono::seconds(10));
  for (int i = 0; i < 4; ++i) {
    const bool on_b = places(i) == "b";
    EXPECT_EQ(static_cast<bool>(group->find(spec(i).id)->failure()), on_b) << i;
    EXPECT_EQ(static_cast<bool>(append(i)), !on_b) << i;
  }
  const auto status = group->status();
  EXPECT_EQ(status[0].state, "ok");
  EXPECT_EQ(status[1].state, "failed");
  EXPECT_NE(status[1].reason.find("b/"), std::string::npos) << status[1].reason;
  // New ones go to the disk that works.
  ASSERT_TRUE(create(4, 2));
  EXPECT_EQ(places(4) + places(5), "aa");
  EXPECT_FALSE(stop());
  EXPECT_TRUE(said("disk b"));
}

TEST_F(Group, OneFullDiskIsPassedOver) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 2));
  files.inject({.operation = FileOperation::write,
                .path_part = "b/",
                .error = base::make_error_code(base::BaseErrc::no_space),
                .times = 1});
  const int on_b = places(0) == "b" ? 0 : 1;
  EXPECT_EQ(append(on_b).error(), make_error_code(StorageErrc::storage_full));
  EXPECT_TRUE(append(1 - on_b));
  EXPECT_EQ(group->status()[1].state, "full");
  ASSERT_TRUE(create(2, 2));
  EXPECT_EQ(places(2) + places(3), "aa");
}

TEST_F(Group, PartitionOnTwoDisksIsRefusedByName) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 1));
  ASSERT_TRUE(stop());
  const std::string other = places(0) == "a" ? "b" : "a";
  ASSERT_TRUE(files.make_directory(other + "/" + spec(0).id.text()));
  const auto summary = start({"a", "b"}, 1);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error(), make_error_code(StorageErrc::wrong_directory));
  EXPECT_NE(group->refusal().find(spec(0).id.text()), std::string::npos) << group->refusal();
  static_cast<void>(stop());
}

/// Else a disk that is not mounted would turn its partitions into new, empty ones.
TEST_F(Group, PartitionsOfAMissingDiskAreNotMadeAnew) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 4));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(append(i));
  ASSERT_TRUE(stop());
  for (const bool empty : {false, true}) {
    // Left out of the configuration, or an empty directory in its place.
    if (empty) files.remove_tree("b");
    std::vector<std::string> paths = {"a"};
    if (empty) paths.emplace_back("b");
    const auto summary = start(paths, 4);
    ASSERT_TRUE(summary) << group->refusal();
    EXPECT_EQ(summary->offline.size(), 2u);
    EXPECT_EQ(group->missing().size(), 2u);
    for (int i = 0; i < 4; ++i) {
      auto* log = group->find(spec(i).id);
      EXPECT_EQ(log != nullptr, places(i) == "a") << i;
      if (log) {
        EXPECT_EQ(log->log_end_offset(), Offset(1));
      }
    }
    EXPECT_TRUE(said("2 partitions are offline"));
    ASSERT_TRUE(stop());
    if (!empty) {
      // Back again, everything is there.
      ASSERT_TRUE(start({"a", "b"}, 4));
      for (int i = 0; i < 4; ++i) {
        ASSERT_NE(group->find(spec(i).id), nullptr);
        EXPECT_EQ(group->find(spec(i).id)->log_end_offset(), Offset(1));
      }
      ASSERT_TRUE(stop());
    }
  }
}

TEST_F(Group, DeletedTopicGoesFromAllDisks) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 4));
  auto deleting = group->delete_topic(spec(0).id.topic);
  ASSERT_TRUE(run(simulator, std::move(deleting)));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(places(i), "");
  EXPECT_EQ(group->status()[0].partitions + group->status()[1].partitions, 0u);
}

/// What lies on a disk that is away goes when it is back; until then the topic counts as being
/// deleted, so that nothing of it is taken for a stranger's.
TEST_F(Group, DeletedTopicWaitsForADiskThatIsAway) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 4));
  ASSERT_TRUE(stop());
  for (const bool left_out : {true, false}) {
    if (left_out) {
      ASSERT_TRUE(start({"a"}, 4));
    } else {
      ASSERT_TRUE(start({"a", "b"}, 0, {spec(0).id.topic}));
    }
    auto deleting = group->delete_topic(spec(0).id.topic);
    const auto deleted = run(simulator, std::move(deleting));
    EXPECT_EQ(deleted.error(),
              left_out ? make_error_code(StorageErrc::disk_failed) : base::Error());
    std::string left;
    for (int i = 0; i < 4; ++i) left += places(i);
    EXPECT_EQ(left, left_out ? "bb" : "");
    ASSERT_TRUE(stop());
  }
  EXPECT_FALSE(said("does not know"));
}

TEST_F(Group, NewPartitionsKeepAwayFromADiskThatIsWrittenMuch) {
  ASSERT_TRUE(start({"a", "b"}, 0));
  ASSERT_TRUE(create(0, 2));
  const int on_b = places(0) == "b" ? 0 : 1;
  for (int n = 0; n < 300; ++n) {
    ASSERT_TRUE(append(on_b));
    simulator.run_for(std::chrono::seconds(1));
  }
  EXPECT_GT(group->status()[1].write_rate, 50u);
  EXPECT_EQ(group->status()[0].write_rate, 0u);
  ASSERT_TRUE(create(2, 9));
  std::string where;
  for (int i = 2; i < 11; ++i) where += places(i);
  const auto there = std::ranges::count(where, 'b');
  EXPECT_TRUE(there == 2 || there == 3) << where << ": it counts half";
  // Long after, they are alike again.
  simulator.run_for(std::chrono::hours(2));
  EXPECT_LT(group->status()[1].write_rate, 1u);
}

TEST_F(Group, SingleDiskNeedsNoListAndALaterDiskIsAddedToIt) {
  ASSERT_TRUE(start({"a"}, 0));
  ASSERT_TRUE(create(0, 2));
  ASSERT_TRUE(stop());
  EXPECT_FALSE(*files.exists("a/disks"));
  ASSERT_TRUE(start({"a", "b"}, 2));
  ASSERT_TRUE(create(2, 2));
  EXPECT_EQ(places(2) + places(3), "bb");
  EXPECT_TRUE(*files.exists("a/disks"));
}

TEST(DiskList, GoesBothWaysAndRefusesWhatCannotBe) {
  storage::DiskList disks;
  disks[base::Uuid::from_random(1, 2)] = "/data/a";
  disks[base::Uuid::from_random(3, 4)] = "/data/b";
  const auto body = storage::encode_disk_list(disks);
  EXPECT_EQ(*storage::decode_disk_list(body), disks);
  for (std::size_t n = 0; n < body.size(); ++n)
    EXPECT_FALSE(storage::decode_disk_list(base::Bytes(body).first(n)));
  const auto file = storage::seal(storage::kDisksMagic, body);
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    auto damaged = file;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(storage::unseal(storage::kDisksMagic, damaged)) << bit;
  }
}

}  // namespace
}  // namespace mq::testing
