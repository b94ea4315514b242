#include "client/core/admin_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "client/core/admin_items.h"
#include "client/core/error.h"
#include "client/core/request.h"
#include "model/topic_settings.h"

namespace mq::client {
namespace {

using protocol::ApiKey;

constexpr std::chrono::milliseconds kPause{50};
/// So long a controller may take to be connected to before the metadata is looked at again.
constexpr std::chrono::milliseconds kConnectAtOnce{2000};

void refuse_unsendable_new(std::vector<NewTopic>& topics, PerItem<CreatedTopic>& outcomes) {
  std::erase_if(topics, [&](const NewTopic& topic) {
    if (sendable(topic.name)) return false;
    const auto rule = model::check_topic_name(topic.name);
    outcomes.emplace(topic.name,
                     make_error(Errc::invalid_topic_name,
                                fmt::format("topic \"{}\": {}", base::printable(topic.name, 260),
                                            rule.value_or("the name cannot be sent"))));
    return true;
  });
}

/// Nothing was done about this item, and soon it may be: another broker is the controller, or this
/// one has just started and still looks at its logs.
bool ask_again(const protocol::Status& status) {
  return status.error() == protocol::WireError::not_controller ||
         status.error() == protocol::WireError::partition_recovering;
}

bool has_leaders(const protocol::TopicMetadata& topic) {
  return topic.status.ok() && !topic.partitions.empty() &&
         std::ranges::all_of(topic.partitions,
                             [](const auto& partition) { return partition.leader >= 0; });
}

/// Partitions that were there before have nothing to do with it: their broker may be away.
bool has_new_leaders(const protocol::TopicMetadata& topic, std::size_t total,
                     const std::set<std::int32_t>& before) {
  return topic.status.ok() && topic.partitions.size() >= total &&
         std::ranges::all_of(topic.partitions, [&](const auto& partition) {
           return partition.leader >= 0 || before.contains(partition.partition);
         });
}

std::vector<std::string> names_of_done(const PerItem<protocol::TopicResult>& changed) {
  std::vector<std::string> names;
  for (const auto& [name, result] : changed) {
    if (result) names.push_back(name);
  }
  return names;
}

/// Of changes that return nothing more.
void add_done(const PerItem<protocol::TopicResult>& changed, PerItem<void>& outcomes) {
  for (const auto& [name, result] : changed)
    outcomes.emplace(name, result ? Result<void>() : Result<void>(result.error()));
}

}  // namespace

AdminCore::AdminCore(base::Runtime& runtime, base::Network& network, ClientConfig config)
    : config_(std::move(config)), core_(runtime, network, config_) {}

base::TimePoint AdminCore::deadline() const {
  return core_.runtime.now() + config_.request_timeout;
}

/// A connection to whom the metadata names as the controller.
asio::awaitable<Result<ConnectionPtr>> AdminCore::controller(base::TimePoint deadline) {
  if (core_.metadata.controller() < 0) co_await refresh(deadline);
  const std::int32_t id = core_.metadata.controller();
  if (id < 0) {
    Error error = make_error(Errc::not_controller, "the cluster has no controller just now");
    error.hint = "try again; the brokers elect one";
    co_return error;
  }
  const base::TimePoint soon = std::min(deadline, core_.runtime.now() + kConnectAtOnce);
  co_return co_await core_.pool.get(id, soon);
}

asio::awaitable<void> AdminCore::refresh(base::TimePoint deadline) {
  protocol::MetadataRequest request;
  (void)co_await core_.metadata.fetch(std::move(request), deadline);
}

/// Again, until the deadline, after answers that say that nothing was applied and that time or
/// another controller mends it; whatever they say of that when the request may be repeated.
template <class Request, class Response>
asio::awaitable<Result<Response>> AdminCore::ask_controller(
    ApiKey api, Request request, base::Result<Response> (*decode)(base::Bytes),
    base::TimePoint deadline, Repeat repeat) {
  while (true) {
    auto connection = co_await controller(deadline);
    Error error;
    if (connection) {
      fill_envelope(request.envelope, config_, core_.runtime.now(), deadline);
      net::ClientRequest message;
      message.api = api;
      message.header = protocol::encode(request);
      message.deadline = deadline;
      auto answer = co_await exchange(*connection, std::move(message), decode);
      if (answer) co_return answer;
      error = answer.error();
    } else {
      error = connection.error();
      if (error.retriable && core_.metadata.controller() >= 0) {
        error.message = fmt::format(
            "the controller is broker {}, and it does not answer ({}); another one is elected as "
            "soon "
            "as its session in the metadata store has ended",
            core_.metadata.controller(), error.message);
        error.hint = "try again in a few seconds: mqctl status names the controller";
      }
    }
    const bool may_repeat = error.retriable && (!error.maybe_applied || repeat == Repeat::always);
    if (!may_repeat || core_.runtime.now() + kPause >= deadline) co_return error;
    co_await core_.runtime.sleep_for(kPause);
    co_await refresh(deadline);
  }
}

/// Items that were refused because the controller is elsewhere, or not ready, are asked for again;
/// the others keep their outcome.
template <class Item, class Request, class Response>
asio::awaitable<AdminCore::Changed> AdminCore::change(
    ApiKey api, std::vector<Item> items, std::function<Request(std::vector<Item>)> make,
    base::Result<Response> (*decode)(base::Bytes), base::TimePoint deadline, Repeat repeat) {
  Changed outcomes;
  while (!items.empty()) {
    Request request = make(items);
    const auto answer = co_await ask_controller(api, std::move(request), decode, deadline, repeat);
    if (!answer) {
      for (const Item& item : items) outcomes.emplace(name_of(item), answer.error());
      break;
    }
    core_.metadata.need_version(answer->envelope.metadata_version);
    const bool in_time = core_.runtime.now() + kPause < deadline;
    std::set<std::string> again;
    for (const protocol::TopicResult& result : answer->results) {
      if (result.status.ok()) {
        outcomes.emplace(result.name, result);
      } else if (in_time && ask_again(result.status)) {
        again.insert(result.name);
      } else {
        outcomes.emplace(result.name,
                         from_status(result.status, broker_place(core_, result.status.broker)));
      }
    }
    for (const Item& item : items) {
      const std::string& name = name_of(item);
      if (!outcomes.contains(name) && !again.contains(name)) outcomes.emplace(name, left_out(name));
    }
    std::erase_if(items, [&](const Item& item) { return !again.contains(name_of(item)); });
    if (items.empty()) break;
    co_await core_.runtime.sleep_for(kPause);
    co_await refresh(deadline);
  }
  co_return outcomes;
}

asio::awaitable<void> AdminCore::wait_until_known(std::vector<std::string> names, Wanted wanted,
                                                  base::TimePoint deadline) {
  std::uint64_t seen = 0;
  while (!names.empty() && core_.runtime.now() < deadline) {
    protocol::MetadataRequest request;
    request.topics = names;
    request.newer_than = seen;
    const auto answer = co_await core_.metadata.fetch(std::move(request), deadline);
    if (!answer) co_return;
    names.clear();
    for (const auto& topic : answer->topics) {
      if (!wanted(topic)) names.push_back(topic.name);
    }
    seen = std::max(seen, answer->envelope.metadata_version);
    if (names.empty()) core_.metadata.need_version(seen);
  }
}

asio::awaitable<PerItem<CreatedTopic>> AdminCore::create_topics(std::vector<NewTopic> topics,
                                                                bool dry_run) {
  const base::TimePoint until = deadline();
  PerItem<CreatedTopic> outcomes;
  refuse_unsendable_new(topics, outcomes);
  std::vector<protocol::NewTopic> items;
  for (const NewTopic& topic : topics) {
    protocol::NewTopic wanted;
    wanted.name = topic.name;
    wanted.partitions = topic.partitions;
    wanted.replicas = topic.replicas;
    wanted.min_isr = topic.min_isr;
    wanted.settings = topic.config;
    items.push_back(std::move(wanted));
  }
  std::function<protocol::CreateTopicsRequest(std::vector<protocol::NewTopic>)> make =
      [dry_run](std::vector<protocol::NewTopic> wanted) {
        protocol::CreateTopicsRequest request;
        request.topics = std::move(wanted);
        request.validate_only = dry_run;
        return request;
      };
  const auto changed = co_await change(ApiKey::create_topics, std::move(items), std::move(make),
                                       &protocol::decode_create_topics_response, until,
                                       dry_run ? Repeat::always : Repeat::unless_applied);
  for (const auto& [name, result] : changed) {
    if (!result) {
      outcomes.emplace(name, result.error());
      continue;
    }
    CreatedTopic topic;
    if (!dry_run) topic.id = result->id.hex();
    topic.partitions = result->partitions;
    outcomes.emplace(name, std::move(topic));
  }
  Wanted wanted = has_leaders;
  if (!dry_run) co_await wait_until_known(names_of_done(changed), std::move(wanted), until);
  co_return outcomes;
}

asio::awaitable<PerItem<void>> AdminCore::delete_topics(std::vector<std::string> names) {
  const base::TimePoint until = deadline();
  PerItem<void> outcomes;
  refuse_unsendable(names, outcomes);
  std::function<protocol::DeleteTopicsRequest(std::vector<std::string>)> make =
      [](std::vector<std::string> wanted) {
        protocol::DeleteTopicsRequest request;
        request.names = std::move(wanted);
        return request;
      };
  const auto changed =
      co_await change(ApiKey::delete_topics, std::move(names), std::move(make),
                      &protocol::decode_delete_topics_response, until, Repeat::unless_applied);
  add_done(changed, outcomes);
  Wanted wanted = [](const protocol::TopicMetadata& topic) {
    return topic.status.error() == protocol::WireError::unknown_topic;
  };
  co_await wait_until_known(names_of_done(changed), std::move(wanted), until);
  co_return outcomes;
}

/// Setting to a value twice is setting it once, so an unknown outcome is resolved by asking again;
/// the same goes for a number of partitions.
asio::awaitable<PerItem<void>> AdminCore::alter_topics(std::map<std::string, TopicChange> changes) {
  const base::TimePoint until = deadline();
  PerItem<void> outcomes;
  std::vector<protocol::AlterTopic> items;
  items.reserve(changes.size());
  for (auto& [name, wanted] : changes)
    items.push_back(protocol::AlterTopic{name, std::move(wanted.set), std::move(wanted.unset)});
  refuse_unsendable(items, outcomes);
  std::function<protocol::AlterTopicsRequest(std::vector<protocol::AlterTopic>)> make =
      [](std::vector<protocol::AlterTopic> wanted) {
        protocol::AlterTopicsRequest request;
        request.topics = std::move(wanted);
        return request;
      };
  const auto changed =
      co_await change(ApiKey::alter_topics, std::move(items), std::move(make),
                      &protocol::decode_alter_topics_response, until, Repeat::always);
  add_done(changed, outcomes);
  Wanted wanted = [](const protocol::TopicMetadata&) { return true; };  // the version says it
  co_await wait_until_known(names_of_done(changed), std::move(wanted), until);
  co_return outcomes;
}

/// The numbers that topics have now; nothing of one that could not be looked up.
asio::awaitable<std::map<std::string, std::set<std::int32_t>>> AdminCore::partitions_there(
    std::vector<std::string> names, base::TimePoint until) {
  protocol::MetadataRequest request;
  request.topics = std::move(names);
  const auto answer = co_await core_.metadata.fetch(std::move(request), until);
  std::map<std::string, std::set<std::int32_t>> numbers;
  if (!answer) co_return numbers;
  for (const auto& topic : answer->topics) {
    for (const auto& partition : topic.partitions) numbers[topic.name].insert(partition.partition);
  }
  co_return numbers;
}

asio::awaitable<PerItem<std::int32_t>> AdminCore::add_partitions(
    std::map<std::string, std::int32_t> totals) {
  const base::TimePoint until = deadline();
  PerItem<std::int32_t> outcomes;
  std::vector<protocol::PartitionTotal> items;
  for (const auto& [name, total] : totals) {
    if (total >= 1) {
      items.push_back(protocol::PartitionTotal{name, total});
    } else {
      outcomes.emplace(name, make_error(Errc::invalid_partitions,
                                        fmt::format("{} partitions cannot be", total)));
    }
  }
  refuse_unsendable(items, outcomes);
  std::vector<std::string> names;
  names.reserve(items.size());
  for (const auto& item : items) names.push_back(item.name);
  const auto before = co_await partitions_there(std::move(names), until);
  std::function<protocol::AddPartitionsRequest(std::vector<protocol::PartitionTotal>)> make =
      [](std::vector<protocol::PartitionTotal> wanted) {
        protocol::AddPartitionsRequest request;
        request.topics = std::move(wanted);
        return request;
      };
  const auto changed =
      co_await change(ApiKey::add_partitions, std::move(items), std::move(make),
                      &protocol::decode_add_partitions_response, until, Repeat::always);
  for (const auto& [name, result] : changed) {
    outcomes.emplace(name, result ? Result<std::int32_t>(result->partitions)
                                  : Result<std::int32_t>(result.error()));
  }
  Wanted wanted = [totals, before](const protocol::TopicMetadata& topic) {
    const auto total = totals.find(topic.name);
    const auto old = before.find(topic.name);
    return total != totals.end() &&
           has_new_leaders(topic, static_cast<std::size_t>(total->second),
                           old == before.end() ? std::set<std::int32_t>() : old->second);
  };
  co_await wait_until_known(names_of_done(changed), std::move(wanted), until);
  co_return outcomes;
}

/// An election twice is one, and so is an acknowledgement.
asio::awaitable<AdminCore::PerPartition> AdminCore::control(protocol::PartitionAction action,
                                                            std::vector<TopicPartition> partitions,
                                                            std::int32_t broker) {
  const base::TimePoint until = deadline();
  PerPartition outcomes;
  std::map<model::PartitionId, TopicPartition> names;
  protocol::ControlPartitionsRequest request;
  request.action = action;
  request.broker = broker;
  for (auto& name : partitions) {
    const auto id = co_await partition_id(name, until);
    if (!id) {
      outcomes.emplace(std::move(name), id.error());
    } else if (names.emplace(*id, std::move(name)).second) {
      request.partitions.push_back(*id);
    }
  }
  if (names.empty()) co_return outcomes;
  const auto answer =
      co_await ask_controller(ApiKey::control_partitions, std::move(request),
                              &protocol::decode_control_partitions_response, until, Repeat::always);
  if (answer) {
    core_.metadata.need_version(answer->envelope.metadata_version);
    for (const auto& result : answer->results) {
      const auto name = names.find(result.partition);
      if (name == names.end()) continue;
      if (result.status.ok())
        outcomes.emplace(name->second, result);
      else
        outcomes.emplace(name->second,
                         from_status(result.status, broker_place(core_, result.status.broker)));
    }
  }
  for (const auto& [id, name] : names) {
    if (!outcomes.contains(name))
      outcomes.emplace(name, answer ? left_out(name.topic) : answer.error());
  }
  co_return outcomes;
}

}  // namespace mq::client
