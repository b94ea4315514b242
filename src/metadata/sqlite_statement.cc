#include "metadata/sqlite_statement.h"

#include <sqlite3.h>

namespace mq::metadata {

SqliteStatement::SqliteStatement(sqlite3* database, const char* sql) {
  sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
}

SqliteStatement::~SqliteStatement() { sqlite3_finalize(statement_); }

SqliteStatement& SqliteStatement::text(int parameter, std::string_view value) {
  sqlite3_bind_text(statement_, parameter, value.data(), static_cast<int>(value.size()),
                    SQLITE_STATIC);
  return *this;
}

SqliteStatement& SqliteStatement::blob(int parameter, std::string_view value) {
  // A null pointer would bind NULL instead of an empty value.
  const char* data = value.empty() ? "" : value.data();
  sqlite3_bind_blob(statement_, parameter, data, static_cast<int>(value.size()), SQLITE_STATIC);
  return *this;
}

SqliteStatement& SqliteStatement::number(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_, parameter, value);
  return *this;
}

int SqliteStatement::step() { return sqlite3_step(statement_); }

void SqliteStatement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

std::int64_t SqliteStatement::column_number(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string SqliteStatement::column_bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return data ? std::string(data, size) : std::string();
}

}  // namespace mq::metadata
