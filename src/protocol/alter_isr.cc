#include "protocol/alter_isr.h"

#include "protocol/codec.h"
#include "protocol/proto/alter_isr.pb.h"

namespace mq::protocol {
namespace {

bool read_proposal(const wire::IsrProposal& from, IsrProposal& to) {
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_id(from.leader_epoch(), to.leader_epoch) &&
         codec::read_id(from.version(), to.version) && codec::read_members(from.isr(), to.isr);
}

void write_proposal(const IsrProposal& from, wire::IsrProposal& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  to.set_leader_epoch(from.leader_epoch.value());
  to.set_version(from.version.value());
  codec::write_members(from.isr, *to.mutable_isr());
}

bool read_request(const wire::AlterIsrRequest& from, AlterIsrRequest& to) {
  return codec::read_envelope(from, to.envelope) && codec::read_integer(from.broker(), to.broker) &&
         codec::read_integer(from.broker_epoch(), to.broker_epoch) &&
         codec::read_all(from.entries(), to.entries, read_proposal, kIsrProposalsMax);
}

void write_request(const AlterIsrRequest& from, wire::AlterIsrRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker(from.broker);
  to.set_broker_epoch(from.broker_epoch);
  codec::write_all(from.entries, *to.mutable_entries(), write_proposal);
}

bool read_result(const wire::IsrResult& from, IsrResult& to) {
  auto& state = to.state;
  return codec::read_partition(from.partition(), to.partition) &&
         codec::read_entry_status(from, to.status) && codec::read_id(from.leader(), state.leader) &&
         codec::read_id(from.leader_epoch(), state.leader_epoch) &&
         codec::read_id(from.version(), state.version) &&
         codec::read_members(from.isr(), state.isr) &&
         codec::read_integer(from.min_isr(), state.min_isr);
}

void write_result(const IsrResult& from, wire::IsrResult& to) {
  codec::write_partition(from.partition, *to.mutable_partition());
  codec::write_entry_status(from.status, to);
  to.set_leader(from.state.leader.value());
  to.set_leader_epoch(from.state.leader_epoch.value());
  to.set_version(from.state.version.value());
  codec::write_members(from.state.isr, *to.mutable_isr());
  to.set_min_isr(from.state.min_isr);
}

bool read_response(const wire::AlterIsrResponse& from, AlterIsrResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_all(from.results(), to.results, read_result, kIsrProposalsMax);
}

void write_response(const AlterIsrResponse& from, wire::AlterIsrResponse& to) {
  codec::write_envelope(from.envelope, to);
  codec::write_all(from.results, *to.mutable_results(), write_result);
}

}  // namespace

std::string encode(const AlterIsrRequest& request) { return codec::encode(request, write_request); }
std::string encode(const AlterIsrResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<AlterIsrRequest> decode_alter_isr_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<AlterIsrResponse> decode_alter_isr_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
