#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "mq/mq.h"

/// What every test with a real client begins with.
namespace mq::faults {

/// A client's configuration for one broker, without log lines.
template <class Config>
Config quiet(const std::string& address) {
  Config config;
  config.bootstrap = {address};
  config.log = [](LogLevel, std::string_view) {};
  return config;
}

/// The value, or an exception with the error's text.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return std::move(*result);
}

}  // namespace mq::faults
