#include "base/check.h"

#include <cstdlib>

#include "base/log.h"

namespace mq::base {

void check_failed(const char* condition, const char* file, int line, const std::string& detail) {
  log_error("base", "check failed: {} at {}:{} {}", condition, file, line, detail);
  flush_log();
  std::abort();
}

}  // namespace mq::base
