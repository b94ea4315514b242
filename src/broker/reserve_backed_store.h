#pragma once

#include <memory>
#include <string>

#include "base/disk_executor.h"
#include "base/file_system.h"
#include "metadata/store.h"

namespace mq::broker {

/// A metadata store inside a data directory that may be full: a write for which there is no space
/// takes a slice of the directory's reserve and is tried again, so that topics can be deleted and
/// a broker can be started when nothing is free. Everything given outlives it.
class ReserveBackedStore final : public metadata::MetadataStore {
 public:
  ReserveBackedStore(std::unique_ptr<metadata::MetadataStore> store, base::FileSystem& files,
                     base::DiskExecutor& executor, std::string directory)
      : store_(std::move(store)),
        files_(files),
        executor_(executor),
        directory_(std::move(directory)) {}

  asio::awaitable<base::Result<metadata::Node>> get(std::string path) override {
    return store_->get(std::move(path));
  }
  asio::awaitable<base::Result<std::vector<std::optional<metadata::Node>>>> get_many(
      std::vector<std::string> paths) override {
    return store_->get_many(std::move(paths));
  }
  asio::awaitable<base::Result<std::vector<std::string>>> children(std::string path) override {
    return store_->children(std::move(path));
  }
  asio::awaitable<base::Result<metadata::MultiResult>> multi(
      std::vector<metadata::Operation> operations) override;
  asio::awaitable<base::Result<void>> watch(std::string path, metadata::WatchKind kind,
                                            std::function<void()> fire) override {
    return store_->watch(std::move(path), kind, std::move(fire));
  }
  std::uint64_t session() const override { return store_->session(); }
  bool online() const override { return store_->online(); }
  void on_session_lost(std::function<void()> lost) override {
    store_->on_session_lost(std::move(lost));
  }
  asio::awaitable<base::Result<void>> renew() override { return store_->renew(); }
  std::string trouble() const override { return store_->trouble(); }
  asio::awaitable<void> close() override { return store_->close(); }

 private:
  asio::awaitable<bool> give_up_slice();

  const std::unique_ptr<metadata::MetadataStore> store_;
  base::FileSystem& files_;
  base::DiskExecutor& executor_;
  const std::string directory_;
};

}  // namespace mq::broker
