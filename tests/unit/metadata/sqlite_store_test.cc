// What only the SQLite backend has: a file with permissions, a version and checksums, and a disk
// that fails.
#include "metadata/sqlite_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/real/thread_disk_executor.h"
#include "support/temp_dir.h"
#include "unit/metadata/faulty_vfs.h"
#include "unit/metadata/run_loop.h"

namespace mq::metadata {
namespace {

class SqliteStoreTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<MetadataStore>> open() {
    return loop_.run(open_sqlite_store(path_, disk_, loop_.runtime()));
  }
  void close(std::unique_ptr<MetadataStore> store) { loop_.run(store->close()); }
  Error create(MetadataStore& store, const std::string& path, const std::string& value = "") {
    return loop_.run(store.create(path, value)).error();
  }
  Error get(MetadataStore& store, const std::string& path) {
    return loop_.run(store.get(path)).error();
  }
  void make_with_nodes(int count) {
    auto store = open();
    ASSERT_TRUE(store);
    for (int i = 0; i < count; ++i)
      ASSERT_FALSE(create(**store, "/n" + std::to_string(i), std::string(1000, 'v')));
    close(std::move(*store));
  }
  void execute(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  std::string contents() {
    std::ifstream in(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  mq::testing::TempDir folder_;
  std::string path_ = folder_ / "metadata.db";
  base::ThreadDiskExecutor disk_{2};
  mq::testing::RunLoop loop_;
};

const Error kUnavailable = MetadataErrc::unavailable;
const Error kUnknownFormat = MetadataErrc::unknown_format;
const Error kDamaged = MetadataErrc::damaged;

TEST_F(SqliteStoreTest, FilesAreForTheBrokersUserOnly) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_FALSE(create(**store, "/a"));
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    struct stat status {};
    ASSERT_EQ(::stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
    ++seen;
  }
  EXPECT_EQ(seen, 2);  // metadata.db and metadata.db-wal
  close(std::move(*store));
  ::chmod(path_.c_str(), 0644);
  store = open();
  ASSERT_TRUE(store);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  close(std::move(*store));
}

TEST_F(SqliteStoreTest, ForeignFilesAreRefusedAndLeftAlone) {
  const std::vector<std::string> foreign{"", "x", "not a database at all", std::string(4096, '\0')};
  for (const auto& bytes : foreign) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    EXPECT_EQ(open().error(), kUnknownFormat);
    EXPECT_EQ(contents(), bytes);
    EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  }
}

TEST_F(SqliteStoreTest, AnotherProgramsDatabaseIsRefusedAndLeftAlone) {
  execute("CREATE TABLE other (x)");
  const auto before = contents();
  EXPECT_EQ(open().error(), kUnknownFormat);
  EXPECT_EQ(contents(), before);
}

TEST_F(SqliteStoreTest, NewerFormatIsRefusedAndLeftAlone) {
  make_with_nodes(1);
  execute("PRAGMA user_version = 2");
  const auto before = contents();
  EXPECT_EQ(open().error(), kUnknownFormat);
  EXPECT_EQ(contents(), before);
}

TEST_F(SqliteStoreTest, FolderOrLinkInItsPlaceIsRefused) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(open().error(), kUnknownFormat);
  std::filesystem::remove(path_);
  std::filesystem::create_symlink(folder_ / "elsewhere", path_);
  EXPECT_EQ(open().error(), kUnknownFormat);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

TEST_F(SqliteStoreTest, InterruptedCreationIsStartedAfresh) {
  std::ofstream(path_ + ".new") << "half written";
  std::ofstream(path_ + ".new-journal") << "half written";
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_FALSE(create(**store, "/a"));
  close(std::move(*store));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".new"));
}

TEST_F(SqliteStoreTest, SecondOpenOfTheSameFileIsUnavailable) {
  auto first = open();
  ASSERT_TRUE(first);
  ASSERT_FALSE(create(**first, "/a"));
  EXPECT_EQ(open().error(), kUnavailable);
  EXPECT_FALSE(create(**first, "/b"));
  close(std::move(*first));
}

TEST_F(SqliteStoreTest, ChangedRowDoesNotMatchItsChecksum) {
  make_with_nodes(3);
  execute("UPDATE nodes SET value = x'41' WHERE path = '/n1'");
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ(get(**store, "/n1"), kDamaged);
  EXPECT_FALSE(get(**store, "/n0"));
  EXPECT_EQ(loop_.run((*store)->set("/n1", "", kAnyVersion)).error(), kDamaged);
  close(std::move(*store));
}

TEST_F(SqliteStoreTest, FlippedBytesAreNeverBelieved) {
  make_with_nodes(20);
  const auto whole = contents();
  const std::string value(1000, 'v');
  for (std::size_t at = 100; at < whole.size(); at += 397) {
    auto flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x10);
    std::filesystem::remove(path_ + "-wal");
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << flipped;
    auto store = open();
    if (!store) continue;
    for (int i = 0; i < 20; ++i) {
      const auto node = loop_.run((*store)->get("/n" + std::to_string(i)));
      if (node) {
        EXPECT_EQ(node->value, value) << "byte " << at;
      }
    }
    close(std::move(*store));
  }
}

TEST_F(SqliteStoreTest, LogStaysSmallOverManyWrites) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_FALSE(create(**store, "/a"));
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(loop_.run((*store)->set("/a", std::string(200'000, 'x'), i)));
  EXPECT_LT(std::filesystem::file_size(path_ + "-wal"), std::uintmax_t{8} << 20);
  close(std::move(*store));
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
}

class FailingDisk : public SqliteStoreTest {
 protected:
  /// The next calls of this kind on the write-ahead log (or, with "", the file itself) fail.
  void fail(const std::string& call, const std::string& suffix, int code) {
    vfs_.set([call, suffix, code, path = path_](const std::string& made, const std::string& file) {
      return made == call && file == path + suffix ? code : SQLITE_OK;
    });
  }
  void heal() { vfs_.set(nullptr); }
  mq::testing::FaultyVfs vfs_;
};

// MET-1: after a failed sync nobody knows, and nobody asks again.
TEST_F(FailingDisk, FailedSyncOfACommitIsUnknownAndEndsTheStore) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_FALSE(create(**store, "/a"));
  fail("sync", "-wal", SQLITE_IOERR_FSYNC);
  EXPECT_EQ(create(**store, "/b"), make_error_code(MetadataErrc::outcome_unknown));
  heal();
  EXPECT_FALSE((*store)->online());
  EXPECT_EQ(create(**store, "/c"), kUnavailable);
  EXPECT_EQ(get(**store, "/a"), kUnavailable);
  close(std::move(*store));
  store = open();
  ASSERT_TRUE(store);
  EXPECT_FALSE(get(**store, "/a"));
  EXPECT_EQ(get(**store, "/c"), make_error_code(MetadataErrc::not_found));
  close(std::move(*store));
}

TEST_F(FailingDisk, FailedWriteOfACommitIsUnknownAndEndsTheStore) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_FALSE(create(**store, "/a"));
  fail("write", "-wal", SQLITE_IOERR_WRITE);
  const auto error = create(**store, "/b");
  EXPECT_TRUE(error == make_error_code(MetadataErrc::outcome_unknown) || error == kUnavailable);
  heal();
  EXPECT_FALSE((*store)->online());
  EXPECT_EQ(get(**store, "/a"), kUnavailable);
  close(std::move(*store));
}

// REC-6: a full disk is no disk failure.
TEST_F(FailingDisk, FullDiskRefusesWritesAndRecoversByItself) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_FALSE(create(**store, "/a"));
  fail("write", "-wal", SQLITE_FULL);
  EXPECT_EQ(create(**store, "/b"), make_error_code(MetadataErrc::full));
  EXPECT_TRUE((*store)->online());
  EXPECT_FALSE(get(**store, "/a"));
  EXPECT_EQ(get(**store, "/b"), make_error_code(MetadataErrc::not_found));
  heal();
  EXPECT_FALSE(create(**store, "/b"));
  close(std::move(*store));
  store = open();
  ASSERT_TRUE(store);
  EXPECT_FALSE(get(**store, "/a"));
  EXPECT_FALSE(get(**store, "/b"));
  close(std::move(*store));
}

TEST_F(FailingDisk, FailedReadEndsTheStore) {
  make_with_nodes(50);
  auto store = open();
  ASSERT_TRUE(store);
  fail("read", "", SQLITE_IOERR_READ);
  // Some pages are in SQLite's cache; a listing that needs another one fails.
  Error error;
  for (int i = 0; i < 50 && !error; ++i) error = get(**store, "/n" + std::to_string(i));
  if (error) {
    EXPECT_EQ(error, kUnavailable);
    EXPECT_FALSE((*store)->online());
  }
  heal();
  close(std::move(*store));
}

TEST_F(FailingDisk, FailedCopyOfTheLogEndsTheStoreButLosesNothing) {
  auto store = open();
  ASSERT_TRUE(store);
  ASSERT_FALSE(create(**store, "/a"));
  fail("sync", "", SQLITE_IOERR_FSYNC);
  std::int32_t version = 0;
  while ((*store)->online() && version < 60) {
    ASSERT_TRUE(loop_.run((*store)->set("/a", std::string(200'000, 'x'), version)));
    ++version;
  }
  EXPECT_FALSE((*store)->online());
  heal();
  close(std::move(*store));
  store = open();
  ASSERT_TRUE(store);
  EXPECT_EQ(loop_.run((*store)->get("/a"))->version, version);
  close(std::move(*store));
}

TEST_F(FailingDisk, StoreThatCannotBeMadeSaysSoAndTheNextTryWorks) {
  vfs_.set([](const std::string& call, const std::string&) {
    return call == "write" ? SQLITE_FULL : SQLITE_OK;
  });
  EXPECT_EQ(open().error(), make_error_code(MetadataErrc::full));
  EXPECT_FALSE(std::filesystem::exists(path_));
  heal();
  auto store = open();
  ASSERT_TRUE(store);
  EXPECT_FALSE(create(**store, "/a"));
  close(std::move(*store));
}

}  // namespace
}  // namespace mq::metadata
