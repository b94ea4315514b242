#include "base/real/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "base/log.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace mq::base {
namespace {

/// Logs with errno what the operating system refused, unless the caller expects that kind of error
/// and decides itself.
Error failed(const char* what, const std::string& path) {
  const int saved = errno;
  const Error error = error_from_errno(saved);
  if (error == make_error_code(BaseErrc::io_failed)) {
    log_error("file", "{} {} failed: {} (errno {})", what, path,
              std::system_category().message(saved), saved);
  }
  return error;
}

/// RWF_DONTCACHE of Linux 6.14, which this system's headers may not have.
constexpr int kDontCache = 0x80;

class PosixFile final : public File {
 public:
  PosixFile(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Result<std::size_t> read_at(MutableBytes into, std::uint64_t position) override {
    return read(into, position, 0);
  }
  Result<std::size_t> read_cached_at(MutableBytes into, std::uint64_t position) override {
    return read(into, position, RWF_NOWAIT);
  }

  Result<std::size_t> read_uncached_at(MutableBytes into, std::uint64_t position) override {
    if (!no_dont_cache_.load(std::memory_order_relaxed)) {
      auto got = read(into, position, kDontCache);
      if (got || got.error() != make_error_code(BaseErrc::would_block)) return got;
      no_dont_cache_ = true;
    }
    // Without that flag what was there before cannot be told from what this read brought in.
    auto got = read(into, position, 0);
    if (got) drop_cache(position, *got);
    return got;
  }

  Result<std::size_t> write_at(std::span<const Bytes> pieces, std::uint64_t position) override {
    std::array<iovec, 16> vectors;
    std::size_t total = 0;
    for (std::size_t first = 0; first < pieces.size();) {
      const std::size_t count = std::min(vectors.size(), pieces.size() - first);
      std::size_t wanted = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const Bytes piece = pieces[first + i];
        vectors[i] = {const_cast<std::byte*>(piece.data()), piece.size()};
        wanted += piece.size();
      }
      MQ_TRY(const auto written, write_vectors(std::span(vectors).first(count), position + total));
      total += written;
      if (written < wanted) break;
      first += count;
    }
    return total;
  }

  Result<void> sync_data() override {
    if (::fdatasync(fd_.get()) != 0) return failed("fdatasync", path_);
    return {};
  }
  Result<void> sync_all() override {
    if (::fsync(fd_.get()) != 0) return failed("fsync", path_);
    return {};
  }
  Result<void> sync_file_system() override {
    if (::syncfs(fd_.get()) != 0) return failed("syncfs", path_);
    return {};
  }
  Result<void> truncate(std::uint64_t size) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return failed("ftruncate", path_);
    return {};
  }
  Result<void> allocate(std::uint64_t position, std::uint64_t bytes) override {
    while (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, static_cast<off_t>(position),
                       static_cast<off_t>(bytes)) != 0) {
      if (errno == EINTR) continue;
      if (errno == EOPNOTSUPP)
        return {};  // a file system without it: space is then taken by the write itself
      return failed("fallocate", path_);
    }
    return {};
  }
  void start_write_back(std::uint64_t position, std::uint64_t bytes) override {
    ::sync_file_range(fd_.get(), static_cast<off_t>(position), static_cast<off_t>(bytes),
                      SYNC_FILE_RANGE_WRITE);
  }
  Result<void> finish_write_back(std::uint64_t position, std::uint64_t bytes) override {
    constexpr unsigned kWait =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (::sync_file_range(fd_.get(), static_cast<off_t>(position), static_cast<off_t>(bytes),
                          kWait) != 0)
      return failed("sync_file_range", path_);
    return {};
  }
  void drop_cache(std::uint64_t position, std::uint64_t bytes) override {
    ::posix_fadvise(fd_.get(), static_cast<off_t>(position), static_cast<off_t>(bytes),
                    POSIX_FADV_DONTNEED);
  }
  Result<std::uint64_t> size() override {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) return failed("fstat", path_);
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  Result<std::size_t> read(MutableBytes into, std::uint64_t position, int flags) {
    std::size_t total = 0;
    while (total < into.size()) {
      const iovec vector{into.data() + total, into.size() - total};
      const ssize_t got =
          ::preadv2(fd_.get(), &vector, 1, static_cast<off_t>(position + total), flags);
      if (got == 0) break;
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EOPNOTSUPP && flags != 0)
        return make_error_code(BaseErrc::would_block);
      if (got < 0) return failed("read", path_);
      total += static_cast<std::size_t>(got);
    }
    return total;
  }

  /// One system call per pass; stops at the first short or refused one that follows written bytes.
  Result<std::size_t> write_vectors(std::span<iovec> vectors, std::uint64_t position) {
    std::size_t total = 0;
    while (!vectors.empty()) {
      const ssize_t written = ::pwritev(fd_.get(), vectors.data(), static_cast<int>(vectors.size()),
                                        static_cast<off_t>(position + total));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        if (total > 0 && (errno == ENOSPC || errno == EDQUOT)) return total;
        return failed("write", path_);
      }
      if (written == 0) return total;
      total += static_cast<std::size_t>(written);
      auto left = static_cast<std::size_t>(written);
      while (!vectors.empty() && left >= vectors.front().iov_len) {
        left -= vectors.front().iov_len;
        vectors = vectors.subspan(1);
      }
      if (!vectors.empty()) {
        vectors.front().iov_base = static_cast<char*>(vectors.front().iov_base) + left;
        vectors.front().iov_len -= left;
      }
    }
    return total;
  }

  UniqueFd fd_;
  std::string path_;
  std::atomic<bool> no_dont_cache_{false};
};

class PosixLock final : public FileLock {
 public:
  explicit PosixLock(UniqueFd fd) : fd_(std::move(fd)) {}

 private:
  UniqueFd fd_;
};

int flags_of(OpenMode mode) {
  switch (mode) {
    case OpenMode::read:
      return O_RDONLY;
    case OpenMode::write:
      return O_RDWR;
    case OpenMode::create:
      return O_RDWR | O_CREAT;
    case OpenMode::create_exclusive:
      return O_RDWR | O_CREAT | O_EXCL;
  }
  return O_RDONLY;
}

}  // namespace

Result<std::unique_ptr<File>> PosixFileSystem::open(const std::string& path, OpenMode mode) {
  UniqueFd fd(::open(path.c_str(), flags_of(mode) | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failed("open", path);
  std::unique_ptr<File> file = std::make_unique<PosixFile>(std::move(fd), path);
  return file;
}

Result<void> PosixFileSystem::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0) return failed("mkdir", path);
  return {};
}

Result<void> PosixFileSystem::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from);
  return {};
}

Result<void> PosixFileSystem::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return failed("unlink", path);
  return {};
}

Result<void> PosixFileSystem::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return failed("rmdir", path);
  return {};
}

Result<void> PosixFileSystem::sync_directory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failed("open directory", path);
  if (::fsync(fd.get()) != 0) return failed("fsync directory", path);
  return {};
}

Result<std::vector<DirectoryEntry>> PosixFileSystem::list_directory(const std::string& path) {
  DIR* const directory = ::opendir(path.c_str());
  if (!directory) return failed("opendir", path);
  std::vector<DirectoryEntry> entries;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else reads this stream
  while (const dirent* entry = ::readdir(directory)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool is_directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat status {};
      std::string below = path;
      below.append("/").append(name);
      is_directory = ::lstat(below.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    }
    entries.push_back({name, is_directory});
  }
  ::closedir(directory);
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

Result<bool> PosixFileSystem::exists(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return {boost::system::in_place_error, failed("stat", path)};
}

Result<std::unique_ptr<FileLock>> PosixFileSystem::lock(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failed("open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return make_error_code(BaseErrc::locked);
    return failed("flock", path);
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // The lock is what counts; on a full disk it just does not name its holder.
    log_warning("file", "could not write the pid into {}", path);
  }
  std::unique_ptr<FileLock> lock = std::make_unique<PosixLock>(std::move(fd));
  return lock;
}

std::string PosixFileSystem::lock_holder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::array<char, 32> text{};
  if (!fd || ::read(fd.get(), text.data(), text.size() - 1) <= 0) return "unknown";
  const auto line = split(text.data(), '\n').front();
  const auto pid = parse_unsigned(line);
  return pid ? "pid " + std::to_string(*pid) : "unknown";
}

Result<std::uint64_t> PosixFileSystem::free_bytes(const std::string& path) {
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) return failed("statvfs", path);
  return static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize;
}

}  // namespace mq::base
