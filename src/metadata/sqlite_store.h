#pragma once

#include <memory>
#include <string>

#include "base/disk_executor.h"
#include "base/runtime.h"
#include "metadata/store.h"

namespace mq::metadata {

/// Opens (and makes, 0600) the store in the file `path`, `<first disk>/metadata.db`.
///
/// The caller holds the lock of the data directory, so that there is one process at a time; the
/// ephemeral nodes of an earlier process are removed. SQLite in WAL mode with synchronous=FULL:
/// every write is synced before it returns. All of it runs on `disk`, one call after the other.
/// After an I/O error the store is offline for good; a full disk refuses writes and recovers by
/// itself.
/// Errors: unknown_format and damaged (nothing was written), unavailable (cannot be opened).
asio::awaitable<Result<std::unique_ptr<MetadataStore>>> open_sqlite_store(std::string path,
                                                                          base::DiskExecutor& disk,
                                                                          base::Runtime& runtime);

}  // namespace mq::metadata
