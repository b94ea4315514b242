#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file_system.h"
#include "storage/storage_error.h"

/// Small files that are written whole and read whole: magic, version, size and one CRC32C over
/// everything (FORMAT.md, "Sealed files").
namespace mq::storage {

/// Appends little-endian fields to a body.
class FieldWriter {
 public:
  template <std::integral T>
  void put(T value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    base::store_le(bytes_.data() + at, value);
  }
  void put_bytes(base::Bytes bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void put_text(std::string_view text);  ///< u32 length, bytes
  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Takes fields from a body in the order they were written. Reading past the end gives zeros and
/// makes ok() false; nothing outside the bytes is touched.
class FieldReader {
 public:
  explicit FieldReader(base::Bytes bytes) noexcept : left_(bytes) {}
  template <std::integral T>
  [[nodiscard]] T take() {
    const base::Bytes field = take_bytes(sizeof(T));
    return ok_ ? base::load_le<T>(field.data()) : T{};
  }
  base::Bytes take_bytes(std::size_t bytes);
  std::string_view take_text();
  /// A count of elements of at least `element_bytes` each: never more than can follow.
  std::uint32_t take_count(std::size_t element_bytes);
  [[nodiscard]] bool ok() const noexcept { return ok_; }
  /// Everything was there and nothing is left over.
  [[nodiscard]] bool finished() const noexcept { return ok_ && left_.empty(); }

 private:
  base::Bytes left_;
  bool ok_ = true;
};

/// The whole file's bytes.
std::vector<std::byte> seal(std::string_view magic, base::Bytes body);

/// The body inside `file`. Errors: unknown_format_version (magic and checksum hold, version is
/// newer), BaseErrc::malformed for anything else.
Result<base::Bytes> unseal(std::string_view magic, base::Bytes file);

/// Writes durably over `path`: temporary file, fsync, rename, fsync of the directory.
Result<void> save_sealed(base::FileSystem& files, const std::string& path, std::string_view magic,
                         base::Bytes body);
/// The same for a cache: written in place and not synced, since a damaged one is noticed and made
/// again.
Result<void> write_cache_file(base::FileSystem& files, const std::string& path,
                              std::string_view magic, base::Bytes body);
/// Success too when there is no such file.
Result<void> remove_if_there(base::FileSystem& files, const std::string& path);
/// The body of the file at `path`. Errors: BaseErrc::not_found, those of unseal(), I/O errors.
Result<std::vector<std::byte>> load_sealed(base::FileSystem& files, const std::string& path,
                                           std::string_view magic);

}  // namespace mq::storage
