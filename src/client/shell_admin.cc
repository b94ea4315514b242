#include <atomic>

#include "client/core/admin_core.h"
#include "client/core/error.h"
#include "client/shell_io_thread.h"
#include "client/shell_log.h"
#include "mq/admin.h"

namespace mq {
inline namespace v1 {

namespace {

Error closed_error() { return client::make_error(Errc::closed, "the admin client is closed"); }

std::map<TopicPartition, Result<ElectedLeader>> elected(
    const client::AdminCore::PerPartition& from) {
  std::map<TopicPartition, Result<ElectedLeader>> outcomes;
  for (const auto& [name, outcome] : from) {
    if (outcome)
      outcomes.emplace(name, ElectedLeader{outcome->leader, outcome->changed});
    else
      outcomes.emplace(name, outcome.error());
  }
  return outcomes;
}

}  // namespace

/// The blocking shell around AdminCore.
struct Admin::Impl {
  explicit Impl(ClientConfig config) : core(io.runtime(), io.network(), std::move(config)) {}
  ~Impl() { close(); }

  void close() {
    if (closed.exchange(true)) return;
    io.call(client::done_after(core.stop()));
    io.stop();
  }

  client::AdminCore::PerPartition control(protocol::PartitionAction action,
                                          const std::vector<TopicPartition>& partitions,
                                          std::int32_t broker) {
    if (auto outcomes = io.call(core.control(action, partitions, broker)))
      return std::move(*outcomes);
    client::AdminCore::PerPartition none;
    for (const auto& partition : partitions) none.emplace(partition, closed_error());
    return none;
  }

  client::IoThread io;
  client::AdminCore core;
  std::atomic<bool> closed{false};
};

Result<Admin> Admin::create(ClientConfig config) {
  auto checked = client::check(config.validate());
  if (!checked) return checked.error();
  client::complete(config);
  auto impl = std::make_unique<Impl>(std::move(config));
  auto started = impl->io.call(impl->core.start());
  if (started && !*started) return started->error();
  return Admin(std::move(impl));
}

Admin::Admin(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Admin::Admin(Admin&&) noexcept = default;
Admin& Admin::operator=(Admin&&) noexcept = default;
Admin::~Admin() = default;

PerItem<CreatedTopic> Admin::create_topics(const std::vector<NewTopic>& topics, bool dry_run) {
  if (auto outcomes = impl_->io.call(impl_->core.create_topics(topics, dry_run)))
    return std::move(*outcomes);
  PerItem<CreatedTopic> closed;
  for (const NewTopic& topic : topics) closed.emplace(topic.name, closed_error());
  return closed;
}

PerItem<void> Admin::delete_topics(const std::vector<std::string>& names) {
  if (auto outcomes = impl_->io.call(impl_->core.delete_topics(names))) return std::move(*outcomes);
  PerItem<void> closed;
  for (const std::string& name : names) closed.emplace(name, closed_error());
  return closed;
}

PerItem<void> Admin::alter_topics(const std::map<std::string, TopicChange>& changes) {
  if (auto outcomes = impl_->io.call(impl_->core.alter_topics(changes)))
    return std::move(*outcomes);
  PerItem<void> closed;
  for (const auto& [name, change] : changes) closed.emplace(name, closed_error());
  return closed;
}

PerItem<std::int32_t> Admin::add_partitions(const std::map<std::string, std::int32_t>& totals) {
  if (auto outcomes = impl_->io.call(impl_->core.add_partitions(totals)))
    return std::move(*outcomes);
  PerItem<std::int32_t> closed;
  for (const auto& [name, total] : totals) closed.emplace(name, closed_error());
  return closed;
}

Result<std::vector<TopicSummary>> Admin::list_topics() {
  if (auto topics = impl_->io.call(impl_->core.list_topics())) return std::move(*topics);
  return closed_error();
}

PerItem<TopicDescription> Admin::describe_topics(const std::vector<std::string>& names) {
  if (auto outcomes = impl_->io.call(impl_->core.describe_topics(names)))
    return std::move(*outcomes);
  PerItem<TopicDescription> closed;
  for (const std::string& name : names) closed.emplace(name, closed_error());
  return closed;
}

Result<std::vector<PartitionInfo>> Admin::list_partitions() {
  if (auto partitions = impl_->io.call(impl_->core.list_partitions()))
    return std::move(*partitions);
  return closed_error();
}

std::map<TopicPartition, Result<std::int64_t>> Admin::trim(
    const std::map<TopicPartition, std::int64_t>& to) {
  if (auto outcomes = impl_->io.call(impl_->core.trim(to))) return std::move(*outcomes);
  std::map<TopicPartition, Result<std::int64_t>> closed;
  for (const auto& [partition, offset] : to) closed.emplace(partition, closed_error());
  return closed;
}

std::map<TopicPartition, Result<ElectedLeader>> Admin::elect_leaders(
    const std::vector<TopicPartition>& partitions, std::int32_t broker) {
  return elected(impl_->control(protocol::PartitionAction::elect_leader, partitions, broker));
}

std::map<TopicPartition, Result<ElectedLeader>> Admin::elect_with_loss(
    const std::vector<TopicPartition>& partitions, std::int32_t broker, bool dry_run) {
  const auto action =
      dry_run ? protocol::PartitionAction::check_loss : protocol::PartitionAction::elect_with_loss;
  return elected(impl_->control(action, partitions, broker));
}

std::map<TopicPartition, Result<bool>> Admin::acknowledge_losses(
    const std::vector<TopicPartition>& partitions) {
  std::map<TopicPartition, Result<bool>> outcomes;
  const auto all = impl_->control(protocol::PartitionAction::acknowledge_loss, partitions, -1);
  for (const auto& [name, outcome] : all)
    outcomes.emplace(name, outcome ? Result<bool>(outcome->changed) : outcome.error());
  return outcomes;
}

Result<ClusterDescription> Admin::describe_cluster() {
  if (auto cluster = impl_->io.call(impl_->core.describe_cluster())) return std::move(*cluster);
  return closed_error();
}

std::map<std::int32_t, Result<BrokerDescription>> Admin::describe_brokers() {
  if (auto outcomes = impl_->io.call(impl_->core.describe_brokers())) return std::move(*outcomes);
  std::map<std::int32_t, Result<BrokerDescription>> closed;
  closed.emplace(-1, closed_error());
  return closed;
}

std::map<std::int32_t, Result<std::vector<ConfigSetting>>> Admin::describe_configs() {
  if (auto outcomes = impl_->io.call(impl_->core.describe_configs())) return std::move(*outcomes);
  std::map<std::int32_t, Result<std::vector<ConfigSetting>>> closed;
  closed.emplace(-1, closed_error());
  return closed;
}

Result<void> Admin::close(Duration) {
  impl_->close();
  return {};
}

}  // namespace v1
}  // namespace mq
