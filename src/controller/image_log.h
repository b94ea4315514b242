#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "base/wait_list.h"
#include "metadata/cluster_image.h"
#include "protocol/pull_image.h"

namespace mq::controller {

/// The newest cluster image of one controller, and what has changed lately, for brokers that have
/// an image already. Versions are (controller epoch + 1) in the upper half and a number that rises
/// with every change in the lower: a new controller's are above all of the old one's.
///
/// On the controller's runtime, but for image().
class ImageLog {
 public:
  /// `topic_defaults`: the controller's, as every answer with topics tells them.
  ImageLog(base::Runtime& home, std::int32_t controller_epoch,
           const model::TopicSettings& topic_defaults);

  /// Any thread. Null before the first publish().
  [[nodiscard]] metadata::ImagePtr image() const;
  /// Of the image that is published next.
  [[nodiscard]] std::uint64_t next_version() const noexcept { return version_ + 1; }
  /// `touched`: topics that are different, new or gone since the image before. The version of
  /// `image` is next_version().
  void publish(metadata::ClusterImage image, std::vector<base::Uuid> touched);

  /// Returns when there is an image that a broker with `have` does not have, or at `deadline` or
  /// close().
  asio::awaitable<void> wait_for_newer(std::uint64_t have, base::TimePoint deadline);
  /// Everything, or what is different since `have`.
  [[nodiscard]] protocol::PullImageResponse answer(std::uint64_t have) const;
  /// Wakes every waiter, and nobody waits any more.
  void close();

 private:
  struct Change {
    std::uint64_t version;
    std::vector<base::Uuid> touched;
  };
  /// Whether an image with this version can be brought up to date by changes.
  [[nodiscard]] bool remembers(std::uint64_t have) const noexcept;
  void add_changes(protocol::PullImageResponse& response, std::uint64_t have) const;
  void forget_old();

  const std::map<std::string, std::string> topic_defaults_;
  const std::uint64_t first_version_;
  std::uint64_t version_;
  mutable std::mutex mutex_;  // guards image_, which any thread may read
  metadata::ImagePtr image_;
  std::deque<Change> changes_;
  std::size_t remembered_ = 0;  // topics in changes_
  bool closed_ = false;
  base::WaitList waiters_;
};

}  // namespace mq::controller
