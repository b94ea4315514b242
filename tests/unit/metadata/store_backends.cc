#include "unit/metadata/store_backends.h"

#include <stdexcept>

#include "base/real/thread_disk_executor.h"
#include "metadata/memory_store.h"
#include "metadata/sqlite_store.h"
#include "support/temp_dir.h"
#include "unit/metadata/zookeeper_world.h"

namespace mq::testing {
namespace {

using metadata::MetadataStore;

class MemoryBackend final : public StoreBackend {
 public:
  std::unique_ptr<MetadataStore> open(RunLoop& loop) override {
    return metadata::open_memory_store(state_, loop.runtime());
  }
  void crash(std::unique_ptr<MetadataStore> store) override { store.reset(); }

 private:
  std::shared_ptr<metadata::MemoryStoreState> state_ =
      std::make_shared<metadata::MemoryStoreState>();
};

/// A crash leaves the files as they are at that moment: the next process finds a copy of them.
class SqliteBackend final : public StoreBackend {
 public:
  std::unique_ptr<MetadataStore> open(RunLoop& loop) override {
    auto store = loop.run(metadata::open_sqlite_store(file(generation_), disk_, loop.runtime()));
    if (!store) throw std::runtime_error(store.error().message());
    return std::move(*store);
  }
  void crash(std::unique_ptr<MetadataStore> store) override {
    for (const auto* suffix : {"", "-wal"}) {
      if (std::filesystem::exists(file(generation_) + suffix))
        std::filesystem::copy_file(file(generation_) + suffix, file(generation_ + 1) + suffix);
    }
    ++generation_;
    store.reset();
  }

 private:
  std::string file(int generation) {
    return folder_ / (std::to_string(generation) + "-metadata.db");
  }
  TempDir folder_;
  base::ThreadDiskExecutor disk_{2};
  int generation_ = 0;
};

/// A crash cuts the process off without a word; what it held goes when its session ends by itself.
class ZooKeeperBackend final : public StoreBackend {
 public:
  std::unique_ptr<MetadataStore> open(RunLoop& loop) override {
    std::string trouble;
    auto store =
        loop.run(metadata::open_zookeeper_store(world_.options(), loop.runtime(), trouble));
    if (!store) throw std::runtime_error(store.error().message() + ": " + trouble);
    return std::move(*store);
  }
  void crash(std::unique_ptr<MetadataStore> store) override {
    const auto session = store->session();
    world_.relay().refuse(true);
    world_.relay().cut();
    store.reset();
    world_.wait_for_end_of(session);
    world_.relay().refuse(false);
  }

 private:
  ZooKeeperWorld world_;
};

}  // namespace

const std::vector<StoreBackendKind>& store_backends() {
  static const std::vector<StoreBackendKind> all{
      {"Memory", [] { return std::unique_ptr<StoreBackend>(std::make_unique<MemoryBackend>()); }},
      {"Sqlite", [] { return std::unique_ptr<StoreBackend>(std::make_unique<SqliteBackend>()); }},
      {"ZooKeeper",
       [] { return std::unique_ptr<StoreBackend>(std::make_unique<ZooKeeperBackend>()); }}};
  return all;
}

}  // namespace mq::testing
