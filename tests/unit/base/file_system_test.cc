#include "base/file_system.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/real/posix_file_system.h"
#include "support/crashable_file_system.h"
#include "support/temp_dir.h"

namespace mq::base {
namespace {

std::string text_of(FileSystem& files, const std::string& path) {
  const auto contents = read_file(files, path, 1 << 20);
  return contents ? std::string(as_text(*contents)) : "error: " + contents.error().message();
}

void write(FileSystem& files, const std::string& path, std::string_view text) {
  const auto file = files.open(path, OpenMode::create);
  ASSERT_TRUE(file);
  const Bytes piece = as_bytes(text);
  ASSERT_TRUE(write_fully(**file, std::span(&piece, 1), 0));
}

class PosixFileSystemTest : public ::testing::Test {
 protected:
  testing::TempDir dir;
  PosixFileSystem files;
};

TEST_F(PosixFileSystemTest, PiecesAreWrittenOneBehindTheOther) {
  const auto file = *files.open(dir / "f", OpenMode::create_exclusive);
  std::vector<std::string> texts;
  std::vector<Bytes> pieces;
  std::string whole;
  for (int i = 0; i < 40; ++i) texts.push_back(std::string(i, static_cast<char>('a' + i % 26)));
  for (const auto& text : texts) {
    pieces.push_back(as_bytes(text));
    whole += text;
  }
  EXPECT_EQ(*file->write_at(pieces, 3), whole.size());
  EXPECT_EQ(*file->size(), whole.size() + 3);
  std::string read(whole.size() + 10, '?');
  const auto got = file->read_at(std::as_writable_bytes(std::span(read)), 3);
  EXPECT_EQ(*got, whole.size());
  EXPECT_EQ(read.substr(0, *got), whole);
  EXPECT_EQ(*file->read_at(std::as_writable_bytes(std::span(read)), 1 << 20), 0u);
  EXPECT_TRUE(file->sync_data());
  EXPECT_TRUE(file->sync_all());
}

TEST_F(PosixFileSystemTest, AllocateKeepsTheSize) {
  const auto file = *files.open(dir / "f", OpenMode::create);
  EXPECT_TRUE(file->allocate(0, 1 << 20));
  EXPECT_EQ(*file->size(), 0u);
  EXPECT_TRUE(file->truncate(100));
  EXPECT_EQ(*file->size(), 100u);
}

TEST_F(PosixFileSystemTest, OpenModes) {
  EXPECT_EQ(files.open(dir / "none", OpenMode::read).error(), BaseErrc::not_found);
  EXPECT_EQ(files.open(dir / "none", OpenMode::write).error(), BaseErrc::not_found);
  EXPECT_TRUE(files.open(dir / "f", OpenMode::create));
  EXPECT_TRUE(files.open(dir / "f", OpenMode::create));
  EXPECT_EQ(files.open(dir / "f", OpenMode::create_exclusive).error(), BaseErrc::already_exists);
  ASSERT_EQ(::symlink((dir / "f").c_str(), (dir / "link").c_str()), 0);
  EXPECT_FALSE(files.open(dir / "link", OpenMode::read)) << "links are not followed";
}

TEST_F(PosixFileSystemTest, FilesAndFoldersAreForTheirOwnerOnly) {
  write(files, dir / "f", "x");
  ASSERT_TRUE(files.make_directory(dir / "d"));
  struct stat status {};
  ASSERT_EQ(::stat((dir / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0u);
  ASSERT_EQ(::stat((dir / "d").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077, 0u);
}

TEST_F(PosixFileSystemTest, Directories) {
  EXPECT_TRUE(files.make_directory(dir / "d"));
  EXPECT_EQ(files.make_directory(dir / "d").error(), BaseErrc::already_exists);
  write(files, dir / "d/b", "1");
  write(files, dir / "d/a", "2");
  ASSERT_TRUE(files.make_directory(dir / "d/c"));
  const auto entries = *files.list_directory(dir / "d");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_FALSE(entries[0].is_directory);
  EXPECT_TRUE(entries[2].is_directory);
  EXPECT_FALSE(files.remove_directory(dir / "d"));
  EXPECT_TRUE(files.sync_directory(dir / "d"));
  EXPECT_EQ(files.list_directory(dir / "none").error(), BaseErrc::not_found);
  EXPECT_TRUE(*files.exists(dir / "d"));
  EXPECT_FALSE(*files.exists(dir / "d/none"));
  EXPECT_GT(*files.free_bytes(dir.path()), 0u);
}

TEST_F(PosixFileSystemTest, ReplaceLeavesTheNewContentsOnly) {
  ASSERT_TRUE(replace_file(files, dir / "f", as_bytes("a longer first text")));
  ASSERT_TRUE(replace_file(files, dir / "f", as_bytes("second")));
  EXPECT_EQ(text_of(files, dir / "f"), "second");
  EXPECT_EQ(files.list_directory(dir.path())->size(), 1u);
  EXPECT_EQ(read_file(files, dir / "f", 5).error(), BaseErrc::too_large);
}

// REC-7: the lock names its holder, and a stale one does not block.
TEST_F(PosixFileSystemTest, LockIsExclusiveAndNamesItsHolder) {
  const std::string path = dir / "lock";
  write(files, path, "999999\n");
  auto lock = files.lock(path);
  ASSERT_TRUE(lock) << "a file left behind by a killed process";
  EXPECT_EQ(files.lock(path).error(), BaseErrc::locked);
  EXPECT_EQ(files.lock_holder(path), "pid " + std::to_string(::getpid()));
  *lock = nullptr;
  EXPECT_TRUE(files.lock(path));
  EXPECT_EQ(files.lock_holder(dir / "none"), "unknown");
}

class CrashableFileSystemTest : public ::testing::Test {
 protected:
  testing::TempDir dir;
  PosixFileSystem real;
  testing::CrashableFileSystem files{real, testing::SimRandom(7)};
};

TEST_F(CrashableFileSystemTest, NothingHasAnEffectAfterDeath) {
  write(files, dir / "f", "before");
  const auto file = *files.open(dir / "f", OpenMode::write);
  files.kill();
  const Bytes piece = as_bytes("after!");
  EXPECT_FALSE(file->write_at(std::span(&piece, 1), 0));
  EXPECT_FALSE(file->truncate(0));
  EXPECT_FALSE(file->sync_data());
  EXPECT_FALSE(files.open(dir / "g", OpenMode::create));
  EXPECT_FALSE(files.remove_file(dir / "f"));
  EXPECT_FALSE(files.exists(dir / "f"));
  EXPECT_EQ(text_of(real, dir / "f"), "before");
  EXPECT_FALSE(*real.exists(dir / "g"));
}

TEST_F(CrashableFileSystemTest, DeathFreesTheLock) {
  auto lock = files.lock(dir / "lock");
  ASSERT_TRUE(lock);
  EXPECT_EQ(real.lock(dir / "lock").error(), BaseErrc::locked);
  files.kill();
  auto next = real.lock(dir / "lock");
  ASSERT_TRUE(next);
  *lock = nullptr;  // the dead incarnation lets go later; the new holder keeps it
  EXPECT_EQ(real.lock(dir / "lock").error(), BaseErrc::locked);
}

TEST_F(CrashableFileSystemTest, PlannedDeathNeverReportsSuccess) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    testing::CrashableFileSystem mortal(real, testing::SimRandom(seed));
    const std::string path = dir / std::to_string(seed);
    write(mortal, path, "");
    const auto file = *mortal.open(path, OpenMode::write);
    bool died = false;
    mortal.kill_after(1, [&died] { died = true; });
    const Bytes pieces[] = {as_bytes("01234"), as_bytes("56789")};
    EXPECT_FALSE(file->write_at(pieces, 0));
    EXPECT_TRUE(died);
    EXPECT_TRUE(mortal.dead());
    const std::string left = text_of(real, path);
    EXPECT_EQ(left, std::string("0123456789").substr(0, left.size()));
  }
}

}  // namespace
}  // namespace mq::base
