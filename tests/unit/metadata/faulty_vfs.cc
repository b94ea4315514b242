#include "unit/metadata/faulty_vfs.h"

#include <sqlite3.h>

#include <mutex>

namespace mq::testing {
namespace {

std::mutex decide_mutex;
FaultyVfs::Decide decide;
sqlite3_vfs* below = nullptr;
sqlite3_vfs shim;

int ask(const char* call, const char* file) {
  const std::lock_guard lock(decide_mutex);
  return decide ? decide(call, file ? file : "") : SQLITE_OK;
}

/// What SQLite sees; the file below follows it in the same block of memory.
struct ShimFile {
  sqlite3_file base;
  const char* name;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

ShimFile& shim_of(sqlite3_file* file) { return *reinterpret_cast<ShimFile*>(file); }
const sqlite3_io_methods& real_methods(sqlite3_file* file) {
  return *shim_of(file).real()->pMethods;
}

int shim_read(sqlite3_file* file, void* to, int size, sqlite3_int64 at) {
  if (const int code = ask("read", shim_of(file).name)) return code;
  return real_methods(file).xRead(shim_of(file).real(), to, size, at);
}
int shim_write(sqlite3_file* file, const void* from, int size, sqlite3_int64 at) {
  if (const int code = ask("write", shim_of(file).name)) return code;
  return real_methods(file).xWrite(shim_of(file).real(), from, size, at);
}
int shim_sync(sqlite3_file* file, int flags) {
  if (const int code = ask("sync", shim_of(file).name)) return code;
  return real_methods(file).xSync(shim_of(file).real(), flags);
}
int shim_close(sqlite3_file* file) { return real_methods(file).xClose(shim_of(file).real()); }
int shim_truncate(sqlite3_file* file, sqlite3_int64 size) {
  return real_methods(file).xTruncate(shim_of(file).real(), size);
}
int shim_size(sqlite3_file* file, sqlite3_int64* size) {
  return real_methods(file).xFileSize(shim_of(file).real(), size);
}
int shim_lock(sqlite3_file* file, int level) {
  return real_methods(file).xLock(shim_of(file).real(), level);
}
int shim_unlock(sqlite3_file* file, int level) {
  return real_methods(file).xUnlock(shim_of(file).real(), level);
}
int shim_reserved(sqlite3_file* file, int* out) {
  return real_methods(file).xCheckReservedLock(shim_of(file).real(), out);
}
int shim_control(sqlite3_file* file, int op, void* argument) {
  return real_methods(file).xFileControl(shim_of(file).real(), op, argument);
}
int shim_sector(sqlite3_file* file) { return real_methods(file).xSectorSize(shim_of(file).real()); }
int shim_traits(sqlite3_file* file) {
  return real_methods(file).xDeviceCharacteristics(shim_of(file).real());
}

// Version 1 has no shared memory: the store does without it.
const sqlite3_io_methods kMethods{
    1,         shim_close,  shim_read,     shim_write,   shim_truncate, shim_sync,   shim_size,
    shim_lock, shim_unlock, shim_reserved, shim_control, shim_sector,   shim_traits, nullptr,
    nullptr,   nullptr,     nullptr,       nullptr,      nullptr};

int shim_open(sqlite3_vfs* /*vfs*/, const char* name, sqlite3_file* file, int flags, int* out) {
  ShimFile& shim_file = shim_of(file);
  shim_file.name = name;
  const int code = below->xOpen(below, name, shim_file.real(), flags, out);
  file->pMethods = shim_file.real()->pMethods ? &kMethods : nullptr;
  return code;
}

}  // namespace

FaultyVfs::FaultyVfs() {
  below = sqlite3_vfs_find(nullptr);
  shim = *below;
  shim.zName = "faulty";
  shim.pNext = nullptr;
  shim.szOsFile = static_cast<int>(sizeof(ShimFile)) + below->szOsFile;
  shim.xOpen = shim_open;
  sqlite3_vfs_register(&shim, 1);
}

FaultyVfs::~FaultyVfs() {
  set(nullptr);
  sqlite3_vfs_unregister(&shim);
  sqlite3_vfs_register(below, 1);
}

void FaultyVfs::set(Decide next) {
  const std::lock_guard lock(decide_mutex);
  decide = std::move(next);
}

}  // namespace mq::testing
