#pragma once

#include <mutex>
#include <optional>
#include <set>

#include "base/wait_list.h"
#include "controller/change_queue.h"
#include "controller/cluster_tree.h"
#include "controller/controller.h"
#include "controller/node_writer.h"
#include "controller/producer_ids.h"
#include "controller/topic_nodes.h"
#include "protocol/status.h"

namespace mq::controller {

using metadata::MetadataErrc;
using protocol::Status;
using protocol::TopicResult;
using protocol::WireError;

/// A change that somebody may still wait for.
struct Change {
  explicit Change(base::Runtime& runtime) : done(runtime) {}
  std::optional<TopicResult> result;
  base::WaitList done;
};
using ChangePtr = std::shared_ptr<Change>;  // of the change and of its caller, who may give up

/// What a controller is inside; the files are named by what they do: controller_changes.cc makes
/// and deletes topics, controller_repair.cc finishes what was left half done, controller_session.cc
/// takes part again after a lost session.
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
        producer_ids_(store, home, config_.shared_store),
        queue_(home),
        images_(home),
        stopped_(home),
        tasks_(home) {}

  asio::awaitable<Result<void>> start();
  asio::awaitable<Result<void>> finish_half_done();
  void allow_changes() noexcept { recovered_ = true; }
  asio::awaitable<Result<void>> raise_leader_epochs(std::vector<LogEpoch> logs);
  asio::awaitable<TopicResult> create_topic(protocol::NewTopic topic, bool validate_only,
                                            base::TimePoint deadline);
  asio::awaitable<TopicResult> delete_topic(std::string name, base::TimePoint deadline);
  asio::awaitable<ImagePtr> wait_for_image(std::uint64_t newer_than, base::TimePoint deadline);
  asio::awaitable<void> stop();

  asio::awaitable<Result<std::int64_t>> next_producer_id();
  [[nodiscard]] std::vector<base::Uuid> topics_being_deleted() const {
    return {deleting_.begin(), deleting_.end()};
  }
  [[nodiscard]] ImagePtr image() const {
    const std::lock_guard lock(image_mutex_);
    return image_;
  }
  [[nodiscard]] std::string metadata_trouble() const { return store_.trouble(); }
  [[nodiscard]] std::size_t deletions_under_way() const noexcept { return finishing_.size(); }
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

  /// Not ok: no change can begin, and why.
  asio::awaitable<Status> ready_for_change();
  asio::awaitable<TopicResult> create(protocol::NewTopic topic, bool validate_only);
  asio::awaitable<Status> make(TopicTree& tree);
  asio::awaitable<Status> open(const TopicTree& tree);
  asio::awaitable<void> take_back(TopicTree tree);
  asio::awaitable<void> sweep(base::Uuid topic);
  asio::awaitable<TopicResult> remove(std::string name);
  asio::awaitable<Result<void>> finish_delete(base::Uuid topic);
  void finish_later(base::Uuid topic, std::string name);
  asio::awaitable<void> finish_beside(base::Uuid topic, std::string name);

  asio::awaitable<Result<void>> claim();
  void on_session_lost();
  asio::awaitable<void> keep_registering();
  asio::awaitable<Result<void>> register_once();
  [[nodiscard]] Status metadata_refusal(const Error& error) const;

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
  std::set<base::Uuid> deleting_;   ///< stand under /deleting
  std::set<base::Uuid> finishing_;  ///< of them: finish_beside() is under way
  std::set<base::Uuid> postponed_;  ///< of them: nothing can be done before the next start

  mutable std::mutex image_mutex_;  // guards image_, which any thread may read
  ImagePtr image_;
  std::vector<std::function<void(const ImagePtr&)>> listeners_;

  ChangeQueue queue_;
  std::size_t changes_ = 0;    ///< asked for and not ended
  bool repair_needed_ = true;  ///< the store may hold something half done
  bool names_unsure_ = false;  ///< a topic may have become real or gone without our knowing
  bool retrying_ = false;
  bool leads_ = true;  ///< the session in use holds the leadership
  bool registering_ = false;
  bool recovered_ = false;  ///< finish_half_done() came: the disks are open
  bool stopping_ = false;
  base::WaitList images_;
  base::WaitList stopped_;
  base::TaskGroup tasks_;
};

}  // namespace mq::controller
