#pragma once

#include <memory>
#include <string>

#include "support/sim_file_tree.h"

namespace mq::testing {

/// An open file of a SimFileSystem; dead after its kill() or crash().
std::unique_ptr<base::File> make_sim_file(std::shared_ptr<SimFileTree> tree, InodePtr inode,
                                          std::string path, bool writable);
/// Marks `inode` as locked until it goes.
std::unique_ptr<base::FileLock> make_sim_lock(std::shared_ptr<SimFileTree> tree, InodePtr inode);

}  // namespace mq::testing
