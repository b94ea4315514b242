// Values and names of metadata nodes: what is read is written again with the same meaning.
#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "metadata/node_values.h"
#include "metadata/store.h"
#include "metadata/znode_layout.h"

namespace {

using namespace mq;

template <class Value>
void again(const base::Result<Value>& value, base::Result<Value> (*decode)(std::string_view)) {
  if (!value) return;
  const auto once = metadata::encode(*value);
  const auto back = decode(once);
  MQ_CHECK(back.has_value());
  MQ_CHECK(metadata::encode(*back) == once);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = base::as_text(fuzz::Input(data, size).rest());
  again(metadata::decode_cluster(text), metadata::decode_cluster);
  again(metadata::decode_broker_epoch(text), metadata::decode_broker_epoch);
  again(metadata::decode_broker_live(text), metadata::decode_broker_live);
  again(metadata::decode_controller(text), metadata::decode_controller);
  again(metadata::decode_controller_epoch(text), metadata::decode_controller_epoch);
  again(metadata::decode_topic(text), metadata::decode_topic);
  again(metadata::decode_partition_state(text), metadata::decode_partition_state);
  again(metadata::decode_producer_ids(text), metadata::decode_producer_ids);
  (void)metadata::decode_writer(text).has_value();
  const auto name = metadata::layout::escape_name(text);
  MQ_CHECK(metadata::layout::unescape_name(name) == text);
  if (const auto plain = metadata::layout::unescape_name(text))
    MQ_CHECK(metadata::layout::escape_name(*plain) == text);
  (void)metadata::check_path(text).has_value();
  return 0;
}
