#include <algorithm>

#include "storage/disk.h"
#include "storage/disk_files.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

Error refuse(Refusal& refusal, Error error, std::string text) {
  refusal = {error, std::move(text)};
  return error;
}

/// Everything that can speak against the directory without its lock.
Result<std::optional<DiskIdentity>> check_directory(base::FileSystem& files,
                                                    const std::string& path, model::BrokerId broker,
                                                    Refusal& refusal) {
  const auto identity = read_identity(files, path);
  if (!identity && identity.error() == make_error_code(StorageErrc::unknown_format_version))
    return refuse(refusal, identity.error(),
                  fmt::format("data directory {} was written by a newer mq: its identity file has "
                              "an unknown format version",
                              path));
  if (!identity && identity.error() == make_error_code(base::BaseErrc::malformed))
    return refuse(refusal, make_error_code(StorageErrc::wrong_directory),
                  fmt::format("data directory {}: its identity file is damaged", path));
  if (!identity)
    return refuse(
        refusal, identity.error(),
        fmt::format("data directory {} cannot be read: {}", path, identity.error().message()));
  if (*identity && (*identity)->broker != broker)
    return refuse(refusal, make_error_code(StorageErrc::wrong_directory),
                  fmt::format("data directory {} belongs to broker {}, this is broker {}", path,
                              (*identity)->broker, broker));
  if (*identity) return *identity;
  const auto entries = files.list_directory(path);
  if (entries && std::ranges::any_of(*entries, [](const base::DirectoryEntry& entry) {
        return parse_partition_directory_name(entry.name).has_value();
      }))
    return refuse(refusal, make_error_code(StorageErrc::wrong_directory),
                  fmt::format("data directory {} holds partitions but no identity file", path));
  return std::optional<DiskIdentity>();
}

Result<void> make_if_missing(base::FileSystem& files, const std::string& path) {
  const auto made = files.make_directory(path);
  if (!made) {
    if (made.error() == make_error_code(base::BaseErrc::already_exists)) return {};
    return made.error();
  }
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return files.sync_directory(".");
  return files.sync_directory(slash == 0 ? "/" : path.substr(0, slash));
}

}  // namespace

Result<std::optional<DiskIdentity>> read_identity(base::FileSystem& files,
                                                  const std::string& path) {
  const auto identity = load_disk_file(files, path, kIdentityFile, kIdentityMagic, decode_identity);
  if (identity) return std::optional<DiskIdentity>(*identity);
  if (identity.error() == make_error_code(base::BaseErrc::not_found))
    return std::optional<DiskIdentity>();
  return identity.error();
}

Result<DataDirectory> open_data_directory(base::FileSystem& files, const std::string& path,
                                          model::BrokerId broker, Refusal& refusal) {
  // REC-7: nothing is written, not even the lock's pid, while something speaks against it.
  MQ_TRY_VOID(check_directory(files, path, broker, refusal));
  if (const auto made = make_if_missing(files, path); !made)
    return refuse(
        refusal, made.error(),
        fmt::format("data directory {} cannot be made: {}", path, made.error().message()));
  const std::string lock_path = path + "/" + std::string(kLockFile);
  DataDirectory directory;
  directory.path = path;
  auto lock = files.lock(lock_path);
  if (!lock && lock.error() == make_error_code(base::BaseErrc::locked))
    return refuse(
        refusal, make_error_code(StorageErrc::locked),
        fmt::format("data directory {} is in use by {}", path, files.lock_holder(lock_path)));
  if (!lock)
    return refuse(
        refusal, lock.error(),
        fmt::format("data directory {} cannot be locked: {}", path, lock.error().message()));
  directory.lock = *std::move(lock);
  // Someone may have made it theirs before we had the lock.
  MQ_TRY(directory.identity, check_directory(files, path, broker, refusal));
  return directory;
}

}  // namespace mq::storage
