#pragma once

#include "broker/request.h"
#include "protocol/api.h"

namespace mq::broker {

/// Takes a request over and answers it, now or later. Called on the connection's worker in the
/// order of arrival; what has to keep that order is done before it returns.
using Handler = void (*)(Request request);

// One file per API beside this one.
void handle_hello(Request request);
void handle_metadata(Request request);
void handle_produce(Request request);
void handle_fetch(Request request);
void handle_list_offsets(Request request);
void handle_create_topics(Request request);
void handle_delete_topics(Request request);
void handle_list_topics(Request request);
void handle_describe_topics(Request request);
void handle_describe_broker(Request request);
void handle_trim_partitions(Request request);
void handle_init_producer(Request request);
void handle_alter_topics(Request request);
void handle_add_partitions(Request request);
void handle_describe_config(Request request);
void handle_pull_image(Request request);
void handle_report_replicas(Request request);
void handle_replica_fetch(Request request);
void handle_alter_isr(Request request);
void handle_control_partitions(Request request);
void handle_leave_broker(Request request);

struct Api {
  protocol::ApiVersions versions;
  Handler handler;
};
/// Null for a number this release does not know.
const Api* find_api(std::uint16_t key) noexcept;

}  // namespace mq::broker
