#include "protocol/leave_broker.h"

#include "protocol/codec.h"
#include "protocol/proto/leave_broker.pb.h"

namespace mq::protocol {
namespace {

constexpr std::size_t kNamesBytesMax = 4096;

bool read_request(const wire::LeaveBrokerRequest& from, LeaveBrokerRequest& to) {
  return codec::read_envelope(from, to.envelope) && codec::read_integer(from.broker(), to.broker) &&
         codec::read_integer(from.broker_epoch(), to.broker_epoch);
}

void write_request(const LeaveBrokerRequest& from, wire::LeaveBrokerRequest& to) {
  codec::write_envelope(from.envelope, to);
  to.set_broker(from.broker);
  to.set_broker_epoch(from.broker_epoch);
}

bool read_response(const wire::LeaveBrokerResponse& from, LeaveBrokerResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_text(from.waiting(), to.waiting, kNamesBytesMax) &&
         codec::read_text(from.only_here(), to.only_here, kNamesBytesMax);
}

void write_response(const LeaveBrokerResponse& from, wire::LeaveBrokerResponse& to) {
  codec::write_envelope(from.envelope, to);
  to.set_waiting(from.waiting);
  to.set_only_here(from.only_here);
}

}  // namespace

std::string encode(const LeaveBrokerRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const LeaveBrokerResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<LeaveBrokerRequest> decode_leave_broker_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<LeaveBrokerResponse> decode_leave_broker_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
