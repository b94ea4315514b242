#pragma once

#include <cstdint>
#include <string>

#include "base/file_system.h"

/// Space kept back on a disk, so that one without a free byte can still be cleaned up: a deletion,
/// a trim, the checkpoint and the metadata store take a little before they give anything back. It
/// lies in slices, each a file of its own, so that every slice gives back an inode too. Everything
/// here blocks.
namespace mq::storage {

inline constexpr int kReserveSlices = 8;
/// Less than this may not be enough for the metadata store and a checkpoint.
inline constexpr std::uint64_t kRoomToWork = std::uint64_t{512} << 10;

/// What one slice takes on a disk of so many bytes: 8 MiB (64 MiB together), on a small disk a
/// 512th of it, in whole blocks; 0 on one that is too small to keep anything back.
std::uint64_t reserve_slice_bytes(std::uint64_t capacity);

/// Makes one slice that is missing in the data directory at `path`. False: none is missing, or
/// there is no room.
bool keep_reserve_slice(base::FileSystem& files, const std::string& path,
                        std::uint64_t slice_bytes);
/// Gives one slice up; false if there is none.
bool give_up_reserve_slice(base::FileSystem& files, const std::string& path);
/// Gives slices up until there are kRoomToWork bytes and a file can be made, as far as they reach.
/// How many went.
int make_room_to_work(base::FileSystem& files, const std::string& path);

}  // namespace mq::storage
