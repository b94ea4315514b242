#include "controller/controller.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "base/log.h"
#include "controller/change_queue.h"
#include "controller/cluster_tree.h"
#include "controller/node_writer.h"
#include "controller/producer_ids.h"
#include "controller/registration.h"
#include "controller/status.h"
#include "controller/topic_nodes.h"
#include "controller/topic_rules.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

using metadata::MetadataErrc;
using protocol::Status;
using protocol::TopicResult;
using protocol::WireError;

constexpr std::size_t kChangesMax = 256;
constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPause{60};

/// Rises over restarts, because the broker epoch does.
std::uint64_t first_version(model::BrokerEpoch epoch) {
  return (static_cast<std::uint64_t>(epoch.value()) + 1) << 32 | 1;
}

/// A change that somebody may still wait for.
struct Change {
  explicit Change(base::Runtime& runtime) : done(runtime) {}
  std::optional<TopicResult> result;
  base::WaitList done;
};
using ChangePtr = std::shared_ptr<Change>;  // of the change and of its caller, who may give up

}  // namespace

class Controller::Impl {
 public:
  Impl(ControllerConfig config, metadata::MetadataStore& store, LocalReplicas& replicas,
       base::Runtime& home)
      : config_(std::move(config)),
        store_(store),
        replicas_(replicas),
        home_(home),
        writer_(store, home, config_.incarnation),
        nodes_(store, writer_),
        producer_ids_(store, writer_, home),
        queue_(home),
        images_(home),
        stopped_(home),
        tasks_(home) {}

  asio::awaitable<Result<void>> start();
  asio::awaitable<Result<void>> finish_half_done();
  asio::awaitable<Result<void>> raise_leader_epochs(std::vector<LogEpoch> logs);
  asio::awaitable<TopicResult> create_topic(protocol::NewTopic topic, bool validate_only,
                                            base::TimePoint deadline);
  asio::awaitable<TopicResult> delete_topic(std::string name, base::TimePoint deadline);
  asio::awaitable<ImagePtr> wait_for_image(std::uint64_t newer_than, base::TimePoint deadline);
  asio::awaitable<void> stop();

  asio::awaitable<Result<std::int64_t>> next_producer_id() { return producer_ids_.next(); }
  [[nodiscard]] std::vector<base::Uuid> topics_being_deleted() const {
    return {deleting_.begin(), deleting_.end()};
  }
  [[nodiscard]] ImagePtr image() const {
    const std::lock_guard lock(image_mutex_);
    return image_;
  }
  void on_image(std::function<void(const ImagePtr&)> listener) {
    listeners_.push_back(std::move(listener));
  }

 private:
  [[nodiscard]] std::optional<Status> refuse_new_change() const;
  [[nodiscard]] Status status(WireError error, std::string text) const {
    return Status::of(error, std::move(text), config_.broker.value());
  }
  asio::awaitable<TopicResult> outcome_of(ChangePtr change, std::string name,
                                          base::TimePoint deadline);
  asio::awaitable<void> run_create(ChangePtr change, protocol::NewTopic topic, bool validate_only);
  asio::awaitable<void> run_delete(ChangePtr change, std::string name);
  void end(const ChangePtr& change, TopicResult result);

  asio::awaitable<TopicResult> create(protocol::NewTopic topic, bool validate_only);
  asio::awaitable<Status> make(TopicTree& tree);
  asio::awaitable<Status> open(const TopicTree& tree);
  asio::awaitable<void> take_back(TopicTree tree);
  asio::awaitable<void> sweep(base::Uuid topic);
  asio::awaitable<TopicResult> remove(std::string name);
  asio::awaitable<Result<void>> finish_delete(base::Uuid topic);

  asio::awaitable<Result<void>> repair_if_needed();
  asio::awaitable<Result<void>> repair();
  asio::awaitable<Result<void>> repair_deletes();
  asio::awaitable<Result<void>> repair_creates();
  asio::awaitable<Result<void>> repair_states();
  void want_repair();
  asio::awaitable<void> retry_repair();

  void publish(ClusterImage image);
  [[nodiscard]] std::uint64_t next_version() const { return image()->version() + 1; }

  ControllerConfig config_;
  metadata::MetadataStore& store_;
  LocalReplicas& replicas_;
  base::Runtime& home_;
  NodeWriter writer_;
  TopicNodes nodes_;
  ProducerIds producer_ids_;
  model::BrokerEpoch epoch_;
  std::set<base::Uuid> deleting_;  ///< stand under /deleting

  mutable std::mutex image_mutex_;  // guards image_, which any thread may read
  ImagePtr image_;
  std::vector<std::function<void(const ImagePtr&)>> listeners_;

  ChangeQueue queue_;
  std::size_t changes_ = 0;    ///< asked for and not ended
  bool repair_needed_ = true;  ///< the store may hold something half done
  bool names_unsure_ = false;  ///< a topic may have become real or gone without our knowing
  bool retrying_ = false;
  bool stopping_ = false;
  base::WaitList images_;
  base::WaitList stopped_;
  base::TaskGroup tasks_;
};

// Start ------------------------------------------------------------------------------------------

asio::awaitable<Result<void>> Controller::Impl::start() {
  MQ_CO_TRY_VOID(co_await make_folders(store_));
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

// Changes ----------------------------------------------------------------------------------------

std::optional<Status> Controller::Impl::refuse_new_change() const {
  if (stopping_) return status(WireError::shutting_down, "the broker is stopping");
  if (changes_ >= kChangesMax)
    return status(WireError::overloaded,
                  fmt::format("{} topic changes are waiting already", changes_));
  return std::nullopt;
}

asio::awaitable<TopicResult> Controller::Impl::create_topic(protocol::NewTopic topic,
                                                            bool validate_only,
                                                            base::TimePoint deadline) {
  std::string name = topic.name;
  if (auto refused = refuse_new_change()) {
    TopicResult result{std::move(name), std::move(*refused)};
    co_return result;
  }
  ++changes_;
  auto change = std::make_shared<Change>(home_);
  tasks_.spawn("creating a topic", run_create(change, std::move(topic), validate_only));
  co_return co_await outcome_of(std::move(change), std::move(name), deadline);
}

asio::awaitable<TopicResult> Controller::Impl::delete_topic(std::string name,
                                                            base::TimePoint deadline) {
  if (auto refused = refuse_new_change()) {
    TopicResult result{std::move(name), std::move(*refused)};
    co_return result;
  }
  ++changes_;
  auto change = std::make_shared<Change>(home_);
  tasks_.spawn("deleting a topic", run_delete(change, name));
  co_return co_await outcome_of(std::move(change), std::move(name), deadline);
}

asio::awaitable<TopicResult> Controller::Impl::outcome_of(ChangePtr change, std::string name,
                                                          base::TimePoint deadline) {
  bool in_time = true;
  while (in_time && !change->result) in_time = co_await change->done.wait_until(deadline);
  if (change->result) co_return *change->result;
  TopicResult late{std::move(name),
                   status(WireError::timed_out, "the change is still under way; it is not undone")};
  co_return late;
}

void Controller::Impl::end(const ChangePtr& change, TopicResult result) {
  --changes_;
  change->result = std::move(result);
  change->done.notify_all();
}

asio::awaitable<void> Controller::Impl::run_create(ChangePtr change, protocol::NewTopic topic,
                                                   bool validate_only) {
  const auto turn = co_await queue_.wait_for_turn();
  auto result = co_await create(std::move(topic), validate_only);
  end(change, std::move(result));
}

asio::awaitable<void> Controller::Impl::run_delete(ChangePtr change, std::string name) {
  const auto turn = co_await queue_.wait_for_turn();
  auto result = co_await remove(std::move(name));
  end(change, std::move(result));
}

// Create: state nodes, then /topics/<name>, then the logs, then the image (MET-2)
// ------------------

asio::awaitable<TopicResult> Controller::Impl::create(protocol::NewTopic topic,
                                                      bool validate_only) {
  TopicResult result;
  result.name = topic.name;
  result.status = check_new_topic(config_, topic);
  if (!result.status.ok()) co_return result;
  if (stopping_) {
    result.status = status(WireError::shutting_down, "the broker is stopping");
    co_return result;
  }
  const auto repaired = co_await repair_if_needed();
  if (!repaired) {
    result.status = metadata_status(repaired.error(), config_.broker);
    co_return result;
  }
  if (image()->find_topic(topic.name)) {
    result.status = status(WireError::topic_exists, fmt::format("topic \"{}\" exists", topic.name));
    co_return result;
  }
  const auto id = base::Uuid::from_random(home_.random(), home_.random());
  auto tree = plan_topic(config_, topic, id, epoch_);
  result.partitions = static_cast<std::int32_t>(tree.partitions.size());
  if (validate_only) co_return result;
  result.status = co_await make(tree);
  if (result.status.ok()) result.id = id;
  co_return result;
}

asio::awaitable<Status> Controller::Impl::make(TopicTree& tree) {
  const auto prepared = co_await nodes_.prepare(tree);
  if (!prepared) {
    // Whatever became of it, without /topics/<name> it is no topic.
    co_await sweep(tree.value.id);
    co_return metadata_status(MetadataErrc::unavailable, config_.broker);
  }
  const auto real = co_await nodes_.make_real(tree);
  if (!real) {
    if (real.error() == make_error_code(MetadataErrc::outcome_unknown)) {
      names_unsure_ = true;
      want_repair();
    } else {
      co_await sweep(tree.value.id);
    }
    co_return metadata_status(real.error(), config_.broker);
  }
  auto opened = co_await open(tree);
  if (!opened.ok()) co_await take_back(tree);
  co_return opened;
}

asio::awaitable<Status> Controller::Impl::open(const TopicTree& tree) {
  auto info = std::make_shared<const TopicInfo>(to_info(tree, config_.topic_defaults));
  const auto opened = co_await replicas_.open_topic(info);
  if (!opened) {
    base::log_warning("controller", "topic {}: its logs could not be opened: {}", info->name,
                      opened.error().message());
    co_return storage_status(opened.error(), info->name, config_.broker);
  }
  publish(image()->with_topic(std::move(info), next_version()));
  co_return Status();
}

/// The topic became real but has no logs: it is deleted again.
asio::awaitable<void> Controller::Impl::take_back(TopicTree tree) {
  const auto id = tree.value.id;
  const auto moved = co_await nodes_.move_to_deleting(std::move(tree));
  if (!moved) {
    names_unsure_ = true;
    want_repair();
    co_return;
  }
  deleting_.insert(id);
  if (stopping_) co_return;  // its logs may be many; the next start removes them
  const auto finished = co_await finish_delete(id);
  if (!finished) want_repair();
}

asio::awaitable<void> Controller::Impl::sweep(base::Uuid topic) {
  const auto swept = co_await nodes_.sweep_state(topic);
  if (!swept) want_repair();
}

// Delete: one multi, then the image, the logs, the state nodes, /deleting/<uuid> (MET-2)
// -----------

asio::awaitable<TopicResult> Controller::Impl::remove(std::string name) {
  TopicResult result;
  result.name = name;
  if (stopping_) {
    result.status = status(WireError::shutting_down, "the broker is stopping");
    co_return result;
  }
  const auto repaired = co_await repair_if_needed();
  if (!repaired) {
    result.status = metadata_status(repaired.error(), config_.broker);
    co_return result;
  }
  const auto topic = image()->find_topic(name);
  if (!topic) {
    result.status = status(WireError::unknown_topic, unknown_topic_text(*image(), name));
    co_return result;
  }
  auto tree = co_await load_topic_node(store_, name);
  if (!tree) {
    result.status = metadata_status(tree.error(), config_.broker);
    co_return result;
  }
  const auto moved = co_await nodes_.move_to_deleting(std::move(*tree));
  if (!moved) {
    if (moved.error() == make_error_code(MetadataErrc::outcome_unknown)) {
      names_unsure_ = true;
      want_repair();
    }
    result.status = metadata_status(moved.error(), config_.broker);
    co_return result;
  }
  result.id = topic->id;
  result.partitions = static_cast<std::int32_t>(topic->partitions.size());
  deleting_.insert(topic->id);
  publish(image()->without_topic(name, next_version()));
  const auto finished = co_await finish_delete(topic->id);
  if (!finished) {
    base::log_warning("controller", "topic {} is gone, its logs not yet: {}", name,
                      finished.error().message());
    want_repair();
  }
  co_return result;
}

asio::awaitable<Result<void>> Controller::Impl::finish_delete(base::Uuid topic) {
  MQ_CO_TRY_VOID(co_await replicas_.delete_topic(topic));
  MQ_CO_TRY_VOID(co_await nodes_.sweep_state(topic));
  MQ_CO_TRY_VOID(co_await nodes_.forget(topic));
  deleting_.erase(topic);
  co_return Result<void>();
}

// Repair: whatever the store says now becomes true here
// --------------------------------------------

asio::awaitable<Result<void>> Controller::Impl::finish_half_done() {
  const auto turn = co_await queue_.wait_for_turn();
  const auto repaired = co_await repair();
  if (!repaired) want_repair();
  co_return repaired;
}

/// Before a change: nobody may be wrong about which names are taken. Logs and nodes that are only
/// left over do not stop it.
asio::awaitable<Result<void>> Controller::Impl::repair_if_needed() {
  if (!repair_needed_) co_return Result<void>();
  auto repaired = co_await repair();
  if (!repaired && !names_unsure_) co_return Result<void>();
  co_return std::move(repaired);
}

asio::awaitable<Result<void>> Controller::Impl::repair() {
  MQ_CO_TRY_VOID(co_await repair_deletes());
  MQ_CO_TRY_VOID(co_await repair_creates());
  MQ_CO_TRY_VOID(co_await repair_states());
  repair_needed_ = false;
  names_unsure_ = false;
  co_return Result<void>();
}

asio::awaitable<Result<void>> Controller::Impl::repair_deletes() {
  const auto ids = co_await list_deleting(store_);
  if (!ids) co_return ids.error();
  deleting_ = std::set(ids->begin(), ids->end());
  for (const auto& id : *ids) {
    if (const auto topic = image()->find_topic(id))
      publish(image()->without_topic(topic->name, next_version()));
    MQ_CO_TRY_VOID(co_await finish_delete(id));
    base::log_info("controller", "finished deleting topic {}", id.hex());
  }
  co_return Result<void>();
}

/// Topics whose creation was confirmed after its answer had been given up.
asio::awaitable<Result<void>> Controller::Impl::repair_creates() {
  const auto names = co_await list_topics(store_);
  if (!names) co_return names.error();
  for (const auto& name : *names) {
    if (image()->find_topic(name)) continue;
    const auto tree = co_await load_topic(store_, name);
    if (!tree) co_return tree.error();
    const auto opened = co_await open(*tree);
    if (!opened.ok()) co_return make_error_code(MetadataErrc::unavailable);
    base::log_info("controller", "finished creating topic {}", name);
  }
  co_return Result<void>();
}

/// State nodes of topics that never became real.
asio::awaitable<Result<void>> Controller::Impl::repair_states() {
  const auto ids = co_await list_state(store_);
  if (!ids) co_return ids.error();
  for (const auto& id : *ids) {
    if (image()->find_topic(id)) continue;
    MQ_CO_TRY_VOID(co_await nodes_.sweep_state(id));
    base::log_info("controller", "swept the state of {}, which is no topic", id.hex());
  }
  co_return Result<void>();
}

void Controller::Impl::want_repair() {
  repair_needed_ = true;
  if (retrying_ || stopping_) return;
  retrying_ = true;
  tasks_.spawn("finishing half-done changes", retry_repair());
}

asio::awaitable<void> Controller::Impl::retry_repair() {
  auto pause = kFirstPause;
  while (repair_needed_ && !stopping_ && store_.online()) {
    const bool stopped = co_await stopped_.wait_until(home_.now() + pause);
    if (stopped) break;
    pause = std::min(2 * pause, kLongestPause);
    const auto turn = co_await queue_.wait_for_turn();
    if (stopping_ || !repair_needed_) break;
    const auto repaired = co_await repair();
    if (!repaired)
      base::log_warning("controller", "a half-done change is not finished yet: {}",
                        repaired.error().message());
  }
  retrying_ = false;
}

// Image
// --------------------------------------------------------------------------------------------

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
  co_await tasks_.wait();
}

// The face
// -----------------------------------------------------------------------------------------

Controller::Controller(ControllerConfig config, metadata::MetadataStore& store,
                       LocalReplicas& replicas, base::Runtime& home)
    : impl_(std::make_unique<Impl>(std::move(config), store, replicas, home)) {}

Controller::~Controller() = default;

asio::awaitable<Result<void>> Controller::start() { return impl_->start(); }
asio::awaitable<Result<void>> Controller::finish_half_done() { return impl_->finish_half_done(); }
std::vector<base::Uuid> Controller::topics_being_deleted() const {
  return impl_->topics_being_deleted();
}
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

std::string unknown_topic_text(const ClusterImage& image, std::string_view name) {
  std::string text = fmt::format("there is no topic \"{}\"", base::printable(name, 260));
  if (const auto near = image.nearest_topic_name(name))
    text += fmt::format("; did you mean \"{}\"?", *near);
  return text;
}

}  // namespace mq::controller
