#pragma once

#include "base/asio.h"
#include "base/result.h"
#include "base/runtime.h"
#include "protocol/alter_isr.h"
#include "protocol/leave_broker.h"
#include "protocol/pull_image.h"
#include "protocol/report_replicas.h"

namespace mq::replication {

/// The way to the controller, which may be in this process, on another broker, or nowhere just now.
/// On the home runtime. An error means that there was no answer: the call may have had its effect.
/// What the controller refuses is in the envelope of its answer.
class ControllerLink {
 public:
  virtual ~ControllerLink() = default;
  virtual asio::awaitable<base::Result<protocol::PullImageResponse>> pull(
      protocol::PullImageRequest request, base::TimePoint deadline) = 0;
  virtual asio::awaitable<base::Result<protocol::ReportReplicasResponse>> report(
      protocol::ReportReplicasRequest request, base::TimePoint deadline) = 0;
  virtual asio::awaitable<base::Result<protocol::AlterIsrResponse>> alter_isr(
      protocol::AlterIsrRequest request, base::TimePoint deadline) = 0;
  virtual asio::awaitable<base::Result<protocol::LeaveBrokerResponse>> leave(
      protocol::LeaveBrokerRequest request, base::TimePoint deadline) = 0;
};

}  // namespace mq::replication
