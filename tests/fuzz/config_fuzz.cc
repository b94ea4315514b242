// broker.toml: whatever is in it, loading ends with a list of errors or a configuration that keeps
// the rules.
#include <algorithm>
#include <string>

#include "base/check.h"
#include "config/broker_config.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace mq;

/// A folder of one file.
class OneFile final : public base::FileSystem {
 public:
  explicit OneFile(base::Bytes bytes) : bytes_(bytes) {}
  base::Result<std::unique_ptr<base::File>> open(const std::string&, base::OpenMode) override {
    std::unique_ptr<base::File> file = std::make_unique<Content>(bytes_);
    return file;
  }
  base::Result<std::vector<base::DirectoryEntry>> list_directory(const std::string&) override {
    return std::vector<base::DirectoryEntry>{};
  }
  base::Result<void> make_directory(const std::string&) override { return none(); }
  base::Result<void> rename(const std::string&, const std::string&) override { return none(); }
  base::Result<void> remove_file(const std::string&) override { return none(); }
  base::Result<void> remove_directory(const std::string&) override { return none(); }
  base::Result<void> sync_directory(const std::string&) override { return none(); }
  base::Result<bool> exists(const std::string&) override { return true; }
  base::Result<std::unique_ptr<base::FileLock>> lock(const std::string&) override { return none(); }
  std::string lock_holder(const std::string&) override { return "unknown"; }
  base::Result<std::uint64_t> free_bytes(const std::string&) override { return std::uint64_t{0}; }

 private:
  static base::Error none() { return base::make_error_code(base::BaseErrc::not_permitted); }

  class Content final : public base::File {
   public:
    explicit Content(base::Bytes bytes) : bytes_(bytes) {}
    base::Result<std::size_t> read_at(base::MutableBytes into, std::uint64_t position) override {
      const auto from = bytes_.subspan(std::min<std::size_t>(position, bytes_.size()));
      const auto count = std::min(into.size(), from.size());
      std::copy_n(from.begin(), count, into.begin());
      return count;
    }
    base::Result<std::size_t> read_cached_at(base::MutableBytes into,
                                             std::uint64_t position) override {
      return read_at(into, position);
    }
    base::Result<std::size_t> write_at(std::span<const base::Bytes>, std::uint64_t) override {
      return none();
    }
    base::Result<void> sync_data() override { return none(); }
    base::Result<void> sync_all() override { return none(); }
    base::Result<void> sync_file_system() override { return none(); }
    base::Result<void> truncate(std::uint64_t) override { return none(); }
    base::Result<void> allocate(std::uint64_t, std::uint64_t) override { return none(); }
    void start_write_back(std::uint64_t, std::uint64_t) override {}
    void drop_cache(std::uint64_t, std::uint64_t) override {}
    base::Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }

   private:
    base::Bytes bytes_;
  };
  base::Bytes bytes_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  OneFile files(fuzz::Input(data, size).rest());
  const auto loaded = config::load_broker_config(files, {"/etc/mq/broker.toml", {}, {}});
  for (const auto& error : loaded.errors) MQ_CHECK(!error.message.empty());
  if (!loaded.ok()) return 0;
  MQ_CHECK(loaded.config.id.value() >= 0 && loaded.config.metadata == "local");
  MQ_CHECK(loaded.config.disks.size() == 1 && loaded.config.disks[0].starts_with('/'));
  MQ_CHECK(!config::render_effective_config(loaded.settings).empty());
  return 0;
}
