#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace mq::metadata {

/// One prepared statement, used again and again. Not valid() when the SQL does not fit the file.
class SqliteStatement {
 public:
  SqliteStatement(sqlite3* database, const char* sql);
  ~SqliteStatement();
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  [[nodiscard]] bool valid() const noexcept { return statement_ != nullptr; }
  SqliteStatement& text(int parameter, std::string_view value);
  SqliteStatement& blob(int parameter, std::string_view value);
  SqliteStatement& number(int parameter, std::int64_t value);
  /// SQLITE_ROW, SQLITE_DONE or an error. What was bound stays valid until reset().
  int step();
  void reset();

  [[nodiscard]] std::int64_t column_number(int column) const;
  [[nodiscard]] std::string column_bytes(int column) const;

 private:
  sqlite3_stmt* statement_ = nullptr;
};

/// Resets at the end of a scope, so that no read transaction stays open.
class SqliteReset {
 public:
  explicit SqliteReset(SqliteStatement& statement) : statement_(statement) {}
  ~SqliteReset() { statement_.reset(); }
  SqliteReset(const SqliteReset&) = delete;
  SqliteReset& operator=(const SqliteReset&) = delete;

 private:
  SqliteStatement& statement_;
};

}  // namespace mq::metadata
