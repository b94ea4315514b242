// Journal files: headers, groups and entries as they come, and entries in groups made right.
#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "storage/journal_format.h"

namespace {

using namespace mq;

/// Whatever can be read is written as it was.
void check_entries(base::Bytes body, std::uint32_t count) {
  storage::JournalEntryReader reader(body, count);
  storage::JournalGroupBuilder builder;
  while (true) {
    const auto entry = reader.next();
    if (!entry) return;
    if (!*entry) break;
    builder.add((*entry)->id, (*entry)->content);
  }
  storage::JournalGroupHeader header;
  const auto group = builder.finish(header);
  MQ_CHECK(header.entries == count);
  const auto again = group.subspan(storage::kJournalGroupHeaderBytes, header.body_bytes);
  MQ_CHECK(std::equal(again.begin(), again.end(), body.begin(), body.end()));
  MQ_CHECK(storage::journal_body_holds(*storage::decode_journal_group_header(group), again));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::Bytes bytes = fuzz::Input(data, size).rest();
  if (const auto header = storage::decode_journal_header(bytes)) {
    const auto again = storage::decode_journal_header(storage::encode_journal_header(*header));
    MQ_CHECK(again && *again == *header);
  }
  (void)storage::decode_journal_group_header(bytes).has_value();
  for (const std::uint32_t count : {1u, 2u, 7u}) check_entries(bytes, count);
  return 0;
}
