#include "base/mutants.h"
#include "producer_world.h"
#include "storage/storage_format.h"

namespace mq::testing {
namespace {

using model::Offset;

constexpr std::int64_t kProducers = 4;

/// Producers that append in turns, each its own sequences.
struct Producers {
  storage::AppendInfo append(StorageWorld& world, std::int64_t id, int records = 2,
                             std::size_t value_bytes = 300) {
    auto batch = named_batch(id, 0, next[id], records, value_bytes);
    const auto info = world.append_batch(batch);
    EXPECT_TRUE(info) << info.error().message();
    next[id] = model::advance_sequence(next[id], static_cast<std::uint32_t>(records));
    return info ? *info : storage::AppendInfo();
  }
  void fill(StorageWorld& world, int batches) {
    for (int i = 0; i < batches; ++i) append(world, i % kProducers);
  }
  std::map<std::int64_t, std::int32_t> next;
};

std::vector<std::byte> contents(StorageWorld& world, const std::string& path) {
  auto bytes = base::read_file(*world.files, path, 1u << 20);
  EXPECT_TRUE(bytes);
  return bytes ? *std::move(bytes) : std::vector<std::byte>();
}

TEST(ProducerRecoveryTest, ACleanStartReadsTheSnapshotOfTheEndAndNoLog) {
  StorageWorld world;
  world.start();
  Producers producers;
  producers.fill(world, 300);
  ASSERT_TRUE(world.stop());
  const auto summary = world.start();
  EXPECT_TRUE(summary.clean);
  EXPECT_EQ(summary.producer_bytes_scanned, 0u);
  EXPECT_EQ(world.log().find_producer(1)->batches().size(), 5u);
  expect_remembered_as_in_the_log(world, kProducers, "after a clean stop");
}

TEST(ProducerRecoveryTest, AKillForgetsNothing) {
  StorageWorld world;
  world.start();
  Producers producers;
  producers.fill(world, 300);
  world.pass(std::chrono::seconds(1));  // snapshots are written beside
  world.kill();
  const auto summary = world.start();
  // Only behind the newest snapshot, which came with the newest segment.
  EXPECT_GT(summary.producer_bytes_scanned, 0u);
  EXPECT_LT(summary.producer_bytes_scanned, world.settings.segment_bytes);
  expect_remembered_as_in_the_log(world, kProducers, "after a kill");
  EXPECT_EQ(world.log().find_producer(0)->next_sequence(), producers.next[0]);
}

// LOG-5: what is deleted or damaged of them changes no answer.
TEST(ProducerRecoveryTest, SnapshotsAreCaches) {
  for (const bool clean : {true, false}) {
    StorageWorld world;
    world.start();
    Producers producers;
    producers.fill(world, 400);
    const auto end = [&] {
      world.pass(std::chrono::seconds(1));
      if (clean) {
        ASSERT_TRUE(world.stop());
      } else {
        world.kill();
      }
    };
    end();
    ASSERT_EQ(producers_files(world).size(), 3u);
    for (int round = 0; round < 12; ++round) {
      const auto files = producers_files(world);
      ASSERT_FALSE(files.empty());
      for (std::size_t i = 0; i < files.size(); ++i) {
        const std::size_t bytes = contents(world, files[i]).size();
        if (round % 4 == 0 || (round % 4 == 1 && i > 0)) {
          ASSERT_TRUE(world.files->remove_file(files[i]));
        } else if (round % 4 == 2) {
          world.files->flip(files[i], world.simulator.random().below(bytes), std::byte{16});
        }
      }
      world.start();
      expect_remembered_as_in_the_log(world, kProducers, fmt::format("round {}", round));
      producers.fill(world, 120);  // a new segment comes, and a snapshot with it
      end();
    }
  }
}

/// The log grows past a snapshot's offset again, with other batches.
TEST(ProducerRecoveryTest, ASnapshotAboveTheEndAfterAPowerCutIsGoneForGood) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    StorageWorld world(seed);
    world.settings.durability = model::Durability::memory;
    world.start();
    Producers producers;
    producers.fill(world, 30);
    for (int round = 0; round < 4; ++round) {
      producers.fill(world, 250);
      world.pass(std::chrono::milliseconds(world.simulator.random().below(2000)));
      world.crash();
      world.start();
      expect_remembered_as_in_the_log(world, 100, fmt::format("seed {} round {}", seed, round));
      producers.next.clear();
      for (int i = 0; i < 200; ++i)
        producers.append(world, 10 + world.simulator.random().below(40), 1 + i % 3);
      world.crash();
      world.start();
      expect_remembered_as_in_the_log(world, 100, fmt::format("seed {} round {}b", seed, round));
      producers.next.clear();
      for (std::int64_t id = 0; id < kProducers; ++id) producers.next[id] = 0;
    }
  }
}

TEST(ProducerRecoveryTest, ASnapshotOfAnotherHistoryIsNotBelieved) {
  StorageWorld world;
  world.start(2);
  Producers producers;
  producers.fill(world, 300);
  world.pass(std::chrono::seconds(1));
  world.kill();
  const auto files = producers_files(world);
  ASSERT_FALSE(files.empty());
  // The same partition's log with the same offsets, but other batches in it.
  StorageWorld other;
  other.start(2);
  Producers others;
  others.next = {{0, 40}, {1, 40}, {2, 40}, {3, 40}};
  others.fill(other, 300);
  other.kill();
  for (const auto& name : files) {
    const auto bytes = contents(world, name);
    const auto file = other.files->open(name, base::OpenMode::create);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->truncate(0));
    const base::Bytes piece = bytes;
    ASSERT_TRUE(base::write_fully(**file, std::span(&piece, 1), 0));
  }
  other.start(2);
  expect_remembered_as_in_the_log(other, kProducers, "with another log's snapshots");
  EXPECT_GE(other.complaints("not the producers of this log"), 1);
}

TEST(ProducerRecoveryTest, RetentionTakesSnapshotsAndProducersAlong) {
  StorageWorld world;
  world.settings.retention_bytes = 200u << 10;
  world.start();
  Producers producers;
  producers.append(world, 9);  // never again
  producers.fill(world, 2000);
  world.pass(std::chrono::seconds(30));
  ASSERT_GT(world.log().log_start_offset(), Offset(0));
  EXPECT_EQ(world.log().find_producer(9), nullptr);
  expect_remembered_as_in_the_log(world, 10, "after retention");
  EXPECT_LE(producers_files(world).size(), 3u);
  world.kill();
  for (const auto& name : producers_files(world)) ASSERT_TRUE(world.files->remove_file(name));
  world.start();
  expect_remembered_as_in_the_log(world, 10, "after retention and a kill");
}

TEST(ProducerRecoveryTest, ATrimInsideABatchForgetsWhatIsWhollyBelow) {
  StorageWorld world;
  world.start();
  Producers producers;
  producers.append(world, 1, 10);
  producers.append(world, 2, 10);
  ASSERT_TRUE(world.settle());
  ASSERT_TRUE(world.trim(Offset(15)));
  EXPECT_EQ(world.log().find_producer(1), nullptr);
  EXPECT_NE(world.log().find_producer(2), nullptr);
  expect_remembered_as_in_the_log(world, 3, "after a trim");
  world.kill();
  world.start();
  expect_remembered_as_in_the_log(world, 3, "after a trim and a kill");
  ASSERT_TRUE(world.stop());
  world.start();
  expect_remembered_as_in_the_log(world, 3, "after a trim and a clean stop");
}

TEST(ProducerRecoveryTest, WithoutSnapshotsOnlyTheLastDayIsRead) {
  StorageWorld world;
  world.settings.segment_age = std::chrono::hours(1);
  world.start();
  Producers producers;
  for (int hour = 0; hour < 60; ++hour) {
    producers.append(world, hour % kProducers, 2, 2000);
    world.pass(std::chrono::hours(1));
  }
  const auto bytes = world.log().bytes_on_disk();
  world.kill();
  for (const auto& name : producers_files(world)) ASSERT_TRUE(world.files->remove_file(name));
  const auto summary = world.start();
  EXPECT_LT(summary.producer_bytes_scanned, bytes / 2);
  expect_remembered_as_in_the_log(world, kProducers, "after sixty hours");
}

// REC-1: who appended what cannot be told, and nothing is guessed.
TEST(ProducerRecoveryTest, DamageBehindTheNewestSnapshotTakesThePartitionOffline) {
  StorageWorld world;
  world.start();
  Producers producers;
  producers.fill(world, 50);
  ASSERT_TRUE(world.stop());
  for (const auto& name : producers_files(world)) ASSERT_TRUE(world.files->remove_file(name));
  world.files->flip(world.segment(0), 300, std::byte{4});
  const auto summary = world.start();
  EXPECT_EQ(summary.offline.size(), 1u);
  EXPECT_EQ(world.log().failure(), make_error_code(StorageErrc::partition_corrupt));
}

// LOG-6: a refused append is not remembered either.
TEST(ProducerRecoveryTest, AFailedAppendIsNotRemembered) {
  StorageWorld world;
  world.start();
  Producers producers;
  producers.append(world, 1);
  world.files->set_capacity(world.files->used_bytes());
  auto batch = named_batch(1, 0, producers.next[1], 500, 1000);
  EXPECT_FALSE(world.append_batch(batch));
  EXPECT_EQ(world.log().find_producer(1)->next_sequence(), producers.next[1]);
}

TEST(ProducerRecoveryTest, TheTestsNoticeAForgottenWindow) {
  StorageWorld world;
  world.start();
  Producers producers;
  producers.fill(world, 10);
  world.kill();
  const base::EnabledMutant mutant("dedup_forgotten_at_start");
  world.start();
  EXPECT_EQ(world.log().find_producer(1), nullptr);
}

}  // namespace
}  // namespace mq::testing
