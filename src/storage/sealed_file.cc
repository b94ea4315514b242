#include "storage/sealed_file.h"

#include "base/crc32c.h"
#include "storage/storage_format.h"

namespace mq::storage {
namespace {

constexpr std::size_t kVersion = 8;     // u32
constexpr std::size_t kBodyBytes = 12;  // u32
constexpr std::size_t kCrc = 16;        // u32, of bytes 0-15 and the body
constexpr std::size_t kBody = 20;

std::uint32_t crc_of(base::Bytes file) noexcept {
  return base::crc32c(file.subspan(kBody), base::crc32c(file.first(kCrc)));
}

}  // namespace

void FieldWriter::put_text(std::string_view text) {
  put(static_cast<std::uint32_t>(text.size()));
  put_bytes(base::as_bytes(text));
}

base::Bytes FieldReader::take_bytes(std::size_t bytes) {
  if (!ok_ || bytes > left_.size()) {
    ok_ = false;
    return {};
  }
  const base::Bytes taken = left_.first(bytes);
  left_ = left_.subspan(bytes);
  return taken;
}

std::string_view FieldReader::take_text() {
  return base::as_text(take_bytes(take<std::uint32_t>()));
}

std::uint32_t FieldReader::take_count(std::size_t element_bytes) {
  const auto count = take<std::uint32_t>();
  if (count > left_.size() / element_bytes) {
    ok_ = false;
    return 0;
  }
  return count;
}

std::vector<std::byte> seal(std::string_view magic, base::Bytes body) {
  std::vector<std::byte> file(kBody + body.size());
  std::memcpy(file.data(), magic.data(), magic.size());
  base::store_le(file.data() + kVersion, kSealedVersion);
  base::store_le(file.data() + kBodyBytes, static_cast<std::uint32_t>(body.size()));
  if (!body.empty()) std::memcpy(file.data() + kBody, body.data(), body.size());
  base::store_le(file.data() + kCrc, crc_of(file));
  return file;
}

Result<base::Bytes> unseal(std::string_view magic, base::Bytes file) {
  if (file.size() < kBody || base::as_text(file.first(magic.size())) != magic)
    return make_error_code(base::BaseErrc::malformed);
  if (base::load_le<std::uint32_t>(file.data() + kBodyBytes) != file.size() - kBody ||
      base::load_le<std::uint32_t>(file.data() + kCrc) != crc_of(file))
    return make_error_code(base::BaseErrc::malformed);
  if (base::load_le<std::uint32_t>(file.data() + kVersion) != kSealedVersion)
    return StorageErrc::unknown_format_version;
  return file.subspan(kBody);
}

Result<void> save_sealed(base::FileSystem& files, const std::string& path, std::string_view magic,
                         base::Bytes body) {
  return base::replace_file(files, path, seal(magic, body));
}

Result<void> write_cache_file(base::FileSystem& files, const std::string& path,
                              std::string_view magic, base::Bytes body) {
  const auto sealed = seal(magic, body);
  MQ_TRY(const auto file, files.open(path, base::OpenMode::create));
  MQ_TRY_VOID(file->truncate(0));
  const base::Bytes contents = sealed;
  return base::write_fully(*file, std::span(&contents, 1), 0);
}

Result<void> remove_if_there(base::FileSystem& files, const std::string& path) {
  const auto removed = files.remove_file(path);
  if (removed || removed.error() == make_error_code(base::BaseErrc::not_found)) return {};
  return removed.error();
}

Result<std::vector<std::byte>> load_sealed(base::FileSystem& files, const std::string& path,
                                           std::string_view magic) {
  MQ_TRY(auto file, base::read_file(files, path, kSealedFileBytesMax));
  MQ_TRY(const auto body, unseal(magic, file));
  return std::vector<std::byte>(body.begin(), body.end());
}

}  // namespace mq::storage
