#pragma once

#include <cstdint>
#include <string>

#include "metadata/error.h"

struct sqlite3;

namespace mq::metadata::sqlite_file {

/// In the header of the file: what it is, and the version of its schema.
inline constexpr std::int32_t kApplicationId = 0x6d714d44;  // "mqMD"
inline constexpr std::int32_t kSchemaVersion = 1;

/// Makes the file if it is not there: schema under a temporary name, synced, renamed, folder
/// synced. Leaves a file that is there as it is, but for its permissions (0600).
Result<void> make(const std::string& path);
/// Reads the header without writing anything: unknown_format unless it is ours.
Result<void> check_header(const std::string& path);
/// Opens an existing database, without touching it yet; null after an error, which was logged.
sqlite3* open_connection(const std::string& path);

}  // namespace mq::metadata::sqlite_file
