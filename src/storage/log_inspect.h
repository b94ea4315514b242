#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "model/record_batch.h"
#include "storage/batch_scanner.h"
#include "storage/disk.h"
#include "storage/journal_reader.h"

/// Looking into a data directory from outside, for tools: read-only, needs no lock, and works
/// beside a running broker (whose log end moves meanwhile).
namespace mq::storage {

struct SegmentFile {
  std::string path;
  model::Offset base_offset;
  std::uint64_t bytes = 0;
};

struct PartitionDirectory {
  std::string path;
  model::PartitionId id;
  std::string topic_name;  ///< empty: unknown
  std::vector<SegmentFile> segments;
  /// From the disk's checkpoint, none without one (or for a directory on its own).
  std::optional<model::Offset> log_start_offset;
  std::optional<model::Offset> recovery_point;
  /// What the disk's journal says of it.
  struct Journal {
    model::Offset recovery_point;
    model::Offset bound;  ///< below it everything is durable, in the segments or in the journal
    model::Offset covers_from;  ///< the journal holds what lies between here and the bound
  };
  std::optional<Journal> journal;  ///< none before take_from_journal(), or without a whole one
};

struct DataDirectoryListing {
  std::string path;
  std::optional<DiskIdentity> identity;
  /// "pid 4711": who named itself in the lock file last. It may have ended since.
  std::optional<std::string> locked_by;
  bool clean = false;  ///< has a clean marker
  std::vector<PartitionDirectory> partitions;
  std::vector<std::string> strangers;
};

Result<DataDirectoryListing> list_data_directory(base::FileSystem& files, const std::string& path);
/// One partition's directory, or a single segment file given by path.
Result<PartitionDirectory> list_partition_directory(base::FileSystem& files,
                                                    const std::string& path);

/// Where a disk's journal is to be, and what its files have to say of themselves.
struct JournalPlace {
  std::string directory;
  JournalOwner owner;
};
/// Of the data directory at `data`. `elsewhere`: the folder that `journal =` of the disk names, in
/// which it has one of its own, or that one; empty: inside the data directory. Nothing: `data` is
/// none, or its disk has no journal.
std::optional<JournalPlace> find_journal(base::FileSystem& files, const std::string& data,
                                         const std::string& elsewhere);
/// Adds what the journal says of the partitions. Beside a running broker a journal that is being
/// written may look damaged: then nothing is added, as for one that is not there or another's.
void take_from_journal(base::FileSystem& files, const JournalPlace& journal,
                       std::vector<PartitionDirectory>& partitions);

/// One batch in a segment file, or the place where batches stop.
struct InspectedBatch {
  using State = BatchState;
  State state = State::good;
  const SegmentFile* segment = nullptr;
  std::uint64_t position = 0;
  std::uint32_t batch_bytes = 0;    ///< as the header says
  model::RecordBatchView view;      ///< good: whole; valid during the call only
  std::uint64_t want = 0, got = 0;  ///< checksums or offsets that disagree
};

/// Calls `visit` for every batch of the partition in order, up to and including the first one that
/// is not good or unsupported; stops early when it returns false. `from`: start with the batch that
/// contains this offset.
Result<void> for_each_batch(base::FileSystem& files, const PartitionDirectory& partition,
                            std::optional<model::Offset> from,
                            const std::function<bool(const InspectedBatch&)>& visit);

struct VerifyReport {
  bool good = true;
  std::uint64_t batches = 0;
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;
  model::Offset log_start_offset;
  model::Offset end_offset;  ///< behind the last good batch
  /// The first bad place, if any. A tail above everything that is durable, behind which nothing is
  /// sound, is what a crash leaves and the next start cuts; one that the journal covers is put back
  /// by it. torn_tail is true then, and good stays true.
  struct Damage {
    std::string file;
    std::uint64_t position = 0;
    InspectedBatch::State state = InspectedBatch::State::good;
    std::uint64_t want = 0, got = 0;
    model::Offset last_good_offset;  ///< -1: none
    bool torn_tail = false;
    bool from_journal = false;  ///< the next start writes it again
    model::Offset durable_to;   ///< it lies below this; -1: it does not, or nobody knows
    model::Offset sound_from;   ///< a start would cut off what is sound from here on; -1: nothing
  };
  std::optional<Damage> damage;
};
/// Checks every batch: checksums, contiguous offsets across segments, epochs.
Result<VerifyReport> verify_partition(base::FileSystem& files, const PartitionDirectory& partition);

}  // namespace mq::storage
