#pragma once

#include <string>

#include "storage/journal_files.h"

namespace mq::storage {

/// Records in a journal that nobody has open that the log of `id` ends at `cut.end`: as a start
/// would, in a file of its own whose snapshot says what `replay`, which is whole, has found.
/// Durable when it returns; the next start finishes the cut in the files if they are not cut by
/// then. `nonce` is random.
Result<void> record_cut(base::FileSystem& files, const std::string& directory,
                        const JournalOwner& owner, const JournalReplay& replay,
                        const model::PartitionId& id, const JournalCut& cut, std::uint64_t nonce);

}  // namespace mq::storage
