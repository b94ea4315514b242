#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metadata/store.h"

struct sqlite3;

namespace mq::metadata {

/// The file behind the SQLite store: blocking calls, one at a time, on any thread. Format (schema,
/// version numbers): README.md.
class SqliteDatabase {
 public:
  /// Opens the file or makes a new one under a temporary name first, so that a file that is there
  /// is always whole. Removes the ephemeral nodes of earlier sessions.
  static Result<std::unique_ptr<SqliteDatabase>> open(const std::string& path,
                                                      std::uint64_t session);
  ~SqliteDatabase();
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  Result<std::optional<Node>> get(const std::string& path);
  Result<std::vector<std::string>> children(const std::string& path);
  Result<MultiResult> multi(const std::vector<Operation>& operations);
  /// Ends the session and empties the write-ahead log. Everything later is unavailable.
  void close();

  /// False for good once an I/O error happened. Any thread.
  [[nodiscard]] bool online() const noexcept { return online_; }

 private:
  class Table;
  SqliteDatabase(std::string path, sqlite3* database, std::uint64_t session);

  Result<void> prepare();
  Result<void> remove_ephemerals();
  Result<void> run(const char* sql);
  Error commit();
  void roll_back();
  void trim_log();
  /// The error for `code`; anything but a full disk takes the store offline.
  Error failed(int code, const char* what);

  std::string path_;
  sqlite3* database_;
  std::uint64_t session_;
  int log_pages_ = 0;  ///< in the write-ahead log after the newest commit
  std::unique_ptr<Table> table_;
  std::atomic<bool> online_{true};
};

}  // namespace mq::metadata
