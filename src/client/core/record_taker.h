#pragma once

#include <optional>

#include "client/core/fetch_buffer.h"
#include "mq/consumer.h"

namespace mq::client {

/// Turns fetched chunks into a Batch of at most `records_max` records, in the thread of whoever
/// polls: checksums are checked here, batch by batch, and compressed ones are unpacked. LOG-4: no
/// record of a batch whose checksum fails is handed out. Nothing when there is nothing to read. An
/// error, with the records before it returned first, names partition and offset; the partition
/// rests then.
std::optional<Result<Batch>> take_records(FetchBuffer& buffer, std::size_t records_max);

}  // namespace mq::client
