#include "base/mutants.h"

#include <array>
#include <atomic>

#include "base/check.h"

namespace mq::base {
namespace {

std::array<char, 64> enabled_name;           // written before `enabled_length` is
std::atomic<std::size_t> enabled_length{0};  // 0: none

}  // namespace

bool mutant_enabled(std::string_view name) noexcept {
  const auto length = enabled_length.load(std::memory_order_acquire);
  return length != 0 && std::string_view(enabled_name.data(), length) == name;
}

EnabledMutant::EnabledMutant(std::string_view name) {
  MQ_CHECK(enabled_length.load() == 0 && name.size() < enabled_name.size(), "mutant {}", name);
  name.copy(enabled_name.data(), name.size());
  enabled_length.store(name.size(), std::memory_order_release);
}

EnabledMutant::~EnabledMutant() { enabled_length.store(0, std::memory_order_release); }

}  // namespace mq::base
