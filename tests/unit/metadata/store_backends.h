#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metadata/store.h"
#include "unit/metadata/run_loop.h"

namespace mq::testing {

/// One backend under test: its contents stay while stores are opened, closed and crashed on it.
class StoreBackend {
 public:
  virtual ~StoreBackend() = default;
  /// A new session, as of a new process. The one before was closed or crashed.
  virtual std::unique_ptr<metadata::MetadataStore> open(RunLoop& loop) = 0;
  /// The process that uses `store` dies without a word.
  virtual void crash(std::unique_ptr<metadata::MetadataStore> store) = 0;
};

struct StoreBackendKind {
  std::string name;
  std::function<std::unique_ptr<StoreBackend>()> make;
};

/// Every backend that has to pass the conformance suite.
const std::vector<StoreBackendKind>& store_backends();

}  // namespace mq::testing
