#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/runtime.h"
#include "metadata/store.h"

namespace mq::metadata {

/// The one-shot watches of one store object, fired by the changes that it makes or hears of. On the
/// store's runtime only.
class WatchList {
 public:
  explicit WatchList(base::Runtime& runtime) : runtime_(runtime) {}
  void add(std::string path, WatchKind kind, std::function<void()> fire);
  /// Posts every callback that the applied operations concern, and forgets it.
  void changed(const std::vector<Operation>& operations);
  void changed(const std::string& path, bool made_or_removed);
  void fire(const std::string& path, WatchKind kind);
  /// Changes may have gone unseen.
  void fire_all();

 private:
  base::Runtime& runtime_;
  std::multimap<std::pair<std::string, WatchKind>, std::function<void()>> watches_;
};

}  // namespace mq::metadata
