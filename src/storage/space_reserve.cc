#include "storage/space_reserve.h"

#include <algorithm>

#include "storage/storage_error.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

constexpr std::uint64_t kSliceBytesMax = std::uint64_t{8} << 20;
constexpr std::uint64_t kSliceBytesMin = std::uint64_t{64} << 10;
constexpr std::uint64_t kSliceShare = 512;  // of the disk
constexpr std::uint64_t kBlockBytes = 4096;

std::string directory_of(const std::string& path) { return path + "/" + std::string(kReserve); }

std::string slice_path(const std::string& path, int slice) {
  return directory_of(path) + "/" + std::to_string(slice);
}

/// The directory of the slices; in its place there may be the one file of an earlier version.
Result<void> make_reserve_directory(base::FileSystem& files, const std::string& path) {
  const auto made = files.make_directory(directory_of(path));
  if (made || made.error() != make_error_code(base::BaseErrc::already_exists)) return made;
  if (files.list_directory(directory_of(path))) return {};
  MQ_TRY_VOID(files.remove_file(directory_of(path)));
  return files.make_directory(directory_of(path));
}

bool can_make_a_file(base::FileSystem& files, const std::string& path) {
  const std::string probe = path + "/" + std::string(kReserve) + std::string(kTemporarySuffix);
  const auto made = files.open(probe, base::OpenMode::create);
  if (!made) return made.error() != make_error_code(base::BaseErrc::no_space);
  static_cast<void>(files.remove_file(probe));
  return true;
}

}  // namespace

std::uint64_t reserve_slice_bytes(std::uint64_t capacity) {
  const std::uint64_t share = capacity / kSliceShare / kBlockBytes * kBlockBytes;
  return share < kSliceBytesMin ? 0 : std::min(share, kSliceBytesMax);
}

bool keep_reserve_slice(base::FileSystem& files, const std::string& path,
                        std::uint64_t slice_bytes) {
  if (slice_bytes == 0 || !make_reserve_directory(files, path)) return false;
  for (int slice = 0; slice < kReserveSlices; ++slice) {
    const std::string name = slice_path(path, slice);
    const auto file = files.open(name, base::OpenMode::create_exclusive);
    if (!file && file.error() == make_error_code(base::BaseErrc::already_exists)) continue;
    if (!file) return false;
    if ((*file)->allocate(0, slice_bytes)) return true;
    static_cast<void>(files.remove_file(name));
    return false;
  }
  return false;
}

bool give_up_reserve_slice(base::FileSystem& files, const std::string& path) {
  for (int slice = kReserveSlices - 1; slice >= 0; --slice) {
    const std::string name = slice_path(path, slice);
    // Some file systems (XFS) give the blocks of a removed file back later; those that are cut off
    // are there at once.
    if (const auto file = files.open(name, base::OpenMode::write)) {
      if ((*file)->truncate(0)) static_cast<void>((*file)->sync_all());
    }
    if (files.remove_file(name)) return true;
  }
  return false;
}

int make_room_to_work(base::FileSystem& files, const std::string& path) {
  int given = 0;
  while (true) {
    const auto free = files.free_bytes(path);
    if (!free || (*free >= kRoomToWork && can_make_a_file(files, path))) return given;
    if (!give_up_reserve_slice(files, path)) return given;
    ++given;
  }
}

}  // namespace mq::storage
