#include "broker/error_map.h"

#include "controller/error.h"
#include "metadata/error.h"
#include "model/error.h"
#include "protocol/frame.h"
#include "replication/error.h"
#include "storage/storage_error.h"

namespace mq::broker {
namespace {

using protocol::WireError;

WireError map(base::BaseErrc code) noexcept {
  switch (code) {
    case base::BaseErrc::io_failed:
      return WireError::storage_failed;
    case base::BaseErrc::no_space:
      return WireError::storage_full;
    case base::BaseErrc::timed_out:
      return WireError::timed_out;
    case base::BaseErrc::closed:
      return WireError::shutting_down;
    case base::BaseErrc::malformed:
      return WireError::malformed_request;
    case base::BaseErrc::too_large:
      return WireError::invalid_request;
    case base::BaseErrc::not_found:
    case base::BaseErrc::already_exists:
    case base::BaseErrc::would_block:
    case base::BaseErrc::locked:
    case base::BaseErrc::end_of_stream:
    case base::BaseErrc::connection_lost:
    case base::BaseErrc::connection_refused:
    case base::BaseErrc::address_in_use:
    case base::BaseErrc::not_permitted:
      return WireError::internal;
  }
  return WireError::internal;
}

WireError map(model::ModelErrc code) noexcept {
  switch (code) {
    case model::ModelErrc::incomplete_batch:
    case model::ModelErrc::corrupt_batch:
    case model::ModelErrc::invalid_batch:
    case model::ModelErrc::corrupt_records:
      return WireError::corrupt_batch;
    case model::ModelErrc::unsupported_format:
      return WireError::unsupported_format;
    case model::ModelErrc::too_large:
      return WireError::batch_too_large;
  }
  return WireError::internal;
}

WireError map(protocol::FrameErrc code) noexcept {
  switch (code) {
    case protocol::FrameErrc::too_large:
      return WireError::frame_too_large;
    case protocol::FrameErrc::unknown_flag:
    case protocol::FrameErrc::malformed:
    case protocol::FrameErrc::header_too_large:
      return WireError::malformed_request;
    case protocol::FrameErrc::bad_header_crc:
      return WireError::corrupt_frame;
  }
  return WireError::internal;
}

WireError map(storage::StorageErrc code) noexcept {
  switch (code) {
    case storage::StorageErrc::corrupt_batch:
      return WireError::corrupt_batch;
    case storage::StorageErrc::unsupported_format:
      return WireError::unsupported_format;
    case storage::StorageErrc::batch_too_large:
      return WireError::batch_too_large;
    case storage::StorageErrc::offset_out_of_range:
      return WireError::offset_out_of_range;
    case storage::StorageErrc::storage_full:
      return WireError::storage_full;
    case storage::StorageErrc::disk_failed:
      return WireError::storage_failed;
    case storage::StorageErrc::partition_corrupt:
      return WireError::partition_corrupt;
    case storage::StorageErrc::closed:
    case storage::StorageErrc::io_failed:
      return WireError::partition_offline;
    case storage::StorageErrc::not_cached:
    case storage::StorageErrc::stale_leader_epoch:
    case storage::StorageErrc::wrong_directory:
    case storage::StorageErrc::unknown_format_version:
    case storage::StorageErrc::locked:
    case storage::StorageErrc::already_exists:
    case storage::StorageErrc::not_found:
      return WireError::internal;
  }
  return WireError::internal;
}

WireError map(replication::ReplicationErrc code) noexcept {
  switch (code) {
    case replication::ReplicationErrc::out_of_order:
      return WireError::out_of_order;
    case replication::ReplicationErrc::stale_connection:
      return WireError::stale_connection;
    case replication::ReplicationErrc::offset_out_of_range:
      return WireError::offset_out_of_range;
    case replication::ReplicationErrc::timed_out:
      return WireError::timed_out;
    case replication::ReplicationErrc::closed:
      return WireError::partition_offline;
    case replication::ReplicationErrc::epoch_changed:
      return WireError::not_leader;
    case replication::ReplicationErrc::invariant_broken:
      return WireError::internal;
    case replication::ReplicationErrc::unknown_producer:
      return WireError::unknown_producer;
    case replication::ReplicationErrc::out_of_order_sequence:
      return WireError::out_of_order_sequence;
    case replication::ReplicationErrc::duplicate_sequence:
      return WireError::duplicate_sequence;
    case replication::ReplicationErrc::producer_fenced:
      return WireError::producer_fenced;
    case replication::ReplicationErrc::too_many_producers:
      return WireError::too_many_producers;
    case replication::ReplicationErrc::not_enough_replicas:
      return WireError::not_enough_replicas;
    case replication::ReplicationErrc::not_enough_replicas_after_append:
      return WireError::not_enough_replicas_after_append;
    case replication::ReplicationErrc::no_lease:
      return WireError::not_leader;
    case replication::ReplicationErrc::offset_not_available:
      return WireError::offset_not_available;
    case replication::ReplicationErrc::fenced_leader_epoch:
      return WireError::fenced_leader_epoch;
    case replication::ReplicationErrc::unknown_leader_epoch:
      return WireError::unknown_leader_epoch;
    case replication::ReplicationErrc::not_a_replica:
      return WireError::invalid_request;
  }
  return WireError::internal;
}

WireError map(metadata::MetadataErrc code) noexcept {
  switch (code) {
    case metadata::MetadataErrc::unavailable:
    case metadata::MetadataErrc::session_lost:
    case metadata::MetadataErrc::full:
    case metadata::MetadataErrc::not_permitted:
      return WireError::metadata_unavailable;
    case metadata::MetadataErrc::outcome_unknown:
      return WireError::metadata_outcome_unknown;
    case metadata::MetadataErrc::not_found:
    case metadata::MetadataErrc::already_exists:
    case metadata::MetadataErrc::bad_version:
    case metadata::MetadataErrc::not_empty:
    case metadata::MetadataErrc::ephemeral_parent:
    case metadata::MetadataErrc::invalid_path:
    case metadata::MetadataErrc::too_large:
    case metadata::MetadataErrc::not_applied:
    case metadata::MetadataErrc::damaged:
    case metadata::MetadataErrc::unknown_format:
      return WireError::internal;
  }
  return WireError::internal;
}

WireError map(controller::ControllerErrc code) noexcept {
  switch (code) {
    case controller::ControllerErrc::broker_id_in_use:
    case controller::ControllerErrc::not_controller:
    case controller::ControllerErrc::damaged_metadata:
      return WireError::internal;
  }
  return WireError::internal;
}

}  // namespace

WireError to_wire(const base::Error& error) noexcept {
  if (!error) return WireError::ok;
  const auto& category = error.category();
  const int value = error.value();
  if (category == base::base_category()) return map(static_cast<base::BaseErrc>(value));
  if (category == model::model_category()) return map(static_cast<model::ModelErrc>(value));
  if (category == protocol::frame_category()) return map(static_cast<protocol::FrameErrc>(value));
  if (category == storage::storage_category()) return map(static_cast<storage::StorageErrc>(value));
  if (category == replication::replication_category())
    return map(static_cast<replication::ReplicationErrc>(value));
  if (category == metadata::metadata_category())
    return map(static_cast<metadata::MetadataErrc>(value));
  if (category == controller::controller_category())
    return map(static_cast<controller::ControllerErrc>(value));
  return WireError::internal;
}

}  // namespace mq::broker
