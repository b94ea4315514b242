#include "protocol/hello.h"

#include "base/log.h"
#include "broker/connection.h"
#include "broker/handlers/handlers.h"
#include "broker/version.h"

namespace mq::broker {
namespace {

constexpr std::size_t kClientNameMax = 128;

protocol::HelloResponse answer_of(const Core& core) {
  protocol::HelloResponse response;
  response.envelope = core.envelope();
  response.broker_version = kVersion;
  response.broker_id = core.id.value();
  response.cluster_id = core.cluster_id;
  response.apis.assign(protocol::kSupportedApis.begin(), protocol::kSupportedApis.end());
  response.frame_bytes_max = core.frame_bytes_max();
  response.batch_bytes_max = core.batch_bytes_max;
  return response;
}

}  // namespace

void handle_hello(Request request) {
  const auto hello = protocol::decode_hello_request(request.header());
  if (!hello) return request.fail(protocol::WireError::malformed_request, "Hello does not parse");
  Connection& connection = request.connection();
  if (connection.client()) {
    return request.fail(protocol::WireError::invalid_request,
                        "Hello is said once, at the beginning of a connection");
  }
  const Core& core = request.core();
  if (!hello->cluster_id.is_zero() && hello->cluster_id != core.cluster_id) {
    return request.fail(protocol::WireError::wrong_cluster,
                        fmt::format("this broker belongs to cluster {}, not {}",
                                    core.cluster_id.hex(), hello->cluster_id.hex()));
  }
  ClientIdentity client;
  client.name = base::printable(hello->envelope.client_name, kClientNameMax);
  client.instance = hello->client_instance;
  client.connection_number = hello->connection_number;
  connection.hello(std::move(client));
  request.answer(protocol::encode(answer_of(core)));
}

}  // namespace mq::broker
