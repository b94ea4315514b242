#pragma once

#include <fmt/core.h>

namespace mq::base {

[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& detail);

}  // namespace mq::base

/// Own bugs only: logs and aborts, in release builds too. Input from a peer or from disk never
/// reaches it unvalidated.
#define MQ_CHECK(condition, ...)                                                               \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::mq::base::check_failed(#condition, __FILE__, __LINE__, ::fmt::format("" __VA_ARGS__)); \
  } while (false)
