#include "storage/registration_mark.h"

#include "base/log.h"
#include "storage/disk_files.h"
#include "storage/sealed_file.h"
#include "storage/space_reserve.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

constexpr std::string_view kMagic = "MQREGIS\n";

struct Mark {
  base::Uuid incarnation;
  base::Uuid before;  ///< what counts if that process did not get so far as to register
};

base::Uuid take_uuid(FieldReader& in) {
  return base::Uuid::from_bytes(in.take_bytes(16)).value_or(base::Uuid());
}

Result<Mark> decode(base::Bytes body) {
  FieldReader in(body);
  Mark mark;
  mark.incarnation = take_uuid(in);
  mark.before = take_uuid(in);
  if (!in.finished()) return make_error_code(base::BaseErrc::malformed);
  return mark;
}

std::vector<std::byte> encode(const Mark& mark) {
  FieldWriter out;
  out.put_bytes(mark.incarnation.bytes());
  out.put_bytes(mark.before.bytes());
  return {out.bytes().begin(), out.bytes().end()};
}

Result<void> forget_run(base::FileSystem& files, const std::string& path) {
  const auto removed = files.remove_file(path + "/" + std::string(kRunMarkerFile));
  if (!removed && removed.error() != make_error_code(base::BaseErrc::not_found))
    return removed.error();
  return files.sync_directory(path);
}

}  // namespace

Result<CopyAge> note_registration(base::FileSystem& files, const std::string& path,
                                  const base::Uuid& incarnation,
                                  const std::optional<base::Uuid>& registered) {
  const auto found = load_disk_file(files, path, kRegisteredFile, kMagic, decode);
  const bool known =
      found && registered && (found->incarnation == *registered || found->before == *registered);
  const bool older_copy = registered && !known;
  if (older_copy) {
    base::log_error("storage",
                    "disk {}: its broker has been registered since this disk was part of it, so an "
                    "older copy was put back: records that were confirmed may be missing",
                    path);
    // Durably before the mark says that all is well.
    MQ_TRY_VOID(forget_run(files, path));
  }
  const auto save = [&] {
    return save_sealed(files, path + "/" + std::string(kRegisteredFile), kMagic,
                       encode({incarnation, registered.value_or(base::Uuid())}));
  };
  auto saved = save();
  while (!saved && saved.error() == make_error_code(base::BaseErrc::no_space) &&
         give_up_reserve_slice(files, path))
    saved = save();
  if (!saved) return saved.error();
  return older_copy ? CopyAge::older : CopyAge::current;
}

}  // namespace mq::storage
