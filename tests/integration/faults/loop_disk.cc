#include "integration/faults/loop_disk.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "integration/faults/child_process.h"

namespace mq::faults {
namespace {

using namespace std::chrono_literals;

constexpr const char* kXfsIo = "/usr/sbin/xfs_io";
constexpr const char* kMount = "/usr/bin/mount";
constexpr const char* kUnmount = "/usr/bin/umount";
constexpr std::uintmax_t kBytes = std::uintmax_t{512} << 20;  // sparse; XFS takes no less than 300

std::string make_command(const std::string& type) { return "/usr/sbin/mkfs." + type; }

}  // namespace

std::string LoopDisk::missing(const std::string& type) {
  if (::geteuid() != 0) return "only root can mount";
  for (const auto& needed : {make_command(type), std::string(kXfsIo), std::string(kMount),
                             std::string(kUnmount), std::string("/dev/loop-control")})
    if (!std::filesystem::exists(needed)) return "there is no " + needed;
  return {};
}

void LoopDisk::keep_mounts_private() {
  if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    throw std::runtime_error("this process cannot have mounts of its own");
}

LoopDisk::LoopDisk(const std::string& type, std::string folder)
    : image_(dir_ / "image"), folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  std::ofstream(image_).close();
  std::filesystem::resize_file(image_, kBytes);
  if (type == "xfs") {
    command({make_command(type), "-q", "-f", image_});
  } else {
    command({make_command(type), "-q", "-F", image_});
  }
  mount();
}

LoopDisk::~LoopDisk() {
  if (::umount2(folder_.c_str(), 0) != 0) ::umount2(folder_.c_str(), MNT_DETACH);
}

void LoopDisk::cut_power(bool flush_log) {
  command({kXfsIo, "-x", "-c", flush_log ? "shutdown -f" : "shutdown", folder_});
}

void LoopDisk::power_on() {
  unmount();
  mount();
}

void LoopDisk::mount() { command({kMount, "-o", "loop", image_, folder_}); }
void LoopDisk::unmount() { command({kUnmount, folder_}); }

void LoopDisk::command(std::initializer_list<std::string> words) {
  const std::string output = dir_ / "output";
  ChildProcess child(std::vector<std::string>(words), output);
  if (child.wait(60s) == 0) return;
  std::ostringstream said;
  said << *words.begin() << " failed: " << std::ifstream(output).rdbuf();
  throw std::runtime_error(said.str());
}

}  // namespace mq::faults
