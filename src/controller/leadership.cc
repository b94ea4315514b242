#include "controller/leadership.h"

#include "base/log.h"
#include "controller/error.h"
#include "metadata/znode_layout.h"

namespace mq::controller {
namespace {

namespace layout = metadata::layout;
using metadata::MetadataErrc;
using metadata::Operation;

constexpr std::chrono::milliseconds kLookAgain{200};

metadata::Create live_node(std::string path, const ControllerConfig& config,
                           metadata::WriterTag tag) {
  const metadata::BrokerLiveValue value{tag, config.incarnation, config.advertised};
  return metadata::Create(std::move(path), metadata::encode(value),
                          metadata::CreateMode::ephemeral);
}

std::string holder_of(const metadata::Node& node) {
  const auto value = metadata::decode_broker_live(node.value);
  return value ? value->advertised.text() : std::string("an unknown address");
}

/// True when it is ours; false when somebody else holds it.
asio::awaitable<Result<bool>> try_claim(NodeWriter& writer, const ControllerConfig& config) {
  const std::string path(layout::kControllerLeader);
  const auto tag = writer.next_tag();
  std::vector<Operation> operations;
  operations.emplace_back(live_node(path, config, tag));
  const auto made = co_await writer.commit(std::move(operations), path, tag);
  if (!made) co_return Result<bool>(boost::system::in_place_error, made.error());
  const Error refused = made->first_error();
  if (!refused) co_return true;
  if (refused == make_error_code(MetadataErrc::already_exists)) co_return false;
  co_return Result<bool>(boost::system::in_place_error, refused);
}

}  // namespace

asio::awaitable<Result<void>> claim_leadership(metadata::MetadataStore& store, NodeWriter& writer,
                                               const ControllerConfig& config,
                                               base::Runtime& runtime, base::TimePoint deadline) {
  bool said = false;
  while (true) {
    const auto claimed = co_await try_claim(writer, config);
    if (!claimed) co_return claimed.error();
    if (*claimed) co_return Result<void>();
    const auto node = co_await store.get(std::string(layout::kControllerLeader));
    if (node && node->ephemeral_owner == store.session()) co_return Result<void>();
    if (!node && node.error() != make_error_code(MetadataErrc::not_found)) co_return node.error();
    const bool late = runtime.now() >= deadline;
    if (node && (late || !said)) {
      base::log_info("controller", "{} is held by the broker at {}{}", layout::kControllerLeader,
                     holder_of(*node), late ? "" : "; waiting for its session to end");
      said = true;
    }
    if (late) co_return make_error_code(ControllerErrc::another_controller);
    co_await runtime.sleep_for(kLookAgain);
  }
}

asio::awaitable<Result<void>> register_again(metadata::MetadataStore& store, NodeWriter& writer,
                                             const ControllerConfig& config,
                                             model::BrokerEpoch epoch) {
  const auto path = layout::broker_live(config.broker);
  const auto there = co_await store.get(path);
  if (there && there->ephemeral_owner == store.session()) co_return Result<void>();
  const auto tag = writer.next_tag();
  std::vector<Operation> operations;
  operations.emplace_back(metadata::Check(layout::broker_epoch(config.broker),
                                          static_cast<std::int32_t>(epoch.value())));
  operations.emplace_back(live_node(path, config, tag));
  const auto made = co_await writer.commit(std::move(operations), path, tag);
  if (!made) co_return made.error();
  const Error refused = made->first_error();
  if (refused == make_error_code(MetadataErrc::bad_version))
    co_return make_error_code(ControllerErrc::broker_id_in_use);
  if (refused) co_return refused;
  co_return Result<void>();
}

}  // namespace mq::controller
