#include "base/counters.h"

#include "base/log.h"

namespace mq::base {

Counter& Counters::get(std::string_view name) {
  std::lock_guard lock(mutex_);
  auto found = counters_.find(name);
  if (found == counters_.end()) {
    found = counters_.emplace(std::string(name), std::make_unique<Counter>()).first;
  }
  return *found->second;
}

std::map<std::string, std::int64_t> Counters::snapshot() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, std::int64_t> values;
  for (const auto& [name, counter] : counters_) values.emplace(name, counter->value());
  return values;
}

bool Counters::invariant(bool held, std::string_view id, std::string_view detail) {
  if (held) [[likely]] {
    return true;
  }
  get(fmt::format("invariant_violations_total{{id={}}}", id)).add();
  log_error("invariant", "{} is broken: {}", id, detail);
  return false;
}

}  // namespace mq::base
