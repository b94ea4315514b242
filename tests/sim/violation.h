#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace mq::sim {

/// A promise that the simulated system broke. Ends the run of its seed.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <class... Args>
void require(bool holds, fmt::format_string<Args...> what, Args&&... args) {
  if (!holds) throw Violation(fmt::format(what, std::forward<Args>(args)...));
}

}  // namespace mq::sim
