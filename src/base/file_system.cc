#include "base/file_system.h"

namespace mq::base {

Result<std::vector<std::byte>> read_file(FileSystem& files, const std::string& path,
                                         std::size_t bytes_max) {
  MQ_TRY(const auto file, files.open(path, OpenMode::read));
  MQ_TRY(const auto size, file->size());
  if (size > bytes_max) return make_error_code(BaseErrc::too_large);
  std::vector<std::byte> contents(size);
  MQ_TRY(const auto got, file->read_at(contents, 0));
  contents.resize(got);
  return contents;
}

Result<void> write_fully(File& file, std::span<const Bytes> pieces, std::uint64_t position) {
  std::size_t wanted = 0;
  for (const auto& piece : pieces) wanted += piece.size();
  MQ_TRY(const auto written, file.write_at(pieces, position));
  if (written != wanted) return make_error_code(BaseErrc::no_space);
  return {};
}

Result<void> replace_file(FileSystem& files, const std::string& path, Bytes contents) {
  const std::string temporary = path + ".tmp";
  {
    MQ_TRY(const auto file, files.open(temporary, OpenMode::create));
    MQ_TRY_VOID(file->truncate(0));
    MQ_TRY_VOID(write_fully(*file, std::span(&contents, 1), 0));
    MQ_TRY_VOID(file->sync_all());
  }
  MQ_TRY_VOID(files.rename(temporary, path));
  const auto slash = path.rfind('/');
  return files.sync_directory(slash == std::string::npos ? "." : path.substr(0, slash));
}

}  // namespace mq::base
