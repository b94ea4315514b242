#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/status.h"
#include "controller/topic_rules.h"

namespace mq::controller {
namespace {

constexpr std::size_t kChangesMax = 256;

}  // namespace

std::optional<Status> Controller::Impl::refuse_new_change() const {
  if (stopping_) return status(WireError::shutting_down, "the broker is stopping");
  if (!recovered_) {
    return status(WireError::partition_recovering,
                  "the broker still recovers its logs; topics can be changed when that is done");
  }
  if (!leads_) return metadata_refusal(MetadataErrc::session_lost);
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

asio::awaitable<Status> Controller::Impl::ready_for_change() {
  if (stopping_) co_return status(WireError::shutting_down, "the broker is stopping");
  if (!leads_) co_return metadata_refusal(MetadataErrc::session_lost);
  const auto repaired = co_await repair_if_needed();
  if (!repaired) co_return metadata_refusal(repaired.error());
  co_return Status();
}

// Create: state nodes, then /topics/<name>, then the logs, then the image (MET-2)

asio::awaitable<TopicResult> Controller::Impl::create(protocol::NewTopic topic,
                                                      bool validate_only) {
  TopicResult result;
  result.name = topic.name;
  result.status = check_new_topic(config_, topic);
  if (!result.status.ok()) co_return result;
  result.status = co_await ready_for_change();
  if (!result.status.ok()) co_return result;
  if (image()->find_topic(topic.name)) {
    result.status = status(WireError::topic_exists, fmt::format("topic \"{}\" exists", topic.name));
    co_return result;
  }
  if (const auto full = check_room(config_, topic, image()->partitions())) {
    result.status = *full;
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
    co_return metadata_refusal(MetadataErrc::unavailable);
  }
  const auto real = co_await nodes_.make_real(tree);
  if (!real) {
    if (real.error() == make_error_code(MetadataErrc::outcome_unknown)) {
      names_unsure_ = true;
      want_repair();
    } else {
      co_await sweep(tree.value.id);
    }
    co_return metadata_refusal(real.error());
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

asio::awaitable<TopicResult> Controller::Impl::remove(std::string name) {
  TopicResult result;
  result.name = name;
  result.status = co_await ready_for_change();
  if (!result.status.ok()) co_return result;
  const auto topic = image()->find_topic(name);
  if (!topic) {
    result.status = status(WireError::unknown_topic, unknown_topic_text(*image(), name));
    co_return result;
  }
  auto tree = co_await load_topic_node(store_, name);
  if (!tree) {
    result.status = metadata_refusal(tree.error());
    co_return result;
  }
  const auto moved = co_await nodes_.move_to_deleting(std::move(*tree));
  if (!moved) {
    if (moved.error() == make_error_code(MetadataErrc::outcome_unknown)) {
      names_unsure_ = true;
      want_repair();
    }
    result.status = metadata_refusal(moved.error());
    co_return result;
  }
  result.id = topic->id;
  result.partitions = static_cast<std::int32_t>(topic->partitions.size());
  deleting_.insert(topic->id);
  publish(image()->without_topic(name, next_version()));
  co_await replicas_.stop_topic(topic->id);
  finish_later(topic->id, std::move(name));
  co_return result;
}

void Controller::Impl::finish_later(base::Uuid topic, std::string name) {
  if (finishing_.insert(topic).second)
    tasks_.spawn("deleting a topic's logs", finish_beside(topic, std::move(name)));
}

/// Very many logs take long, and neither their caller nor other changes wait for that.
asio::awaitable<void> Controller::Impl::finish_beside(base::Uuid topic, std::string name) {
  const auto finished = co_await finish_delete(topic);
  finishing_.erase(topic);
  if (finished) base::log_info("controller", "topic {}: its logs are deleted", name);
  if (finished || stopping_) co_return;
  base::log_warning("controller", "topic {} is gone, its logs not yet: {}", name,
                    finished.error().message());
  if (postponed_.contains(topic)) co_return;
  want_repair();
}

asio::awaitable<Result<void>> Controller::Impl::finish_delete(base::Uuid topic) {
  const auto deleted = co_await replicas_.delete_topic(topic);
  if (!deleted && replicas_.waits_for_start(deleted.error())) postponed_.insert(topic);
  MQ_CO_TRY_VOID(deleted);
  MQ_CO_TRY_VOID(co_await nodes_.sweep_state(topic));
  MQ_CO_TRY_VOID(co_await nodes_.forget(topic));
  deleting_.erase(topic);
  co_return Result<void>();
}

}  // namespace mq::controller
