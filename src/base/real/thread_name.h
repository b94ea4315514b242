#pragma once

#include <pthread.h>

#include <string>
#include <thread>

namespace mq::base {

/// What the system's tools (top -H, ps -L) show of a thread; the kernel takes 15 characters.
inline void name_thread(std::thread& thread, const std::string& name) {
  ::pthread_setname_np(thread.native_handle(), name.substr(0, 15).c_str());
}

}  // namespace mq::base
