#include "broker/error_map.h"

#include <gtest/gtest.h>

#include "controller/error.h"
#include "metadata/error.h"
#include "replication/error.h"
#include "storage/storage_error.h"

namespace mq::broker {
namespace {

using protocol::WireError;

TEST(ErrorMap, NoErrorIsOk) { EXPECT_EQ(to_wire({}), WireError::ok); }

TEST(ErrorMap, WhatAProducerBranchesOn) {
  EXPECT_EQ(to_wire(storage::StorageErrc::storage_full), WireError::storage_full);
  EXPECT_EQ(to_wire(storage::StorageErrc::disk_failed), WireError::storage_failed);
  EXPECT_EQ(to_wire(storage::StorageErrc::partition_corrupt), WireError::partition_corrupt);
  EXPECT_EQ(to_wire(storage::StorageErrc::batch_too_large), WireError::batch_too_large);
  EXPECT_EQ(to_wire(replication::ReplicationErrc::out_of_order), WireError::out_of_order);
  EXPECT_EQ(to_wire(replication::ReplicationErrc::stale_connection), WireError::stale_connection);
  EXPECT_EQ(to_wire(replication::ReplicationErrc::timed_out), WireError::timed_out);
}

TEST(ErrorMap, AnUnknownOutcomeStaysUnknown) {
  EXPECT_EQ(to_wire(metadata::MetadataErrc::outcome_unknown), WireError::metadata_outcome_unknown);
  EXPECT_EQ(to_wire(metadata::MetadataErrc::unavailable), WireError::metadata_unavailable);
}

TEST(ErrorMap, AForeignCategoryIsInternal) {
  EXPECT_EQ(to_wire(boost::system::errc::make_error_code(boost::system::errc::io_error)),
            WireError::internal);
}

}  // namespace
}  // namespace mq::broker
