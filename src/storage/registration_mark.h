#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "base/uuid.h"
#include "storage/storage_error.h"

namespace mq::storage {

/// Its name in a data directory.
inline constexpr std::string_view kRegisteredFile = "registered";

enum class CopyAge : std::uint8_t { current, older };

/// Before the process `incarnation`, which works in this data directory, registers its broker: the
/// directory is to know of that. `registered` is the process whose registration it was part of
/// last, as the metadata says it; nothing: there was none.
///
/// older: the directory knows nothing of that registration, so that it is a copy from before which
/// was put back. Recovery finds no run in it then, and takes it for a disk that may lack anything.
Result<CopyAge> note_registration(base::FileSystem& files, const std::string& path,
                                  const base::Uuid& incarnation,
                                  const std::optional<base::Uuid>& registered);

}  // namespace mq::storage
