#include "controller/controller.h"

#include <algorithm>

#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/registration.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

/// Rises over restarts, because the broker epoch does.
std::uint64_t first_version(model::BrokerEpoch epoch) {
  return (static_cast<std::uint64_t>(epoch.value()) + 1) << 32 | 1;
}

}  // namespace

asio::awaitable<Result<void>> Controller::Impl::start() {
  MQ_CO_TRY_VOID(co_await make_folders(store_));
  MQ_CO_TRY_VOID(co_await claim());
  auto topics = co_await load_topics(store_);
  if (!topics) co_return topics.error();
  const auto deleting = co_await list_deleting(store_);
  if (!deleting) co_return deleting.error();
  deleting_.insert(deleting->begin(), deleting->end());
  const auto epoch = co_await register_broker(store_, writer_, config_, *topics);
  if (!epoch) co_return epoch.error();
  epoch_ = *epoch;

  std::vector<TopicPtr> infos;
  for (const auto& topic : *topics)
    infos.push_back(std::make_shared<const TopicInfo>(to_info(topic, config_.topic_defaults)));
  const BrokerInfo self{config_.broker, epoch_, config_.advertised};
  publish(ClusterImage(config_.cluster_id, config_.broker, {self}, std::move(infos),
                       first_version(epoch_)));
  producer_ids_.start();
  co_return Result<void>();
}

asio::awaitable<Result<void>> Controller::Impl::raise_leader_epochs(std::vector<LogEpoch> logs) {
  const auto turn = co_await queue_.wait_for_turn();
  const auto before = image();
  std::vector<PartitionNode> raised;
  for (const auto& log : logs) {
    const auto* assignment = before->find_partition(log.id);
    if (!assignment || log.last < assignment->leader_epoch) continue;
    // PAR-4: the log has seen this epoch, so its next leader needs a higher one.
    base::log_warning(
        "controller",
        "{}: the log has seen leader epoch {}, the metadata only {}; was the metadata "
        "store restored from a backup?",
        log.id.text(), log.last, assignment->leader_epoch);
    PartitionNode node{log.id, {}, assignment->version.value()};
    node.state.leader = config_.broker;
    node.state.leader_epoch = model::LeaderEpoch(log.last.value() + 1);
    node.state.isr = {{config_.broker, epoch_}};
    raised.push_back(std::move(node));
  }
  if (raised.empty()) co_return Result<void>();
  std::vector<PartitionNode*> pointers;
  pointers.reserve(raised.size());
  for (auto& node : raised) pointers.push_back(&node);
  const metadata::Check fence(metadata::layout::broker_epoch(config_.broker),
                              static_cast<std::int32_t>(epoch_.value()));
  MQ_CO_TRY_VOID(co_await write_states(writer_, std::move(pointers), fence));

  ClusterImage next = *before;
  for (const auto& node : raised) {
    TopicInfo topic = *next.find_topic(node.id.topic);
    const auto found = std::ranges::find(topic.partitions, node.id, &PartitionAssignment::id);
    found->leader_epoch = node.state.leader_epoch;
    found->version = model::PartitionVersion(node.version);
    next = next.with_topic(std::make_shared<const TopicInfo>(std::move(topic)), next_version());
  }
  publish(std::move(next));
  co_return Result<void>();
}

// The image

void Controller::Impl::publish(ClusterImage image) {
  const auto next = std::make_shared<const ClusterImage>(std::move(image));
  {
    const std::lock_guard lock(image_mutex_);
    image_ = next;
  }
  images_.notify_all();
  for (const auto& listener : listeners_) listener(next);
}

asio::awaitable<ImagePtr> Controller::Impl::wait_for_image(std::uint64_t newer_than,
                                                           base::TimePoint deadline) {
  bool in_time = true;
  while (in_time && image()->version() <= newer_than && !stopping_)
    in_time = co_await images_.wait_until(deadline);
  co_return image();
}

asio::awaitable<void> Controller::Impl::stop() {
  stopping_ = true;
  stopped_.notify_all();
  images_.notify_all();
  co_await producer_ids_.stop();
  co_await tasks_.wait();
}

// The face

Controller::Controller(ControllerConfig config, metadata::MetadataStore& store,
                       LocalReplicas& replicas, base::Runtime& home)
    : impl_(std::make_unique<Impl>(std::move(config), store, replicas, home)) {}

Controller::~Controller() = default;

asio::awaitable<Result<void>> Controller::start() { return impl_->start(); }
asio::awaitable<Result<void>> Controller::finish_half_done() { return impl_->finish_half_done(); }
void Controller::allow_changes() { impl_->allow_changes(); }
std::vector<base::Uuid> Controller::topics_being_deleted() const {
  return impl_->topics_being_deleted();
}
std::string Controller::metadata_trouble() const { return impl_->metadata_trouble(); }
std::size_t Controller::deletions_under_way() const { return impl_->deletions_under_way(); }
asio::awaitable<Result<void>> Controller::raise_leader_epochs(std::vector<LogEpoch> logs) {
  return impl_->raise_leader_epochs(std::move(logs));
}
asio::awaitable<TopicResult> Controller::create_topic(protocol::NewTopic topic, bool validate_only,
                                                      base::TimePoint deadline) {
  return impl_->create_topic(std::move(topic), validate_only, deadline);
}
asio::awaitable<TopicResult> Controller::delete_topic(std::string name, base::TimePoint deadline) {
  return impl_->delete_topic(std::move(name), deadline);
}
asio::awaitable<Result<std::int64_t>> Controller::next_producer_id() {
  return impl_->next_producer_id();
}
ImagePtr Controller::image() const { return impl_->image(); }
asio::awaitable<ImagePtr> Controller::wait_for_image(std::uint64_t newer_than,
                                                     base::TimePoint deadline) {
  return impl_->wait_for_image(newer_than, deadline);
}
void Controller::on_image(std::function<void(const ImagePtr&)> listener) {
  impl_->on_image(std::move(listener));
}
asio::awaitable<void> Controller::stop() { return impl_->stop(); }

}  // namespace mq::controller
