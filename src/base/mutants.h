#pragma once

#include <string_view>

/// Known mistakes, kept as switches so that tests can prove that they would be noticed. A folder's
/// CMakeLists.txt defines MQ_MUTANTS for its library in the presets that test (MQ_CHECKS);
/// elsewhere MQ_MUTANT() is the constant false.
///
///   if (MQ_MUTANT("retry_fsync_after_eio")) ...
#ifdef MQ_MUTANTS
#define MQ_MUTANT(name) (::mq::base::mutant_enabled(name))
#else
#define MQ_MUTANT(name) false
#endif

namespace mq::base {

[[nodiscard]] bool mutant_enabled(std::string_view name) noexcept;

/// Switches one mistake on for as long as it lives; one at a time, from tests only.
class EnabledMutant {
 public:
  explicit EnabledMutant(std::string_view name);
  ~EnabledMutant();
  EnabledMutant(const EnabledMutant&) = delete;
  EnabledMutant& operator=(const EnabledMutant&) = delete;
};

}  // namespace mq::base
