#include "metadata/sqlite_database.h"

#include <sqlite3.h>

#include "base/crc32c.h"
#include "base/log.h"
#include "metadata/node_table.h"
#include "metadata/sqlite_file.h"
#include "metadata/sqlite_statement.h"

namespace mq::metadata {
namespace {

/// The write-ahead log is copied into the file when it has this many pages.
constexpr int kLogPagesMax = 1000;

int note_log_pages(void* into, sqlite3* /*database*/, const char* /*schema*/, int pages) {
  *static_cast<int*>(into) = pages;
  return SQLITE_OK;
}

/// Over everything a row says, so that a damaged one is not believed. SQLite itself checks only the
/// shape of its pages.
std::int64_t checksum(const std::string& path, const Node& node) {
  std::string all = path;
  all += '\0';
  all += std::to_string(node.version);
  all += '\0';
  all += std::to_string(node.ephemeral_owner);
  all += '\0';
  all += node.value;
  return base::crc32c(base::as_bytes(all));
}

}  // namespace

/// The rows, within the transaction that is open.
class SqliteDatabase::Table final : public NodeTable {
 public:
  explicit Table(SqliteDatabase& owner)
      : owner_(owner),
        find_(owner.database_, "SELECT value, version, owner, checksum FROM nodes WHERE path = ?1"),
        child_names_(owner.database_, "SELECT path FROM nodes WHERE parent = ?1 ORDER BY path"),
        any_child_(owner.database_, "SELECT 1 FROM nodes WHERE parent = ?1 LIMIT 1"),
        insert_(owner.database_,
                "INSERT INTO nodes (path, parent, value, version, owner, checksum) VALUES (?1, ?6, "
                "?2, ?3, ?4, ?5)"),
        update_(owner.database_,
                "UPDATE nodes SET value = ?2, version = ?3, owner = ?4, checksum = ?5 WHERE path = "
                "?1"),
        erase_(owner.database_, "DELETE FROM nodes WHERE path = ?1") {}

  [[nodiscard]] bool valid() const noexcept {
    return find_.valid() && child_names_.valid() && any_child_.valid() && insert_.valid() &&
           update_.valid() && erase_.valid();
  }

  Result<std::optional<Node>> find(const std::string& path) override {
    const SqliteReset reset(find_);
    const int code = find_.text(1, path).step();
    if (code == SQLITE_DONE) return std::optional<Node>();
    if (code != SQLITE_ROW) return owner_.failed(code, "cannot read a node");
    const Node node{find_.column_bytes(0), static_cast<std::int32_t>(find_.column_number(1)),
                    static_cast<std::uint64_t>(find_.column_number(2))};
    if (find_.column_number(3) != checksum(path, node)) {
      base::log_error("metadata", "{}: the node {} does not match its checksum", owner_.path_,
                      base::printable(path, 200));
      return make_error_code(MetadataErrc::damaged);
    }
    return std::optional(node);
  }

  Result<std::vector<std::string>> child_names(const std::string& path) {
    const SqliteReset reset(child_names_);
    child_names_.text(1, path);
    std::vector<std::string> names;
    int code = SQLITE_ROW;
    while ((code = child_names_.step()) == SQLITE_ROW)
      names.emplace_back(node_name(child_names_.column_bytes(0)));
    if (code != SQLITE_DONE) return owner_.failed(code, "cannot list children");
    return names;
  }

  Result<bool> has_children(const std::string& path) override {
    const SqliteReset reset(any_child_);
    const int code = any_child_.text(1, path).step();
    if (code != SQLITE_ROW && code != SQLITE_DONE)
      return {boost::system::in_place_error, owner_.failed(code, "cannot look for children")};
    return code == SQLITE_ROW;
  }

  Result<void> insert(const std::string& path, const Node& node) override {
    insert_.text(6, parent_path(path));
    return write(insert_, path, node, "cannot insert a node");
  }
  Result<void> update(const std::string& path, const Node& node) override {
    return write(update_, path, node, "cannot update a node");
  }
  Result<void> erase(const std::string& path) override {
    const SqliteReset reset(erase_);
    const int code = erase_.text(1, path).step();
    if (code != SQLITE_DONE) return owner_.failed(code, "cannot delete a node");
    return {};
  }

 private:
  Result<void> write(SqliteStatement& statement, const std::string& path, const Node& node,
                     const char* what) {
    const SqliteReset reset(statement);
    statement.text(1, path).blob(2, node.value).number(3, node.version);
    statement.number(4, static_cast<std::int64_t>(node.ephemeral_owner));
    const int code = statement.number(5, checksum(path, node)).step();
    if (code != SQLITE_DONE) return owner_.failed(code, what);
    return {};
  }

  SqliteDatabase& owner_;
  SqliteStatement find_;
  SqliteStatement child_names_;
  SqliteStatement any_child_;
  SqliteStatement insert_;
  SqliteStatement update_;
  SqliteStatement erase_;
};

SqliteDatabase::SqliteDatabase(std::string path, sqlite3* database, std::uint64_t session)
    : path_(std::move(path)), database_(database), session_(session) {}

SqliteDatabase::~SqliteDatabase() {
  table_.reset();
  sqlite3_close_v2(database_);
}

Result<std::unique_ptr<SqliteDatabase>> SqliteDatabase::open(const std::string& path,
                                                             std::uint64_t session) {
  MQ_TRY_VOID(sqlite_file::make(path));
  MQ_TRY_VOID(sqlite_file::check_header(path));
  sqlite3* const connection = sqlite_file::open_connection(path);
  if (!connection) return make_error_code(MetadataErrc::unavailable);
  std::unique_ptr<SqliteDatabase> database(new SqliteDatabase(path, connection, session));
  MQ_TRY_VOID(database->prepare());
  return database;
}

Result<void> SqliteDatabase::prepare() {
  // Exclusive locking before the first access: no other process, and no shared-memory file.
  MQ_TRY_VOID(
      run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA trusted_schema=OFF; "
          "PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"));
  MQ_TRY_VOID(
      run("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; "
          "PRAGMA journal_size_limit=8388608;"));
  sqlite3_wal_hook(database_, note_log_pages, &log_pages_);  // instead of the automatic copy
  SqliteStatement shape(database_, "PRAGMA quick_check(1)");
  if (!shape.valid() || shape.step() != SQLITE_ROW || shape.column_bytes(0) != "ok") {
    base::log_error(
        "metadata", "{} is damaged: {}", path_,
        base::printable(shape.valid() ? shape.column_bytes(0) : sqlite3_errmsg(database_), 200));
    online_ = false;
    return make_error_code(MetadataErrc::damaged);
  }
  shape.reset();
  table_ = std::make_unique<Table>(*this);
  if (!table_->valid()) return failed(sqlite3_errcode(database_), "the schema does not fit");
  return remove_ephemerals();
}

Result<void> SqliteDatabase::remove_ephemerals() {
  SqliteStatement any(database_, "SELECT 1 FROM nodes WHERE owner <> 0 LIMIT 1");
  const int code = any.step();
  any.reset();
  if (code == SQLITE_DONE) return {};
  if (code != SQLITE_ROW) return failed(code, "cannot look for old sessions");
  return run("DELETE FROM nodes WHERE owner <> 0");
}

Result<std::optional<Node>> SqliteDatabase::get(const std::string& path) {
  if (!online_) return make_error_code(MetadataErrc::unavailable);
  if (path == "/") return std::optional(Node{});
  return table_->find(path);
}

Result<std::vector<std::string>> SqliteDatabase::children(const std::string& path) {
  if (!online_) return make_error_code(MetadataErrc::unavailable);
  MQ_TRY(const auto node, get(path));
  if (!node) return make_error_code(MetadataErrc::not_found);
  return table_->child_names(path);
}

Result<MultiResult> SqliteDatabase::multi(const std::vector<Operation>& operations) {
  if (!online_) return make_error_code(MetadataErrc::unavailable);
  MQ_TRY_VOID(run("BEGIN IMMEDIATE"));
  auto result = apply_operations(*table_, operations, session_);
  if (!result || !result->applied()) {
    roll_back();
    return result;
  }
  if (const auto error = commit()) return error;
  trim_log();
  return result;
}

Error SqliteDatabase::commit() {
  const int code = sqlite3_exec(database_, "COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  const auto error = failed(code, "cannot commit");
  if (error == make_error_code(MetadataErrc::full)) {
    // The commit frame did not fit, so there is none: not applied.
    roll_back();
    return error;
  }
  // MET-1: the frame may have reached the disk, though its sync failed. Only the next start can
  // tell.
  return MetadataErrc::outcome_unknown;
}

void SqliteDatabase::roll_back() {
  if (sqlite3_get_autocommit(database_) != 0) return;  // SQLite did it already
  const int code = sqlite3_exec(database_, "ROLLBACK", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) (void)failed(code, "cannot roll back");
}

void SqliteDatabase::trim_log() {
  // Not by SQLite's own trigger, because that swallows the errors of the copy.
  if (log_pages_ < kLogPagesMax) return;
  const int code =
      sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
  if (code != SQLITE_OK && code != SQLITE_BUSY) (void)failed(code, "cannot copy the log");
}

void SqliteDatabase::close() {
  if (online_) {
    if (!remove_ephemerals())
      base::log_warning("metadata", "{}: the session's nodes stay until the next start", path_);
    online_ = false;
  }
  table_.reset();
  if (sqlite3_close(database_) != SQLITE_OK)
    base::log_warning("metadata", "{}: {}", path_, sqlite3_errmsg(database_));
  else
    database_ = nullptr;
}

Result<void> SqliteDatabase::run(const char* sql) {
  const int code = sqlite3_exec(database_, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failed(code, "cannot run a statement");
  return {};
}

Error SqliteDatabase::failed(int code, const char* what) {
  if ((code & 0xff) == SQLITE_FULL) {
    base::log_warning("metadata", "{}: no space: {}", path_, what);
    return MetadataErrc::full;
  }
  // What a failed sync has left behind is not for this process to copy.
  sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  if (online_.exchange(false))
    base::log_error("metadata", "{} is offline: {}: {} ({})", path_, what,
                    sqlite3_errmsg(database_), code);
  const bool corrupt = (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
  return corrupt ? MetadataErrc::damaged : MetadataErrc::unavailable;
}

}  // namespace mq::metadata
