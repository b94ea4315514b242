#include "metadata/sqlite_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/log.h"
#include "base/unique_fd.h"

namespace mq::metadata::sqlite_file {
namespace {

constexpr const char* kSchema =
    "CREATE TABLE nodes ("
    "  path TEXT NOT NULL PRIMARY KEY,"
    "  parent TEXT NOT NULL,"
    "  value BLOB NOT NULL,"
    "  version INTEGER NOT NULL,"
    "  owner INTEGER NOT NULL,"
    "  checksum INTEGER NOT NULL) STRICT;"
    "CREATE INDEX nodes_parent ON nodes (parent, path);";

// Places in the header that every SQLite file begins with; integers there are big-endian.
constexpr std::size_t kHeaderBytes = 100;
constexpr std::size_t kSchemaVersionAt = 60;
constexpr std::size_t kApplicationIdAt = 68;
constexpr char kMagic[] = "SQLite format 3";

using Header = std::array<unsigned char, kHeaderBytes>;

Error refused(const char* what, const std::string& path) {
  const int error = errno;
  base::log_error("metadata", "{} {}: {}", what, path, std::generic_category().message(error));
  return error == ENOSPC || error == EDQUOT ? MetadataErrc::full : MetadataErrc::unavailable;
}

std::int32_t big_endian(const Header& header, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | header[at + i];
  return static_cast<std::int32_t>(value);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

Result<void> sync_folder(const std::string& path) {
  const base::UniqueFd folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return refused("cannot sync the folder of", path);
  return {};
}

Result<void> write_schema(const std::string& path) {
  {
    const base::UniqueFd file(
        ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return refused("cannot create", path);
  }
  sqlite3* const database = open_connection(path);
  if (!database) return make_error_code(MetadataErrc::unavailable);
  const std::string sql = fmt::format(
      "PRAGMA synchronous=FULL; BEGIN; PRAGMA application_id={}; PRAGMA "
      "user_version={}; {} COMMIT;",
      kApplicationId, kSchemaVersion, kSchema);
  const int code = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK)
    base::log_error("metadata", "cannot set up {}: {}", path, sqlite3_errmsg(database));
  sqlite3_close_v2(database);
  if (code == SQLITE_OK) return {};
  return make_error_code((code & 0xff) == SQLITE_FULL ? MetadataErrc::full
                                                      : MetadataErrc::unavailable);
}

}  // namespace

Result<void> make(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode)) {
      base::log_error("metadata", "{} is not a regular file", path);
      return make_error_code(MetadataErrc::unknown_format);
    }
    if ((status.st_mode & 0077) != 0 && ::chmod(path.c_str(), 0600) != 0)
      return refused("cannot restrict", path);
    return {};
  }
  if (errno != ENOENT) return refused("cannot look at", path);
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  ::unlink((temporary + "-journal").c_str());
  MQ_TRY_VOID(write_schema(temporary));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return refused("cannot rename", temporary);
  return sync_folder(path);
}

Result<void> check_header(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return refused("cannot open", path);
  Header header{};
  const auto got = ::pread(file.get(), header.data(), header.size(), 0);
  if (got < 0) return refused("cannot read", path);
  const bool ours = got == static_cast<ssize_t>(header.size()) &&
                    std::memcmp(header.data(), kMagic, sizeof kMagic) == 0 &&
                    big_endian(header, kApplicationIdAt) == kApplicationId;
  if (!ours) {
    base::log_error("metadata", "{} is not a metadata store of mq", path);
    return make_error_code(MetadataErrc::unknown_format);
  }
  if (big_endian(header, kSchemaVersionAt) != kSchemaVersion) {
    base::log_error("metadata", "{} has format version {}; this release knows version {}", path,
                    big_endian(header, kSchemaVersionAt), kSchemaVersion);
    return make_error_code(MetadataErrc::unknown_format);
  }
  return {};
}

sqlite3* open_connection(const std::string& path) {
  sqlite3* database = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(path.c_str(), &database, flags, nullptr) == SQLITE_OK) return database;
  base::log_error("metadata", "cannot open {}: {}", path,
                  database ? sqlite3_errmsg(database) : "no memory");
  sqlite3_close_v2(database);
  return nullptr;
}

}  // namespace mq::metadata::sqlite_file
