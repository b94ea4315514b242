#pragma once

namespace mq::broker {

/// Exit statuses of mqbroker, after sysexits.h. The service manager does not try 64 and 78 again.
enum ExitStatus {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 64,
  kExitConfig = 78,
};

}  // namespace mq::broker
