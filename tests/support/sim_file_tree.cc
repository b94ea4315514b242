#include "support/sim_file_tree.h"

#include "base/check.h"

namespace mq::testing {
namespace {

void forget_links(Inode& directory) {
  for (const auto& [name, inode] : directory.names) {
    inode->links = 0;
    if (inode->is_directory) forget_links(*inode);
  }
}

}  // namespace

std::pair<std::string, std::string> split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {"", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Fault* SimFileTree::strike(FileOperation operation, const std::string& path) {
  for (auto& fault : faults) {
    if (fault.operation != operation || fault.times == 0 ||
        path.find(fault.path_part) == std::string::npos)
      continue;
    if (fault.skip > 0) {
      --fault.skip;
      continue;
    }
    if (fault.times > 0) --fault.times;
    ++struck;
    return &fault;
  }
  return nullptr;
}

InodePtr SimFileTree::find(const std::string& path) const {
  InodePtr at = root;
  std::size_t from = 0;
  while (at && from <= path.size()) {
    const auto slash = std::min(path.find('/', from), path.size());
    const std::string part = path.substr(from, slash - from);
    from = slash + 1;
    if (part.empty() || part == ".") continue;
    if (!at->is_directory) return nullptr;
    const auto found = at->names.find(part);
    at = found == at->names.end() ? nullptr : found->second;
  }
  return at;
}

InodePtr SimFileTree::file(const std::string& path) const {
  auto inode = find(path);
  MQ_CHECK(inode && !inode->is_directory, "no file {}", path);
  return inode;
}

/// A file whose name is gone takes no space, whatever the disk knows of that.
void SimFileTree::set_name(const DirectoryChange::Edit& edit) {
  auto& names = edit.directory->names;
  if (const auto old = names.find(edit.name); old != names.end()) {
    if (--old->second->links == 0) used -= old->second->charged();
    names.erase(old);
  }
  if (!edit.to) return;
  if (edit.to->links++ == 0) used += edit.to->charged();
  names[edit.name] = edit.to;
}

void SimFileTree::change(DirectoryChange change) {
  for (const auto& edit : change.edits) set_name(edit);
  pending.push_back(std::move(change));
}

void SimFileTree::recount() {
  forget_links(*root);
  used = 0;
  walk(*root, "", [&](const std::string&, const InodePtr& inode) {
    if (inode->links++ == 0) used += inode->charged();
  });
}

}  // namespace mq::testing
