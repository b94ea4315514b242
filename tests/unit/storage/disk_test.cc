#include "storage/disk.h"

#include "base/crc32c.h"
#include "storage_world.h"

namespace mq::testing {
namespace {

using model::Offset;

std::vector<std::string> all_files(const StorageWorld& world) {
  return world.files->files_below("");
}

TEST(Disk, FreshDirectoryGetsAnIdentityThatStays) {
  StorageWorld world;
  world.start();
  const auto identity = world.disk->identity();
  EXPECT_EQ(identity.cluster, world.config.cluster);
  EXPECT_FALSE(identity.disk.is_zero());
  ASSERT_TRUE(world.stop());
  world.start();
  EXPECT_EQ(world.disk->identity().disk, identity.disk);
}

TEST(Disk, AnotherBrokerClusterOrVersionIsRefusedBeforeAnyWrite) {  // REC-7
  StorageWorld world;
  world.start();
  world.append(3);
  ASSERT_TRUE(world.stop());
  const auto golden = world.files->clone();
  const auto unchanged = [&] {
    for (const auto& file : all_files(world)) {
      if (world.files->content(file) != golden->content(file)) return false;
    }
    return all_files(world) == golden->files_below("");
  };

  world.config.broker = model::BrokerId(2);
  EXPECT_EQ(world.try_start().error(), make_error_code(StorageErrc::wrong_directory));
  EXPECT_EQ(world.refusal.text, "data directory data belongs to broker 1, this is broker 2");
  EXPECT_TRUE(unchanged());
  world.config.broker = model::BrokerId(1);

  const auto cluster = world.config.cluster;
  world.config.cluster = base::Uuid::from_random(9, 9);
  EXPECT_EQ(world.try_start().error(), make_error_code(StorageErrc::wrong_directory));
  EXPECT_EQ(world.refusal.text,
            fmt::format("data directory data belongs to cluster {}, this broker is of cluster {}",
                        cluster.hex(), world.config.cluster.hex()));
  EXPECT_TRUE(unchanged());
  world.config.cluster = cluster;

  auto identity = world.files->content("data/identity");
  identity[8] = std::byte{2};  // format version
  const auto crc = base::crc32c(base::Bytes(identity).subspan(20),
                                base::crc32c(base::Bytes(identity).first(16)));
  base::store_le(identity.data() + 16, crc);
  world.files->set_content("data/identity", identity);
  EXPECT_EQ(world.try_start().error(), make_error_code(StorageErrc::unknown_format_version));
  EXPECT_NE(world.refusal.text.find("newer mq"), std::string::npos);

  identity[30] ^= std::byte{1};
  world.files->set_content("data/identity", identity);
  EXPECT_EQ(world.try_start().error(), make_error_code(StorageErrc::wrong_directory));
  EXPECT_EQ(world.refusal.text, "data directory data: its identity file is damaged");

  world.files->remove_tree("data/identity");
  EXPECT_EQ(world.try_start().error(), make_error_code(StorageErrc::wrong_directory));
  EXPECT_EQ(world.refusal.text, "data directory data holds partitions but no identity file");
}

TEST(Disk, SecondProcessIsRefusedAndTheHolderNamed) {  // REC-7
  StorageWorld world;
  world.start();
  CrashableFileSystem second(*world.files, SimRandom(3));
  storage::Refusal refusal;
  const auto opened = storage::open_data_directory(second, "data", world.config.broker, refusal);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error(), make_error_code(StorageErrc::locked));
  EXPECT_EQ(refusal.text, "data directory data is in use by pid 4711");
  world.kill();  // a stale lock does not block
  world.start();
}

TEST(Disk, StrangersStayWithOneWarning) {
  StorageWorld world;
  world.start();
  world.append(3);
  ASSERT_TRUE(world.stop());
  auto& files = *world.files;
  ASSERT_TRUE(files.make_directory("data/lost+found"));
  ASSERT_TRUE(files.make_directory("data/.snapshot"));
  const std::string like_ours =
      "data/" + world.topic.hex() + "-7";  // a file named like a partition
  for (const auto& path : {std::string("data/x~"), like_ours, std::string("data/metadata.db-wal"),
                           world.directory() + "/notes.txt"})
    ASSERT_TRUE(files.open(path, base::OpenMode::create));
  world.start();
  EXPECT_EQ(world.complaints("left alone, not files of mq: .snapshot, "), 1);
  EXPECT_EQ(world.complaints("notes.txt"), 1);
  EXPECT_EQ(world.complaints(""), 2);
  EXPECT_TRUE(*files.exists("data/lost+found"));
  EXPECT_TRUE(*files.exists(like_ours));
  EXPECT_EQ(world.log().log_end_offset(), Offset(3));
}

TEST(Disk, UnknownPartitionsAreKeptAside) {  // REC-9
  StorageWorld world;
  world.start(2);
  world.append(3, 100, 1);
  ASSERT_TRUE(world.settle(1));
  ASSERT_TRUE(world.stop());
  const auto content = world.files->content(world.segment(0, 1));
  auto summary = world.start(1);
  ASSERT_EQ(summary.moved_to_unknown, std::vector<std::string>{world.id(1).text()});
  const std::string kept = "data/unknown/" + world.id(1).text();
  EXPECT_EQ(world.files->content(kept + "/00000000000000000000.log"), content);
  EXPECT_EQ(world.complaints(world.id(1).text()), 1);
  world.crash();
  summary = world.start(1);
  EXPECT_TRUE(summary.moved_to_unknown.empty());
  EXPECT_EQ(world.files->content(kept + "/00000000000000000000.log"), content);
  EXPECT_EQ(world.log().log_end_offset(), Offset(0));
}

TEST(Disk, CreatedLogSurvivesAPowerCutAtOnce) {  // REC-8
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    StorageWorld world(seed);
    world.start(1);
    auto creating = world.disk->create_log(world.spec(1));
    const auto created = run(world.simulator, std::move(creating));
    ASSERT_TRUE(created);
    ASSERT_TRUE((*created)->start_epoch(model::LeaderEpoch(1)));
    world.append(3, 100, 1);
    ASSERT_TRUE(world.settle(1));
    world.crash();
    world.start(2);
    ASSERT_EQ(world.log(1).log_end_offset(), Offset(3)) << seed;
  }
}

TEST(Disk, CreatingTwiceIsRefused) {
  StorageWorld world;
  world.start(1);
  auto creating = world.disk->create_log(world.spec(0));
  EXPECT_EQ(run(world.simulator, std::move(creating)).error(),
            make_error_code(StorageErrc::already_exists));
}

TEST(Disk, DeletedLogIsClosedAndItsDirectoryGone) {
  StorageWorld world;
  world.start(2);
  world.append(3, 100, 0);
  auto& log = world.log(0);
  int calls = 0;
  base::Error seen;
  log.on_changed([&] {
    ++calls;
    seen = log.failure();
  });
  auto deleting = world.disk->delete_log(world.id(0));
  ASSERT_TRUE(run(world.simulator, std::move(deleting)));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, make_error_code(StorageErrc::closed));
  EXPECT_EQ(world.disk->find(world.id(0)), nullptr);
  EXPECT_FALSE(*world.files->exists(world.directory(0)));
  EXPECT_TRUE(*world.files->exists(world.directory(1)));
  auto again = world.disk->delete_log(world.id(0));
  EXPECT_TRUE(run(world.simulator, std::move(again)));
}

TEST(Disk, LogIsDeletedOnlyWhenItsSyncsHaveEnded) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    StorageWorld world(seed);
    world.start(2);
    // Rolls and index files are under way when the deletion comes.
    for (int i = 0; i < 40; ++i) world.append(1, 5'000);
    world.pass(std::chrono::microseconds(seed * 50));
    auto deleting = world.disk->delete_log(world.id(0));
    const auto deleted = run(world.simulator, std::move(deleting));
    ASSERT_TRUE(deleted) << seed << " " << deleted.error().message() << " "
                         << ::testing::PrintToString(world.lines);
    world.pass(std::chrono::seconds(2));
    ASSERT_FALSE(world.disk->failed()) << seed;
    ASSERT_FALSE(*world.files->exists(world.directory(0))) << seed;
  }
}

TEST(Disk, ManyLogsAreMadeAtOnceAndDurable) {
  StorageWorld world;
  world.start(0);
  std::vector<storage::LogSpec> specs;
  for (int i = 0; i < 64; ++i) specs.push_back(world.spec(i));
  auto creating = world.disk->create_logs(specs);
  ASSERT_TRUE(run(world.simulator, std::move(creating)));
  auto again = world.disk->create_logs(specs);
  EXPECT_EQ(run(world.simulator, std::move(again)).error(),
            make_error_code(StorageErrc::already_exists));
  world.crash();
  EXPECT_TRUE(world.start(64).offline.empty());
}

TEST(Disk, TopicHalfDeletedByACrashIsNotAStranger) {
  StorageWorld world;
  world.start(3);
  for (int i = 0; i < 3; ++i) world.append(3, 100, i);
  ASSERT_TRUE(world.stop());
  world.deleting = {world.topic};
  const auto summary = world.start(0);
  EXPECT_TRUE(summary.moved_to_unknown.empty());
  auto deleting = world.disk->delete_topic(world.topic);
  ASSERT_TRUE(run(world.simulator, std::move(deleting)));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(*world.files->exists(world.directory(i)));
}

TEST(Disk, GivenUpDeletionEndsEarlyAndIsDoneByTheNextStart) {
  StorageWorld world;
  world.start(400);
  for (int i = 0; i < 400; ++i) world.append(1, 100, i);
  std::optional<base::Error> ended;
  auto task = [](storage::Disk& disk, base::Uuid topic,
                 std::optional<base::Error>& out) -> asio::awaitable<void> {
    auto deleting = disk.delete_topic(topic);
    const auto result = co_await std::move(deleting);
    out = result ? base::Error() : result.error();
  };
  world.runtime.spawn("delete", task(*world.disk, world.topic, ended));
  world.pass(std::chrono::milliseconds(10));
  EXPECT_FALSE(ended);
  world.disk->give_up_deletions();
  world.simulator.run_until([&] { return ended.has_value(); }, std::chrono::seconds(20));
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, make_error_code(StorageErrc::closed));
  ASSERT_TRUE(world.stop());
  world.deleting = {world.topic};
  world.start(0);
  auto deleting = world.disk->delete_topic(world.topic);
  ASSERT_TRUE(run(world.simulator, std::move(deleting)));
  for (int i = 0; i < 400; ++i) EXPECT_FALSE(*world.files->exists(world.directory(i)));
}

TEST(Disk, ReaderUnderWayIsWaitedForWhenALogIsDeleted) {
  StorageWorld world;
  world.config.tail_cache_bytes = 1;
  world.start(1);
  for (int i = 0; i < 100; ++i) world.append(1, 5'000);
  std::optional<base::Error> seen;
  auto reader = [](storage::PartitionLog& log,
                   std::optional<base::Error>& out) -> asio::awaitable<void> {
    auto reading = log.read_from_disk(Offset(3), Offset(50), 1'000);
    const auto result = co_await std::move(reading);
    out = result ? base::Error() : result.error();
  };
  world.runtime.spawn("reader", reader(world.log(), seen));
  world.simulator.step();
  auto deleting = world.disk->delete_log(world.id(0));
  ASSERT_TRUE(run(world.simulator, std::move(deleting)));
  ASSERT_TRUE(seen.has_value());
  EXPECT_TRUE(*seen == base::Error() || *seen == make_error_code(StorageErrc::closed));
}

TEST(Disk, StopReleasesTheLockAndMarksClean) {  // REC-4
  StorageWorld world;
  world.start();
  world.append(3);
  ASSERT_TRUE(world.stop());
  EXPECT_TRUE(*world.files->exists("data/clean"));
  world.start();
  EXPECT_FALSE(*world.files->exists("data/clean"));
}

}  // namespace
}  // namespace mq::testing
