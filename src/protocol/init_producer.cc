#include "protocol/init_producer.h"

#include "protocol/codec.h"
#include "protocol/proto/init_producer.pb.h"

namespace mq::protocol {
namespace {

bool read_request(const wire::InitProducerRequest& from, InitProducerRequest& to) {
  return codec::read_envelope(from, to.envelope);
}

void write_request(const InitProducerRequest& from, wire::InitProducerRequest& to) {
  codec::write_envelope(from.envelope, to);
}

bool read_response(const wire::InitProducerResponse& from, InitProducerResponse& to) {
  return codec::read_envelope(from, to.envelope) &&
         codec::read_integer(from.producer_id(), to.producer_id) &&
         codec::read_integer(from.producer_epoch(), to.producer_epoch);
}

void write_response(const InitProducerResponse& from, wire::InitProducerResponse& to) {
  codec::write_envelope(from.envelope, to);
  to.set_producer_id(from.producer_id);
  to.set_producer_epoch(from.producer_epoch);
}

}  // namespace

std::string encode(const InitProducerRequest& request) {
  return codec::encode(request, write_request);
}
std::string encode(const InitProducerResponse& response) {
  return codec::encode(response, write_response);
}
base::Result<InitProducerRequest> decode_init_producer_request(base::Bytes header) {
  return codec::decode(header, read_request);
}
base::Result<InitProducerResponse> decode_init_producer_response(base::Bytes header) {
  return codec::decode(header, read_response);
}

}  // namespace mq::protocol
