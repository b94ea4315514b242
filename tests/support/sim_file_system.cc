#include "support/sim_file_system.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/check.h"
#include "support/sim_file.h"
#include "support/sim_file_tree.h"

namespace mq::testing {

using base::BaseErrc;
using base::OpenMode;
using base::Result;

SimFileSystem::SimFileSystem() : tree_(std::make_shared<SimFileTree>()) {}
SimFileSystem::~SimFileSystem() = default;

void SimFileSystem::kill() {
  std::lock_guard lock(tree_->mutex);
  ++tree_->generation;
  walk(*tree_->root, "", [](const std::string&, const InodePtr& inode) {
    inode->locked = false;
    inode->allocated = 0;
  });
  tree_->recount();
}

void SimFileSystem::crash(SimRandom& random) {
  std::lock_guard lock(tree_->mutex);
  ++tree_->generation;
  const std::uint64_t keep_percent = std::array<std::uint64_t, 3>{0, 50, 100}[random.below(3)];
  for (const auto& change : tree_->pending) {
    if (random.below(100) < keep_percent) change.apply_to_disk();
  }
  tree_->pending.clear();
  tear_tree(*tree_->root, random);
  tree_->recount();
}

void SimFileSystem::set_capacity(std::uint64_t bytes) {
  std::lock_guard lock(tree_->mutex);
  tree_->capacity = bytes;
}

std::uint64_t SimFileSystem::used_bytes() const {
  std::lock_guard lock(tree_->mutex);
  return tree_->used;
}

void SimFileSystem::inject(Fault fault) {
  std::lock_guard lock(tree_->mutex);
  tree_->faults.push_back(std::move(fault));
}

void SimFileSystem::clear_faults() {
  std::lock_guard lock(tree_->mutex);
  tree_->faults.clear();
}

std::uint64_t SimFileSystem::faults_struck() const {
  std::lock_guard lock(tree_->mutex);
  return tree_->struck;
}

void SimFileSystem::set_cold_share(double share) {
  std::lock_guard lock(tree_->mutex);
  tree_->cold_share = share;
}

void SimFileSystem::set_early_write_back(double share) {
  std::lock_guard lock(tree_->mutex);
  tree_->early_share = share;
}

void SimFileSystem::on_write(std::function<void()> hook) {
  std::lock_guard lock(tree_->mutex);
  tree_->write_hook = std::move(hook);
}

void SimFileSystem::on_sync(std::function<void(FileOperation, const std::string&)> hook) {
  std::lock_guard lock(tree_->mutex);
  tree_->sync_hook = std::move(hook);
}

std::vector<std::byte> SimFileSystem::content(const std::string& path) const {
  std::lock_guard lock(tree_->mutex);
  return tree_->file(path)->content;
}

void SimFileSystem::set_content(const std::string& path, std::vector<std::byte> content) {
  std::lock_guard lock(tree_->mutex);
  const auto inode = tree_->file(path);
  inode->content = std::move(content);
  settle(*inode);
  tree_->recount();
}

void SimFileSystem::flip(const std::string& path, std::uint64_t position, std::byte mask) {
  std::lock_guard lock(tree_->mutex);
  const auto inode = tree_->file(path);
  inode->content.at(position) ^= mask;
  settle(*inode);
}

bool SimFileSystem::flip_synced(const std::string& path, std::uint64_t position, std::byte mask) {
  std::lock_guard lock(tree_->mutex);
  const auto inode = tree_->file(path);
  const auto sector = position / kSimSector;
  if (position >= inode->size_min || inode->lost.contains(sector) ||
      inode->forsaken.contains(sector))
    return false;
  inode->content.at(position) ^= mask;
  return true;
}

void SimFileSystem::truncate_file(const std::string& path, std::uint64_t size) {
  std::lock_guard lock(tree_->mutex);
  const auto inode = tree_->file(path);
  inode->content.resize(size);
  settle(*inode);
  tree_->recount();
}

void SimFileSystem::remove_tree(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  const auto [parent, name] = split_path(path);
  const auto directory = tree_->find(parent);
  MQ_CHECK(directory, "no directory {}", parent);
  directory->names.erase(name);
  directory->durable_names.erase(name);
  tree_->recount();
}

std::vector<std::string> SimFileSystem::files_below(const std::string& path) const {
  std::lock_guard lock(tree_->mutex);
  std::vector<std::string> found;
  if (const auto directory = tree_->find(path))
    walk(*directory, path,
         [&](const std::string& file, const InodePtr&) { found.push_back(file); });
  return found;
}

std::unique_ptr<SimFileSystem> SimFileSystem::clone() const {
  auto copy = std::make_unique<SimFileSystem>();
  std::lock_guard lock(tree_->mutex);
  copy->tree_->root = copy_tree(*tree_->root);
  copy->tree_->capacity = tree_->capacity;
  copy->tree_->recount();
  return copy;
}

Result<std::unique_ptr<base::File>> SimFileSystem::open(const std::string& path, OpenMode mode) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::open, path)) return fault->error;
  const auto [parent, name] = split_path(path);
  const auto directory = tree_->find(parent);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  auto inode = tree_->find(path);
  if (inode && (inode->is_directory || mode == OpenMode::create_exclusive))
    return make_error_code(inode->is_directory ? BaseErrc::io_failed : BaseErrc::already_exists);
  if (!inode) {
    if (mode == OpenMode::read || mode == OpenMode::write)
      return make_error_code(BaseErrc::not_found);
    inode = std::make_shared<Inode>();
    DirectoryChange created;
    created.edits.push_back({directory, name, inode});
    tree_->change(std::move(created));
  }
  return make_sim_file(tree_, inode, path, mode != OpenMode::read);
}

Result<void> SimFileSystem::make_directory(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::make_directory, path)) return fault->error;
  const auto [parent, name] = split_path(path);
  const auto directory = tree_->find(parent);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  if (tree_->find(path)) return make_error_code(BaseErrc::already_exists);
  DirectoryChange created;
  created.edits.push_back({directory, name, std::make_shared<Inode>(Inode{.is_directory = true})});
  tree_->change(std::move(created));
  return {};
}

Result<void> SimFileSystem::rename(const std::string& from, const std::string& to) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::rename, from)) return fault->error;
  const auto inode = tree_->find(from);
  const auto [from_parent, from_name] = split_path(from);
  const auto [to_parent, to_name] = split_path(to);
  const auto to_directory = tree_->find(to_parent);
  if (!inode || !to_directory) return make_error_code(BaseErrc::not_found);
  const auto replaced = tree_->find(to);
  if (replaced && replaced->is_directory) return make_error_code(BaseErrc::already_exists);
  DirectoryChange renamed;
  renamed.edits.push_back({tree_->find(from_parent), from_name, nullptr});
  renamed.edits.push_back({to_directory, to_name, inode});
  tree_->change(std::move(renamed));
  return {};
}

Result<void> SimFileSystem::remove_file(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::remove, path)) return fault->error;
  const auto inode = tree_->find(path);
  if (!inode || inode->is_directory) return make_error_code(BaseErrc::not_found);
  const auto [parent, name] = split_path(path);
  DirectoryChange removed;
  removed.edits.push_back({tree_->find(parent), name, nullptr});
  tree_->change(std::move(removed));
  return {};
}

Result<void> SimFileSystem::remove_directory(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::remove, path)) return fault->error;
  const auto inode = tree_->find(path);
  if (!inode || !inode->is_directory) return make_error_code(BaseErrc::not_found);
  if (!inode->names.empty()) return make_error_code(BaseErrc::already_exists);
  const auto [parent, name] = split_path(path);
  DirectoryChange removed;
  removed.edits.push_back({tree_->find(parent), name, nullptr});
  tree_->change(std::move(removed));
  return {};
}

Result<void> SimFileSystem::sync_directory(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::sync_directory, path)) return fault->error;
  const auto directory = tree_->find(path);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  std::erase_if(tree_->pending, [&](const DirectoryChange& change) {
    if (!change.touches(*directory)) return false;
    change.apply_to_disk();
    return true;
  });
  return {};
}

Result<std::vector<base::DirectoryEntry>> SimFileSystem::list_directory(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  if (const auto* fault = tree_->strike(FileOperation::list, path)) return fault->error;
  const auto directory = tree_->find(path);
  if (!directory || !directory->is_directory) return make_error_code(BaseErrc::not_found);
  std::vector<base::DirectoryEntry> entries;
  for (const auto& [name, inode] : directory->names) entries.push_back({name, inode->is_directory});
  return entries;
}

Result<bool> SimFileSystem::exists(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  return tree_->find(path) != nullptr;
}

Result<std::unique_ptr<base::FileLock>> SimFileSystem::lock(const std::string& path) {
  MQ_TRY(const auto opened, open(path, OpenMode::create));
  std::lock_guard lock(tree_->mutex);
  const auto inode = tree_->find(path);
  if (inode->locked) return make_error_code(BaseErrc::locked);
  inode->locked = true;
  return make_sim_lock(tree_, inode);
}

std::string SimFileSystem::lock_holder(const std::string& path) {
  std::lock_guard lock(tree_->mutex);
  const auto inode = tree_->find(path);
  return inode && inode->locked ? "pid 4711" : "unknown";
}

Result<std::uint64_t> SimFileSystem::free_bytes(const std::string&) {
  std::lock_guard lock(tree_->mutex);
  return tree_->free();
}

}  // namespace mq::testing
