#include "support/sim_file.h"

namespace mq::testing {
namespace {

using base::BaseErrc;
using base::Bytes;
using base::MutableBytes;
using base::Result;

class SimFile final : public base::File {
 public:
  SimFile(std::shared_ptr<SimFileTree> tree, InodePtr inode, std::string path, bool writable)
      : tree_(std::move(tree)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        writable_(writable),
        generation_(tree_->generation) {}

  Result<std::size_t> read_at(MutableBytes into, std::uint64_t position) override {
    std::lock_guard lock(tree_->mutex);
    MQ_TRY_VOID(check(FileOperation::read));
    return copy_out(into, position);
  }
  Result<std::size_t> read_cached_at(MutableBytes into, std::uint64_t position) override {
    std::lock_guard lock(tree_->mutex);
    MQ_TRY_VOID(check(FileOperation::read));
    tree_->cold_sum += tree_->cold_share;
    if (tree_->cold_sum >= 1) {
      tree_->cold_sum -= 1;
      return make_error_code(BaseErrc::would_block);
    }
    return copy_out(into, position);
  }
  Result<std::size_t> read_uncached_at(MutableBytes into, std::uint64_t position) override {
    return read_at(into, position);
  }
  Result<std::size_t> write_at(std::span<const Bytes> pieces, std::uint64_t position) override {
    std::lock_guard lock(tree_->mutex);
    if (generation_ != tree_->generation || !writable_) return make_error_code(BaseErrc::io_failed);
    if (tree_->write_hook) tree_->write_hook();
    std::uint64_t wanted = 0;
    for (const auto& piece : pieces) wanted += piece.size();
    std::uint64_t granted = wanted;
    if (const auto* fault = tree_->strike(FileOperation::write, path_)) {
      if (fault->short_write < 0) return fault->error;
      granted = std::min(wanted, static_cast<std::uint64_t>(fault->short_write));
    }
    granted = std::min(granted, room(position));
    if (granted == 0 && wanted > 0) return make_error_code(BaseErrc::no_space);
    tree_->recharge(*inode_, [&] { put(pieces, position, granted); });
    tree_->early_sum += tree_->early_share;
    if (tree_->early_sum >= 1) {
      tree_->early_sum -= 1;
      write_back(position, granted);
    }
    return granted;
  }
  Result<void> sync_data() override { return sync(); }
  Result<void> sync_all() override { return sync(); }
  Result<void> sync_file_system() override;
  Result<void> truncate(std::uint64_t size) override {
    std::lock_guard lock(tree_->mutex);
    MQ_TRY_VOID(check(FileOperation::truncate));
    if (!writable_) return make_error_code(BaseErrc::io_failed);
    tree_->recharge(*inode_, [&] {
      resize(*inode_, size);
      inode_->allocated = 0;
    });
    return {};
  }
  Result<void> allocate(std::uint64_t position, std::uint64_t bytes) override {
    std::lock_guard lock(tree_->mutex);
    MQ_TRY_VOID(check(FileOperation::allocate));
    const auto end = std::max(inode_->allocated, position + bytes);
    const auto after = sim_blocks(std::max<std::uint64_t>(end, inode_->content.size()));
    if (after > inode_->charged() && after - inode_->charged() > tree_->free())
      return make_error_code(BaseErrc::no_space);
    tree_->recharge(*inode_, [&] { inode_->allocated = end; });
    return {};
  }
  void start_write_back(std::uint64_t position, std::uint64_t bytes) override {
    std::lock_guard lock(tree_->mutex);
    if (generation_ == tree_->generation) write_back(position, bytes);
  }
  Result<void> finish_write_back(std::uint64_t, std::uint64_t) override {
    std::lock_guard lock(tree_->mutex);
    if (generation_ != tree_->generation) return make_error_code(BaseErrc::io_failed);
    if (tree_->sync_hook) tree_->sync_hook(FileOperation::write_back, path_);
    // Written is not synced: the device may still lose it.
    if (const auto* fault = tree_->strike(FileOperation::write_back, path_)) {
      forsake(*inode_);
      return fault->error;
    }
    return {};
  }
  void drop_cache(std::uint64_t position, std::uint64_t bytes) override {
    std::lock_guard lock(tree_->mutex);
    if (generation_ == tree_->generation) reread(*inode_, position, position + bytes);
  }
  Result<std::uint64_t> size() override {
    std::lock_guard lock(tree_->mutex);
    if (generation_ != tree_->generation) return make_error_code(BaseErrc::io_failed);
    return std::uint64_t{inode_->content.size()};
  }

 private:
  void write_back(std::uint64_t position, std::uint64_t bytes) {
    for (auto block = position / kSimBlock; block * kSimBlock < position + bytes; ++block)
      inode_->under_way.insert(block);
  }
  Result<void> check(FileOperation operation) {
    if (generation_ != tree_->generation) return make_error_code(BaseErrc::io_failed);
    if (const auto* fault = tree_->strike(operation, path_)) return fault->error;
    return {};
  }
  Result<void> sync() {
    std::lock_guard lock(tree_->mutex);
    if (generation_ != tree_->generation) return make_error_code(BaseErrc::io_failed);
    if (tree_->sync_hook) tree_->sync_hook(FileOperation::sync, path_);
    if (const auto* fault = tree_->strike(FileOperation::sync, path_)) {
      forsake(*inode_);
      return fault->error;
    }
    testing::sync(*inode_);
    return {};
  }
  std::size_t copy_out(MutableBytes into, std::uint64_t position) {
    const auto& content = inode_->content;
    if (position >= content.size()) return 0;
    const auto n = std::min<std::uint64_t>(into.size(), content.size() - position);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(position), n, into.begin());
    return n;
  }
  /// How many bytes from `position` on the disk has room for.
  [[nodiscard]] std::uint64_t room(std::uint64_t position) const {
    const auto end = inode_->charged() + tree_->free() / kSimBlock * kSimBlock;
    return end > position ? end - position : 0;
  }
  void put(std::span<const Bytes> pieces, std::uint64_t position, std::uint64_t bytes) {
    remember(*inode_, position, position + bytes);
    if (position + bytes > inode_->content.size()) resize(*inode_, position + bytes);
    auto to = inode_->content.begin() + static_cast<std::ptrdiff_t>(position);
    for (const auto& piece : pieces) {
      const auto n = std::min<std::uint64_t>(piece.size(), bytes);
      to = std::copy_n(piece.begin(), n, to);
      bytes -= n;
    }
  }

  std::shared_ptr<SimFileTree> tree_;
  InodePtr inode_;
  std::string path_;
  bool writable_;
  std::uint64_t generation_;
};

/// One failing file fails it all, as a file system reports one error for all.
Result<void> SimFile::sync_file_system() {
  std::lock_guard lock(tree_->mutex);
  if (generation_ != tree_->generation) return make_error_code(BaseErrc::io_failed);
  Result<void> result;
  walk(*tree_->root, "", [&](const std::string& path, const InodePtr& inode) {
    if (inode->lost.empty() && inode->size_min == inode->size_max) return;
    if (tree_->sync_hook) tree_->sync_hook(FileOperation::write_back, path);
    if (const auto* fault = tree_->strike(FileOperation::sync, path)) {
      forsake(*inode);
      if (result) result = fault->error;
      return;
    }
    testing::sync(*inode);
  });
  if (tree_->sync_hook) tree_->sync_hook(FileOperation::sync, path_);
  if (!result) return result;
  for (const auto& change : tree_->pending) change.apply_to_disk();
  tree_->pending.clear();
  return {};
}

class SimLock final : public base::FileLock {
 public:
  SimLock(std::shared_ptr<SimFileTree> tree, InodePtr inode)
      : tree_(std::move(tree)), inode_(std::move(inode)), generation_(tree_->generation) {}
  ~SimLock() override {
    std::lock_guard lock(tree_->mutex);
    if (generation_ == tree_->generation) inode_->locked = false;
  }

 private:
  std::shared_ptr<SimFileTree> tree_;
  InodePtr inode_;
  std::uint64_t generation_;
};

}  // namespace

std::unique_ptr<base::File> make_sim_file(std::shared_ptr<SimFileTree> tree, InodePtr inode,
                                          std::string path, bool writable) {
  return std::make_unique<SimFile>(std::move(tree), std::move(inode), std::move(path), writable);
}

std::unique_ptr<base::FileLock> make_sim_lock(std::shared_ptr<SimFileTree> tree, InodePtr inode) {
  return std::make_unique<SimLock>(std::move(tree), std::move(inode));
}

}  // namespace mq::testing
