#pragma once

#include <map>
#include <optional>
#include <set>

#include "controller/change_queue.h"
#include "controller/cluster_clock.h"
#include "controller/controller.h"
#include "controller/elections.h"
#include "controller/fenced_writer.h"
#include "controller/image_log.h"
#include "controller/leader_balance.h"
#include "controller/members.h"
#include "controller/ring.h"
#include "controller/topic_writer.h"
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
using ChangePtr = std::shared_ptr<Change>;  // of it and of its caller

/// New replicas that their brokers have not reported yet.
struct Opening {
  /// By partition and broker: the registration under which it is to report.
  std::map<std::pair<std::int32_t, model::BrokerId>, model::BrokerEpoch> missing;
  std::optional<Status> failure;  ///< the first one that was reported
  bool topic_gone = false;        ///< deleted meanwhile
};
using OpeningPtr = std::shared_ptr<Opening>;  // of the change and of openings_

/// A topic under /deleting.
struct Deletion {
  std::set<model::BrokerId> waiting;  ///< brokers that have not reported its files as gone
  bool finishing = false;
};

/// What a controller is inside; the files are named by what they do: controller_changes.cc makes,
/// alters and deletes topics, controller_members.cc follows brokers that come and go and elects
/// leaders, controller_repair.cc brings this memory and the store together again.
///
/// Two queues keep the order: changes of topics run one at a time under `admin_`, and whatever
/// writes partition state under `writes_`, so that an election waits for one multi of a large
/// change at most. Who needs both takes `admin_` first.
class Controller::Impl {
 public:
  Impl(ControllerConfig config, metadata::MetadataStore& store, base::Runtime& home,
       std::int32_t controller_epoch, std::function<void()> deposed);

  asio::awaitable<Result<void>> load();
  asio::awaitable<TopicResult> create_topic(protocol::NewTopic topic, bool validate_only,
                                            base::TimePoint deadline);
  asio::awaitable<TopicResult> delete_topic(std::string name, base::TimePoint deadline);
  asio::awaitable<TopicResult> alter_topic(protocol::AlterTopic change, base::TimePoint deadline);
  asio::awaitable<TopicResult> add_partitions(std::string name, std::int32_t total,
                                              base::TimePoint deadline);
  asio::awaitable<protocol::PullImageResponse> pull(protocol::PullImageRequest request,
                                                    base::TimePoint deadline);
  asio::awaitable<protocol::ReportReplicasResponse> report(protocol::ReportReplicasRequest request);
  asio::awaitable<protocol::AlterIsrResponse> alter_isr(protocol::AlterIsrRequest request);
  asio::awaitable<protocol::ControlPartitionsResponse> control(
      protocol::ControlPartitionsRequest request);
  asio::awaitable<protocol::LeaveBrokerResponse> leave(protocol::LeaveBrokerRequest request);
  void lost_connection(model::BrokerId broker, model::BrokerEpoch epoch);

  [[nodiscard]] ImagePtr image() const { return images_.image(); }
  [[nodiscard]] std::int32_t controller_epoch() const noexcept {
    return writer_.controller_epoch();
  }
  [[nodiscard]] std::int32_t newest_epoch_seen() const noexcept { return newest_epoch_seen_; }
  [[nodiscard]] bool unheard() const noexcept { return unheard_; }
  void resign();
  [[nodiscard]] bool resigned() const noexcept { return writer_.resigned(); }
  asio::awaitable<void> stop();

 private:
  /// What a step under the admin queue leaves to be waited for.
  struct Made {
    TopicResult result;
    OpeningPtr opening;          ///< null: nothing to wait for
    std::int32_t first_new = 0;  ///< partition from which on they are new; 0: the whole topic is
    std::uint64_t version = 0;   ///< to be in force on the brokers of the topic; 0: nothing
    std::set<model::BrokerId> brokers;
  };
  /// Counts a call from outside for as long as it lasts, so that stop() waits for it.
  class Call {
   public:
    explicit Call(Impl& impl) : impl_(impl) { ++impl_.calls_; }
    ~Call() {
      if (--impl_.calls_ == 0) impl_.idle_.notify_all();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    Impl& impl_;
  };

  // Changes
  asio::awaitable<TopicResult> outcome_of(ChangePtr change, std::string name,
                                          base::TimePoint deadline);
  static void end(const ChangePtr& change, TopicResult result);
  asio::awaitable<void> run_create(ChangePtr change, protocol::NewTopic topic, bool validate_only);
  asio::awaitable<void> run_delete(ChangePtr change, std::string name);
  asio::awaitable<void> run_alter(ChangePtr change, protocol::AlterTopic alter);
  asio::awaitable<void> run_add(ChangePtr change, std::string name, std::int32_t total);
  asio::awaitable<ChangeQueue::Turn> turn_for(std::string name);
  asio::awaitable<Status> ready_for_change();
  asio::awaitable<Status> ready_for_change_of(std::string name);
  asio::awaitable<Made> create(protocol::NewTopic topic, bool validate_only);
  asio::awaitable<Made> remove(std::string name);
  asio::awaitable<Made> alter(protocol::AlterTopic change);
  asio::awaitable<Status> put_min_isr_in_force(base::Uuid id);
  asio::awaitable<Made> add(std::string name, std::int32_t total);
  asio::awaitable<Status> create_nodes(TopicTree& tree);
  asio::awaitable<Status> add_nodes(const TopicTree& before, TopicTree& tree);
  /// Chooses brokers for each partition from `first` on and gives it its first state.
  Status place(TopicTree& tree, std::size_t first, std::size_t copies) const;
  /// Of brokers that live, or of those that are away: what they have, for the ring.
  [[nodiscard]] std::vector<Ring::Broker> loads(bool alive) const;
  OpeningPtr expect_opening(const TopicTree& tree, std::size_t first);
  asio::awaitable<void> wait_until_open(OpeningPtr opening);
  asio::awaitable<void> wait_until_applied(std::uint64_t version,
                                           std::set<model::BrokerId> brokers);
  asio::awaitable<TopicResult> opened(Made made);
  /// False: it is, or may be, still there.
  asio::awaitable<bool> take_back(base::Uuid topic, std::int32_t first_new);
  asio::awaitable<bool> take_back_topic(TopicTree tree);
  asio::awaitable<bool> take_back_partitions(TopicTree tree, std::int32_t first_new);
  void forget_topic(const TopicTree& tree);
  [[nodiscard]] Status damaged(std::string_view name) const;
  [[nodiscard]] const TopicTree* find_topic(std::string_view name) const;

  // Brokers and leaders
  asio::awaitable<void> follow_members();
  asio::awaitable<Result<void>> watch_members();
  asio::awaitable<Result<void>> update_members();
  /// What brokers that came or went, and settings that changed, mean for partitions.
  [[nodiscard]] std::vector<StateChange> due_changes() const;
  void add_due_changes(const TopicTree& tree, std::vector<StateChange>& changes) const;
  /// Holds a turn of writes_. What was confirmed is published, also when the rest fails.
  asio::awaitable<std::vector<Status>> write_each(std::vector<StateChange> changes);
  asio::awaitable<Result<void>> write_states(std::vector<StateChange> changes);
  void forget_remains(const model::PartitionId& id, const metadata::PartitionStateValue& state);
  void confirm(const std::vector<StateChange>& changes, std::size_t first, std::size_t end,
               std::set<base::Uuid>& touched);
  /// Of writes_, for a broker that is registered under this epoch; `envelope` says why not.
  asio::awaitable<ChangeQueue::Turn> writes_for(model::BrokerId broker, model::BrokerEpoch epoch,
                                                protocol::ResponseEnvelope& envelope);
  /// Null: there is none.
  [[nodiscard]] const PartitionNode* find_partition(const model::PartitionId& id) const;
  /// Of a partition that is there.
  [[nodiscard]] const std::vector<model::BrokerId>& replicas_of(const model::PartitionId& id) const;
  asio::awaitable<bool> lost_a_member(std::vector<StateChange> changes, Error error);
  [[nodiscard]] std::optional<StateChange> change_after(const model::IsrMember& leader,
                                                        const protocol::IsrProposal& proposal,
                                                        Status& refused) const;
  [[nodiscard]] std::optional<StateChange> change_after(model::BrokerId broker,
                                                        model::BrokerEpoch epoch,
                                                        const protocol::ReplicaReport& report);
  [[nodiscard]] std::optional<StateChange> change_after(
      const protocol::ControlPartitionsRequest& request, const model::PartitionId& partition,
      Status& refused);
  bool name_what_it_still_leads(model::BrokerId broker,
                                protocol::LeaveBrokerResponse& response) const;
  void note_opened(model::BrokerId broker, const protocol::ReplicaReport& report);
  void note_deleted(model::BrokerId broker, const std::vector<base::Uuid>& topics);
  void forget_lost_openings();
  asio::awaitable<Status> check_registration(model::BrokerId broker, model::BrokerEpoch epoch);

  // Elections of last resort
  asio::awaitable<void> follow_leaderless();
  void note_leaderless();
  asio::awaitable<void> elect_unclean();

  // Balance
  asio::awaitable<void> follow_balance();
  [[nodiscard]] std::vector<LeaderBalance::Seen> leaders_now() const;
  asio::awaitable<void> balance_leaders();

  // Processes that are dead
  void look_for_all();
  void look_for(model::BrokerId broker, model::BrokerEpoch epoch, int refusals);
  asio::awaitable<void> find_out_about(model::BrokerId broker, model::BrokerEpoch epoch,
                                       int refusals);
  asio::awaitable<bool> is_dead(model::BrokerId broker, model::BrokerEpoch epoch, int refusals);
  asio::awaitable<void> end_registration(model::BrokerId broker, model::BrokerEpoch epoch);
  [[nodiscard]] bool is_spared(model::BrokerId broker) const;
  void note_returned();

  // Repair
  asio::awaitable<Result<void>> read_tree(std::set<base::Uuid>& touched);
  void take_damage(std::vector<Damage> damage);
  void begin_anew();
  asio::awaitable<void> follow_damage();
  asio::awaitable<Result<void>> reload();
  asio::awaitable<Result<void>> sweep_orphans();
  void finish_deletions();
  asio::awaitable<void> finish_deletion(base::Uuid topic);
  asio::awaitable<Result<void>> delete_nodes(base::Uuid topic);
  /// The store may be different from what is known here: no write before it was read again.
  void doubt(std::string_view why);
  void doubt_unless_as_before(const Error& error);
  void want_repair();
  asio::awaitable<void> keep_repairing();
  asio::awaitable<Result<void>> repair();

  // Image
  void publish(const std::set<base::Uuid>& touched);
  [[nodiscard]] TopicPtr describe(const TopicTree& tree) const;
  [[nodiscard]] std::vector<metadata::DeletingTopic> deleting() const;
  [[nodiscard]] std::vector<metadata::DamagedNode> damage() const;

  [[nodiscard]] protocol::ClusterTime cluster_time() const;
  asio::awaitable<void> follow_audience();
  [[nodiscard]] bool hears_somebody(base::TimePoint began) const;
  asio::awaitable<bool> reaches_somebody();
  void note_failure(const model::IsrMember& member, const protocol::ReplicaReport& report);
  void note_damage(model::BrokerId broker, const protocol::ReplicaReport& report);
  [[nodiscard]] std::vector<model::BrokerId> damaged_alike(
      const protocol::ReplicaReport& report) const;
  [[nodiscard]] std::vector<model::BrokerId> damaged_of(const model::PartitionId& partition) const;
  [[nodiscard]] std::string useless_because(const model::PartitionId& partition,
                                            model::BrokerId broker) const;
  [[nodiscard]] std::optional<model::IsrMember> failed_of(
      const model::PartitionId& partition, const std::vector<model::IsrMember>& members) const;
  void note_image_of(model::BrokerId broker, std::uint64_t version);
  void on_deposed();
  [[nodiscard]] Status status(WireError error, std::string text) const {
    return Status::of(error, std::move(text), config_.broker.value());
  }
  [[nodiscard]] Status refusal(const Error& error) const;
  [[nodiscard]] Status gone() const {
    return status(WireError::not_controller, "this broker is not the controller any more");
  }

  ControllerConfig config_;
  metadata::MetadataStore& store_;
  base::Runtime& home_;
  std::function<void()> deposed_;
  FencedWriter writer_;
  TopicWriter topic_writer_;
  Members members_;
  ImageLog images_;
  LeaderBalance balance_;
  ClusterClock clock_;

  std::map<base::Uuid, TopicTree> topics_;              ///< as the store has confirmed them
  std::map<std::string, base::Uuid, std::less<>> ids_;  ///< of topics_, by name
  std::map<base::Uuid, Deletion> deletions_;
  std::map<base::Uuid, OpeningPtr> openings_;
  /// Made by this controller, and no broker has opened a replica of it yet: nothing is in them.
  std::set<model::PartitionId> unopened_;
  /// What was reported of partitions while nobody led them.
  std::map<model::PartitionId, std::vector<Remains>> remains_;
  /// Who said of a replica that it has failed, and not yet that it is open again.
  std::map<model::PartitionId, std::vector<model::IsrMember>> failed_;
  /// And why, of those that no election can mend: their disk failed, or the log is a newer mq's.
  std::map<model::PartitionId, std::map<model::BrokerId, std::string>> useless_;
  /// Whose log cannot be read in places, though it is served.
  std::map<model::PartitionId, std::map<model::BrokerId, std::vector<model::DamagedPlace>>>
      damaged_;
  std::map<model::PartitionId, base::TimePoint> leaderless_since_;  ///< of topics that give up
  std::map<base::Uuid, std::int32_t> hidden_from_;
  std::map<model::BrokerId, base::TimePoint> heard_;  ///< when each last asked for anything
  /// And under which registration to look once more: its connection has ended meanwhile.
  std::map<model::BrokerId, std::optional<model::BrokerEpoch>> looked_for_;
  /// Incarnations, and whether one was heard of again; that is told once, and it is never taken for
  /// dead again.
  std::map<base::Uuid, bool> taken_for_dead_;
  std::vector<Damage> damage_;
  bool complete_ = true;            ///< false: there may be topics that are not in topics_
  std::set<base::Uuid> leftovers_;  ///< topics with state nodes of partitions that they do not name

  ChangeQueue admin_;
  ChangeQueue writes_;
  std::size_t calls_ = 0;
  std::int32_t newest_epoch_seen_ = -1;
  bool unheard_ = false;
  bool doubtful_ = false;      ///< a write may have taken effect without our knowing
  bool repair_needed_ = true;  ///< the store may hold something half done
  bool repairing_ = false;
  bool leaders_due_ = false;  ///< brokers changed, and what follows for leaders is not stored
  bool members_changed_ = false;
  bool watching_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // of callbacks that come later
  base::WaitList progress_;  // brokers' pulls and reports, and brokers that come or go
  base::WaitList members_wake_;
  base::WaitList resigned_;
  base::WaitList idle_;
  base::TaskGroup tasks_;
};

}  // namespace mq::controller
