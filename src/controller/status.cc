#include "controller/status.h"

#include <fmt/format.h>

#include "controller/error.h"
#include "metadata/error.h"
#include "storage/storage_error.h"

namespace mq::controller {
namespace {

using protocol::Status;
using protocol::WireError;

WireError storage_error(const base::Error& error) {
  using storage::StorageErrc;
  if (error == make_error_code(StorageErrc::storage_full) ||
      error == base::make_error_code(base::BaseErrc::no_space))
    return WireError::storage_full;
  if (error == make_error_code(StorageErrc::closed) ||
      error == base::make_error_code(base::BaseErrc::closed))
    return WireError::shutting_down;
  return WireError::storage_failed;
}

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

Status storage_status(const base::Error& error, std::string_view topic, model::BrokerId broker) {
  return Status::of(storage_error(error),
                    fmt::format("topic \"{}\" was not created, its logs could not be opened: {}",
                                topic, error.message()),
                    broker.value());
}

}  // namespace mq::controller
