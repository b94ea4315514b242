#include "controller/status.h"

#include <fmt/format.h>

#include "controller/error.h"
#include "metadata/error.h"

namespace mq::controller {
namespace {

using protocol::Status;
using protocol::WireError;

}  // namespace

Status metadata_status(const base::Error& error, model::BrokerId broker) {
  if (error == make_error_code(metadata::MetadataErrc::outcome_unknown))
    return Status::of(WireError::metadata_outcome_unknown, error.message(), broker.value());
  if (error == make_error_code(ControllerErrc::not_controller))
    return Status::of(WireError::not_controller, "this broker is not the controller any more",
                      broker.value());
  return Status::of(WireError::metadata_unavailable,
                    fmt::format("nothing was changed: {}", error.message()), broker.value());
}

}  // namespace mq::controller
