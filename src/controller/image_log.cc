#include "controller/image_log.h"

#include <unordered_set>

#include "base/check.h"

namespace mq::controller {
namespace {

constexpr std::size_t kChangesMax = 10'000;
constexpr std::size_t kTouchedMax = 50'000;

protocol::ImagePartition to_message(const metadata::PartitionAssignment& partition) {
  protocol::ImagePartition message;
  message.partition = partition.id.partition;
  message.leader = partition.leader.value();
  message.leader_epoch = partition.leader_epoch.value();
  message.partition_version = partition.version.value();
  for (const auto replica : partition.replicas) message.replicas.push_back(replica.value());
  message.isr = partition.isr;
  message.elr = partition.elr;
  message.min_isr = partition.min_isr;
  message.loss_epoch = partition.loss_epoch.value();
  message.loss_start = partition.loss_start.value();
  message.loss_end = partition.loss_end.value();
  return message;
}

protocol::ImageTopic to_message(const metadata::TopicInfo& topic) {
  protocol::ImageTopic message;
  message.name = topic.name;
  message.id = topic.id;
  message.overrides = topic.overrides;
  message.hidden_from = topic.hidden_from;
  message.partitions.reserve(topic.partitions.size());
  for (const auto& partition : topic.partitions)
    message.partitions.push_back(to_message(partition));
  return message;
}

void add_brokers(protocol::PullImageResponse& response, const metadata::ClusterImage& image) {
  for (const auto& broker : image.brokers()) {
    auto& message = response.brokers.emplace_back();
    message.id = broker.id.value();
    message.epoch = broker.epoch.value();
    message.host = broker.advertised.host;
    message.port = broker.advertised.port;
    message.away = !broker.alive;
    message.rack = broker.rack;
  }
}

void add_deleting(protocol::PullImageResponse& response, const metadata::ClusterImage& image) {
  for (const auto& topic : image.deleting()) {
    auto& message = response.deleting.emplace_back();
    message.id = topic.id;
    for (const auto broker : topic.brokers) message.brokers.push_back(broker.value());
  }
}

void add_damage(protocol::PullImageResponse& response, const metadata::ClusterImage& image) {
  for (const auto& node : image.damage())
    response.damage.push_back({node.path, node.topic, node.text});
}

}  // namespace

ImageLog::ImageLog(base::Runtime& home, std::int32_t controller_epoch,
                   const model::TopicSettings& topic_defaults)
    : topic_defaults_(model::given_topic_settings(topic_defaults)),
      first_version_((static_cast<std::uint64_t>(controller_epoch) + 1) << 32),
      version_(first_version_),
      waiters_(home) {}

metadata::ImagePtr ImageLog::image() const {
  const std::lock_guard lock(mutex_);
  return image_;
}

void ImageLog::publish(metadata::ClusterImage image, std::vector<base::Uuid> touched) {
  MQ_CHECK(image.version() == next_version(), "image {} after {}", image.version(), version_);
  version_ = image.version();
  auto next = std::make_shared<const metadata::ClusterImage>(std::move(image));
  {
    const std::lock_guard lock(mutex_);
    image_ = std::move(next);
  }
  remembered_ += touched.size();
  changes_.push_back({version_, std::move(touched)});
  forget_old();
  waiters_.notify_all();
}

void ImageLog::forget_old() {
  while (changes_.size() > kChangesMax || (remembered_ > kTouchedMax && changes_.size() > 1)) {
    remembered_ -= changes_.front().touched.size();
    changes_.pop_front();
  }
}

bool ImageLog::remembers(std::uint64_t have) const noexcept {
  if (have <= first_version_ || have > version_) return false;  // of another controller
  return have == version_ || (!changes_.empty() && changes_.front().version <= have + 1);
}

asio::awaitable<void> ImageLog::wait_for_newer(std::uint64_t have, base::TimePoint deadline) {
  bool in_time = true;
  while (in_time && !closed_ && have == version_) in_time = co_await waiters_.wait_until(deadline);
}

protocol::PullImageResponse ImageLog::answer(std::uint64_t have) const {
  const auto image = this->image();
  protocol::PullImageResponse response;
  response.version = version_;
  response.cluster_id = image->cluster_id();
  response.controller = image->controller().value();
  if (have == version_) {
    response.base_version = have;
    return response;
  }
  add_brokers(response, *image);
  add_deleting(response, *image);
  add_damage(response, *image);
  response.topic_defaults = topic_defaults_;
  if (remembers(have)) {
    response.base_version = have;
    add_changes(response, have);
  } else {
    for (const auto& [name, topic] : image->topics()) response.topics.push_back(to_message(*topic));
  }
  return response;
}

void ImageLog::add_changes(protocol::PullImageResponse& response, std::uint64_t have) const {
  const auto image = this->image();
  std::unordered_set<base::Uuid> seen;
  for (auto change = changes_.rbegin(); change != changes_.rend() && change->version > have;
       ++change) {
    for (const auto& id : change->touched) {
      if (!seen.insert(id).second) continue;
      if (const auto topic = image->find_topic(id))
        response.topics.push_back(to_message(*topic));
      else
        response.removed.push_back(id);
    }
  }
}

void ImageLog::close() {
  closed_ = true;
  waiters_.notify_all();
}

}  // namespace mq::controller
