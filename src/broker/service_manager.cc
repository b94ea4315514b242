#include "broker/service_manager.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdlib>

namespace mq::broker {

void ServiceManager::ready(const std::string& status) {
  sd_notify(0, fmt::format("READY=1\nSTATUS={}", status).c_str());
}

void ServiceManager::working(const std::string& status) {
  constexpr long long kMoreTimeUsec = 120'000'000;
  sd_notify(0, fmt::format("EXTEND_TIMEOUT_USEC={}\nSTATUS={}", kMoreTimeUsec, status).c_str());
}

void ServiceManager::stopping() { sd_notify(0, "STOPPING=1"); }

bool ServiceManager::logs_to_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");  // "device:inode", systemd.exec(5)
  struct stat status {};
  if (!stream || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

}  // namespace mq::broker
