#include "replication/cluster_view.h"

namespace mq::replication {

ImagePtr ClusterView::image() const {
  const std::lock_guard lock(mutex_);
  return image_;
}

std::uint64_t ClusterView::version() const {
  const auto newest = image();
  return newest ? newest->version() : 0;
}

asio::awaitable<ImagePtr> ClusterView::wait_for_image(std::uint64_t newer_than,
                                                      base::TimePoint deadline) {
  while (version() <= newer_than && !stopped_) {
    const bool notified = co_await changed_.wait_until(deadline);
    if (!notified) break;
  }
  co_return image();
}

void ClusterView::publish(ImagePtr image) {
  {
    const std::lock_guard lock(mutex_);
    image_ = image;
  }
  for (const auto& listener : listeners_) listener(image);
  changed_.notify_all();
}

void ClusterView::stop() {
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace mq::replication
