#include "metadata/zookeeper_thread.h"

#include <system_error>
#include <thread>

namespace mq::metadata {

bool run_detached(std::function<void()> work) {
  try {
    std::thread(std::move(work)).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

}  // namespace mq::metadata
