#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "base/wait_list.h"
#include "metadata/cluster_image.h"

namespace mq::replication {

using metadata::ImagePtr;

/// The newest cluster image that this broker has. On the home runtime, but for image().
class ClusterView {
 public:
  explicit ClusterView(base::Runtime& home) : changed_(home) {}

  /// Null before the first one. Any thread.
  [[nodiscard]] ImagePtr image() const;
  /// Its version, 0 before the first one.
  [[nodiscard]] std::uint64_t version() const;
  /// Returns the image once its version is above `newer_than`, or what is there at `deadline` or
  /// after stop(): null if that is none.
  asio::awaitable<ImagePtr> wait_for_image(std::uint64_t newer_than, base::TimePoint deadline);
  /// Called after each new image, in the order of the listeners.
  void on_image(std::function<void(const ImagePtr&)> listener) {
    listeners_.push_back(std::move(listener));
  }

  /// `image` is newer than the one before.
  void publish(ImagePtr image);
  /// Wakes every waiter.
  void stop();

 private:
  mutable std::mutex mutex_;
  ImagePtr image_;  // guarded by mutex_
  std::vector<std::function<void(const ImagePtr&)>> listeners_;
  base::WaitList changed_;
  bool stopped_ = false;
};

}  // namespace mq::replication
