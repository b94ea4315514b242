#include "support/sim_file_system.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace mq::testing {
namespace {

using base::OpenMode;

void write(base::File& file, std::size_t bytes, char fill, std::uint64_t position) {
  const std::string text(bytes, fill);
  const base::Bytes piece = base::as_bytes(text);
  ASSERT_TRUE(file.write_at(std::span(&piece, 1), position));
}

TEST(SimFileSystem, SyncedContentSurvivesEveryPowerCut) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimFileSystem files;
    SimRandom random(seed);
    {
      const auto file = *files.open("a", OpenMode::create);
      write(*file, 5'000, 'x', 0);
      ASSERT_TRUE(file->sync_data());
      write(*file, 3'000, 'y', 5'000);
    }
    ASSERT_TRUE(files.sync_directory(""));
    files.crash(random);
    const auto content = files.content("a");
    ASSERT_GE(content.size(), 5'000u);
    for (std::size_t i = 0; i < 5'000; ++i) ASSERT_EQ(content[i], std::byte{'x'});
  }
}

TEST(SimFileSystem, UnsyncedSectorsSurviveInAnySubset) {
  std::set<std::string> outcomes;
  std::set<std::size_t> sizes;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimFileSystem files;
    SimRandom random(seed);
    const auto file = *files.open("a", OpenMode::create);
    write(*file, 4 * 512, 'o', 0);
    ASSERT_TRUE(file->sync_data());
    ASSERT_TRUE(files.sync_directory(""));
    write(*file, 4 * 512, 'n', 0);
    write(*file, 512, 'n', 4 * 512);
    files.crash(random);
    const auto content = files.content("a");
    std::string outcome;
    for (int sector = 0; sector < 4; ++sector)
      outcome += static_cast<char>(content[static_cast<std::size_t>(sector) * 512 + 100]);
    outcomes.insert(outcome);
    sizes.insert(content.size());
  }
  EXPECT_EQ(outcomes.size(), 16u);
  EXPECT_GT(sizes.size(), 10u);
}

TEST(SimFileSystem, UnsyncedNamesSurviveOrNot) {
  std::set<std::vector<std::string>> outcomes;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SimFileSystem files;
    SimRandom random(seed);
    ASSERT_TRUE(files.open("old", OpenMode::create));
    ASSERT_TRUE(files.sync_directory(""));
    ASSERT_TRUE(files.open("new", OpenMode::create));
    ASSERT_TRUE(files.rename("old", "renamed"));
    files.crash(random);
    outcomes.insert(files.files_below(""));
  }
  EXPECT_EQ(outcomes.size(), 4u);
}

TEST(SimFileSystem, KillKeepsEverythingAndEndsOpenFilesAndLocks) {
  SimFileSystem files;
  const auto file = *files.open("a", OpenMode::create);
  write(*file, 100, 'x', 0);
  const auto lock = files.lock("lock");
  ASSERT_TRUE(lock);
  EXPECT_EQ(files.lock("lock").error(), make_error_code(base::BaseErrc::locked));
  files.kill();
  EXPECT_EQ(files.content("a").size(), 100u);
  const base::Bytes piece = base::as_bytes("z");
  EXPECT_FALSE(file->write_at(std::span(&piece, 1), 0));
  EXPECT_TRUE(files.lock("lock"));
}

TEST(SimFileSystem, SyncAfterAFailedSyncSavesNothing) {
  SimFileSystem files;
  SimRandom random(1);
  const auto file = *files.open("a", OpenMode::create);
  ASSERT_TRUE(files.sync_directory(""));
  write(*file, 512, 'x', 0);
  files.inject({.operation = FileOperation::sync});
  EXPECT_FALSE(file->sync_data());
  EXPECT_TRUE(file->sync_data());
  files.crash(random);
  const auto content = files.content("a");
  for (const auto b : content) EXPECT_NE(b, std::byte{'x'});
}

TEST(SimFileSystem, ASizeThatAFailedSyncLeftIsSyncedByTheNext) {
  int cut = 0;
  for (std::uint64_t seed = 1; seed <= 32; ++seed) {
    for (const bool again : {false, true}) {
      SimFileSystem files;
      SimRandom random(seed);
      const auto file = *files.open("a", OpenMode::create);
      ASSERT_TRUE(files.sync_directory(""));
      write(*file, 2'048, 'x', 0);
      ASSERT_TRUE(file->sync_all());
      ASSERT_TRUE(file->truncate(512));
      files.inject({.operation = FileOperation::sync});
      EXPECT_FALSE(file->sync_all());
      if (again) {
        EXPECT_TRUE(file->sync_all());
        write(*file, 1'024, 'y', 512);  // which may not reach the disk
      }
      files.crash(random);
      const auto content = files.content("a");
      const auto old = std::ranges::count(content, std::byte{'x'});
      if (again)
        EXPECT_EQ(old, 512) << seed << ": what was cut off is there again";
      else
        cut += old == 512 ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 0);
  EXPECT_LT(cut, 32);
}

TEST(SimFileSystem, UsedSpaceFollowsEveryChange) {
  SimFileSystem files;
  SimRandom random(5);
  const auto name = [&] { return std::string(1, static_cast<char>('a' + random.below(4))); };
  for (int step = 0; step < 2'000; ++step) {
    const auto dice = random.below(20);
    if (dice < 10) {
      const auto file = *files.open(name(), OpenMode::create);
      if (dice < 7) {
        const auto size = random.below(9'000);
        write(*file, size, static_cast<char>(step), random.below(20'000));
      } else {
        ASSERT_TRUE(file->truncate(random.below(20'000)));
      }
    } else if (dice < 13) {
      static_cast<void>(files.remove_file(name()));
    } else if (dice < 16) {
      const auto from = name();
      static_cast<void>(files.rename(from, name()));
    } else if (dice < 18) {
      ASSERT_TRUE(files.sync_directory(""));
    } else if (dice == 18) {
      files.crash(random);
    } else {
      files.kill();
    }
    // A power cut may leave a renamed file both of its names; it takes its space once.
    std::set<std::vector<std::byte>> contents;
    for (const auto& path : files.files_below("")) contents.insert(files.content(path));
    std::uint64_t expected = 0;
    for (const auto& content : contents) expected += (content.size() + 4'095) / 4'096 * 4'096;
    ASSERT_EQ(files.used_bytes(), expected) << "step " << step << ", dice " << dice;
  }
}

TEST(SimFileSystem, FullDiskTakesPartOfAWrite) {
  SimFileSystem files;
  files.set_capacity(8'192);
  const auto file = *files.open("a", OpenMode::create);
  const std::string text(10'000, 'x');
  const base::Bytes piece = base::as_bytes(text);
  EXPECT_EQ(*file->write_at(std::span(&piece, 1), 0), 8'192u);
  EXPECT_EQ(file->write_at(std::span(&piece, 1), 8'192).error(),
            make_error_code(base::BaseErrc::no_space));
  ASSERT_TRUE(file->truncate(0));
  EXPECT_EQ(file->allocate(0, 10'000).error(), make_error_code(base::BaseErrc::no_space));
  EXPECT_TRUE(file->allocate(0, 8'000));
  EXPECT_EQ(*files.free_bytes(""), 0u);
}

}  // namespace
}  // namespace mq::testing
