#include "controller/controller.h"

#include "base/log.h"
#include "controller/controller_impl.h"
#include "controller/error.h"
#include "controller/status.h"

namespace mq::controller {
namespace {

constexpr std::size_t kDamageShown = 100;
/// No cluster has seen more elections; a broker that says so is not believed.
constexpr std::int64_t kEpochsLostMax = 10'000'000;

}  // namespace

Controller::Impl::Impl(ControllerConfig config, metadata::MetadataStore& store, base::Runtime& home,
                       std::int32_t controller_epoch, std::function<void()> deposed)
    : config_(std::move(config)),
      store_(store),
      home_(home),
      deposed_(std::move(deposed)),
      writer_(store, home, controller_epoch, [this] { on_deposed(); }),
      topic_writer_(store, writer_),
      members_(store),
      images_(home, controller_epoch, config_.topic_defaults),
      balance_(config_.balance),
      admin_(home),
      writes_(home),
      progress_(home),
      members_wake_(home),
      resigned_(home),
      idle_(home),
      tasks_(home) {}

asio::awaitable<Result<void>> Controller::Impl::load() {
  const Call call(*this);
  const auto turn = co_await writes_.wait_for_turn();
  const auto refreshed = co_await members_.refresh();
  if (!refreshed) co_return refreshed.error();
  std::set<base::Uuid> touched;
  MQ_CO_TRY_VOID(co_await read_tree(touched));
  if (resigned()) co_return make_error_code(ControllerErrc::not_controller);
  MQ_CO_TRY_VOID(co_await write_states(due_changes()));
  if (resigned()) co_return make_error_code(ControllerErrc::not_controller);
  if (!image()) publish({});
  // An earlier controller may have been broken off while it added partitions.
  for (const auto& [id, tree] : topics_) leftovers_.insert(id);
  tasks_.spawn("following the brokers", follow_members());
  tasks_.spawn("looking at damaged metadata", follow_damage());
  tasks_.spawn("looking after partitions without a leader", follow_leaderless());
  tasks_.spawn("listening for the brokers", follow_audience());
  if (config_.balance.on) tasks_.spawn("balancing leaders", follow_balance());
  want_repair();
  look_for_all();
  co_return Result<void>();
}

// The image: what topics_ and members_ say, which the store has confirmed (CTL-2)

void Controller::Impl::publish(const std::set<base::Uuid>& touched) {
  metadata::ImageChange change;
  change.brokers = members_.infos();
  change.deleting = deleting();
  change.damage = damage();
  const auto before = image();
  std::vector<base::Uuid> ids;
  if (before) {
    ids.assign(touched.begin(), touched.end());
  } else {
    for (const auto& [id, tree] : topics_) ids.push_back(id);
  }
  for (const auto& id : ids) {
    if (const auto tree = topics_.find(id); tree != topics_.end())
      change.topics.push_back(describe(tree->second));
    else
      change.removed.push_back(id);
  }
  const ClusterImage empty(config_.cluster_id, config_.broker, {}, {}, 0);
  images_.publish((before ? *before : empty).with(std::move(change), images_.next_version()),
                  std::move(ids));
}

TopicPtr Controller::Impl::describe(const TopicTree& tree) const {
  auto info = to_info(tree, config_.topic_defaults);
  if (const auto hidden = hidden_from_.find(tree.value.id); hidden != hidden_from_.end())
    info.hidden_from = hidden->second;
  return std::make_shared<const TopicInfo>(std::move(info));
}

std::vector<metadata::DeletingTopic> Controller::Impl::deleting() const {
  std::vector<metadata::DeletingTopic> topics;
  for (const auto& [id, deletion] : deletions_) {
    auto& topic = topics.emplace_back();
    topic.id = id;
    topic.brokers.assign(deletion.waiting.begin(), deletion.waiting.end());
  }
  return topics;
}

std::vector<metadata::DamagedNode> Controller::Impl::damage() const {
  std::vector<metadata::DamagedNode> nodes;
  for (const auto& one : damage_) {
    if (nodes.size() == kDamageShown) break;
    nodes.push_back(one.node);
  }
  if (nodes.size() < damage_.size()) {
    nodes.back() = {"", "",
                    fmt::format("{} more nodes of the metadata are damaged; the controller's log "
                                "names them",
                                damage_.size() + 1 - nodes.size())};
  }
  return nodes;
}

// What brokers ask

asio::awaitable<protocol::PullImageResponse> Controller::Impl::pull(
    protocol::PullImageRequest request, base::TimePoint deadline) {
  const Call call(*this);
  protocol::PullImageResponse response;
  const model::BrokerId broker(request.broker);
  const auto arrived = home_.now();
  auto checked = co_await check_registration(broker, model::BrokerEpoch(request.broker_epoch));
  if (!checked.ok()) {
    response.envelope.status = std::move(checked);
    co_return response;
  }
  clock_.told(broker, request.wall_clock_ms, arrived);
  note_image_of(broker, request.have_version);
  if (resigned()) {
    response.envelope.status = gone();
    co_return response;
  }
  // A version of another controller says nothing about this one's images.
  if (request.have_version >> 32 == images_.next_version() >> 32) {
    members_.applied(broker, request.have_version);
    progress_.notify_all();
  }
  co_await images_.wait_for_newer(request.have_version, deadline);
  if (resigned()) {
    response.envelope.status = gone();
    co_return response;
  }
  response = images_.answer(request.have_version);
  response.envelope.metadata_version = response.version;
  response.envelope.status.broker = config_.broker.value();
  response.cluster_time = cluster_time();
  response.held_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(home_.now() - arrived).count();
  co_return response;
}

protocol::ClusterTime Controller::Impl::cluster_time() const {
  std::set<model::BrokerId> live;
  const auto all = members_.infos();
  for (const auto& info : all) {
    if (info.alive) live.insert(info.id);
  }
  return clock_.time(live, all.size(), home_.now());
}

/// Where a broker has an image of a later controller than this one, nobody would take what this one
/// says: either another one has been elected, or the number of the epoch was lost.
void Controller::Impl::note_image_of(model::BrokerId broker, std::uint64_t version) {
  const auto theirs = static_cast<std::int64_t>(version >> 32) - 1;
  if (theirs <= controller_epoch() || theirs > controller_epoch() + kEpochsLostMax) return;
  newest_epoch_seen_ = static_cast<std::int32_t>(theirs);
  base::log_warning("controller",
                    "broker {} has an image of controller epoch {}, this one is of {}", broker,
                    theirs, controller_epoch());
  on_deposed();
}

asio::awaitable<protocol::ReportReplicasResponse> Controller::Impl::report(
    protocol::ReportReplicasRequest request) {
  const Call call(*this);
  protocol::ReportReplicasResponse response;
  const model::BrokerId broker(request.broker);
  const model::BrokerEpoch epoch(request.broker_epoch);
  const auto turn = co_await writes_for(broker, epoch, response.envelope);
  if (!response.envelope.status.ok()) co_return response;
  std::vector<StateChange> changes;
  std::set<model::PartitionId> reported;
  for (const auto& replica : request.replicas) {
    if (!reported.insert(replica.partition).second) continue;
    if (auto change = change_after(broker, epoch, replica)) changes.push_back(std::move(*change));
  }
  const auto written = co_await write_states(std::move(changes));
  if (!written) {
    response.envelope.status = refusal(written.error());
    co_return response;
  }
  for (const auto& replica : request.replicas) note_opened(broker, replica);
  note_deleted(broker, request.deleted);
  progress_.notify_all();
  response.envelope.metadata_version = image()->version();
  response.envelope.status.broker = config_.broker.value();
  co_return response;
}

// The end

void Controller::Impl::on_deposed() {
  resign();
  if (deposed_) deposed_();
}

void Controller::Impl::resign() {
  writer_.resign();
  images_.close();
  progress_.notify_all();
  members_wake_.notify_all();
  resigned_.notify_all();
}

asio::awaitable<void> Controller::Impl::stop() {
  resign();
  co_await tasks_.wait();
  while (calls_ > 0) (void)co_await idle_.wait();
}

Status Controller::Impl::refusal(const Error& error) const {
  auto refused = metadata_status(error, config_.broker);
  if (refused.error() == WireError::not_controller) return refused;
  const auto trouble = store_.trouble();
  if (!trouble.empty()) refused.text += "; " + trouble;
  return refused;
}

// The face

Controller::Controller(ControllerConfig config, metadata::MetadataStore& store, base::Runtime& home,
                       std::int32_t controller_epoch, std::function<void()> deposed)
    : impl_(std::make_unique<Impl>(std::move(config), store, home, controller_epoch,
                                   std::move(deposed))) {}

Controller::~Controller() = default;

asio::awaitable<Result<void>> Controller::load() { return impl_->load(); }
asio::awaitable<TopicResult> Controller::create_topic(protocol::NewTopic topic, bool validate_only,
                                                      base::TimePoint deadline) {
  return impl_->create_topic(std::move(topic), validate_only, deadline);
}
asio::awaitable<TopicResult> Controller::delete_topic(std::string name, base::TimePoint deadline) {
  return impl_->delete_topic(std::move(name), deadline);
}
asio::awaitable<TopicResult> Controller::alter_topic(protocol::AlterTopic change,
                                                     base::TimePoint deadline) {
  return impl_->alter_topic(std::move(change), deadline);
}
asio::awaitable<TopicResult> Controller::add_partitions(std::string name, std::int32_t total,
                                                        base::TimePoint deadline) {
  return impl_->add_partitions(std::move(name), total, deadline);
}
asio::awaitable<protocol::PullImageResponse> Controller::pull(protocol::PullImageRequest request,
                                                              base::TimePoint deadline) {
  return impl_->pull(std::move(request), deadline);
}
asio::awaitable<protocol::ReportReplicasResponse> Controller::report(
    protocol::ReportReplicasRequest request, base::TimePoint) {
  return impl_->report(std::move(request));
}
asio::awaitable<protocol::AlterIsrResponse> Controller::alter_isr(protocol::AlterIsrRequest request,
                                                                  base::TimePoint) {
  return impl_->alter_isr(std::move(request));
}
asio::awaitable<protocol::ControlPartitionsResponse> Controller::control(
    protocol::ControlPartitionsRequest request, base::TimePoint) {
  return impl_->control(std::move(request));
}
asio::awaitable<protocol::LeaveBrokerResponse> Controller::leave(
    protocol::LeaveBrokerRequest request, base::TimePoint) {
  return impl_->leave(std::move(request));
}
void Controller::lost_connection(model::BrokerId broker, model::BrokerEpoch epoch) {
  impl_->lost_connection(broker, epoch);
}
ImagePtr Controller::image() const { return impl_->image(); }
std::int32_t Controller::controller_epoch() const noexcept { return impl_->controller_epoch(); }
std::int32_t Controller::newest_epoch_seen() const noexcept { return impl_->newest_epoch_seen(); }
void Controller::resign() { impl_->resign(); }
bool Controller::unheard() const noexcept { return impl_->unheard(); }
bool Controller::resigned() const noexcept { return impl_->resigned(); }
asio::awaitable<void> Controller::stop() { return impl_->stop(); }

}  // namespace mq::controller
