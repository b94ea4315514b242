#include "metadata/watch_list.h"

#include "base/mutants.h"

namespace mq::metadata {

void WatchList::add(std::string path, WatchKind kind, std::function<void()> fire) {
  watches_.emplace(std::pair(std::move(path), kind), std::move(fire));
}

void WatchList::changed(const std::vector<Operation>& operations) {
  if (watches_.empty()) return;
  for (const auto& operation : operations) {
    if (const auto* create = std::get_if<Create>(&operation)) changed(create->path, true);
    if (const auto* set = std::get_if<SetValue>(&operation)) changed(set->path, false);
    if (const auto* remove = std::get_if<Remove>(&operation)) changed(remove->path, true);
  }
}

void WatchList::changed(const std::string& path, bool made_or_removed) {
  fire(path, WatchKind::data);
  if (made_or_removed && path != "/") fire(std::string(parent_path(path)), WatchKind::children);
}

void WatchList::fire(const std::string& path, WatchKind kind) {
  const auto [first, last] = watches_.equal_range(std::pair(path, kind));
  for (auto it = first; it != last; ++it) runtime_.post(std::move(it->second));
  watches_.erase(first, last);
}

void WatchList::fire_all() {
  if (MQ_MUTANT("no_reread_on_connect")) return;
  for (auto& [key, fire] : watches_) runtime_.post(std::move(fire));
  watches_.clear();
}

}  // namespace mq::metadata
