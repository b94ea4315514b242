#include "controller/node_writer.h"

#include <algorithm>

#include "base/mutants.h"

namespace mq::controller {
namespace {

using metadata::MetadataErrc;
using metadata::MultiResult;
using metadata::WriterTag;

constexpr int kReadTries = 5;
constexpr std::chrono::milliseconds kReadPause{200};
constexpr std::int32_t kSetsInOneMulti = 500;

}  // namespace

asio::awaitable<Result<MultiResult>> NodeWriter::commit(std::vector<metadata::Operation> operations,
                                                        std::string witness, WriterTag tag) {
  auto result = co_await store_.multi(std::move(operations));
  if (result || result.error() != make_error_code(MetadataErrc::outcome_unknown))
    co_return std::move(result);
  if (MQ_MUTANT("unknown_outcome_counts_as_applied")) co_return MultiResult{};
  if (MQ_MUTANT("unknown_outcome_counts_as_failed"))
    co_return make_error_code(MetadataErrc::unavailable);
  const auto found = co_await read_tag(std::move(witness));
  if (!found) co_return make_error_code(MetadataErrc::outcome_unknown);
  if (*found == tag) co_return MultiResult{};
  co_return make_error_code(MetadataErrc::unavailable);  // it is known now: not applied
}

asio::awaitable<Result<void>> NodeWriter::raise(std::string path, std::string value,
                                                std::int32_t from, std::int32_t to) {
  while (from < to) {
    const auto count = std::min(to - from, kSetsInOneMulti);
    std::vector<metadata::Operation> sets;
    sets.reserve(static_cast<std::size_t>(count));
    for (std::int32_t i = 0; i < count; ++i)
      sets.emplace_back(metadata::SetValue(path, value, from + i));
    const auto set = co_await store_.multi(std::move(sets));
    if (const Error error = refusal(set)) co_return error;
    from += count;
  }
  co_return Result<void>();
}

asio::awaitable<Result<std::optional<WriterTag>>> NodeWriter::read_tag(std::string path) {
  Error error = MetadataErrc::unavailable;
  for (int tries = 0; tries < kReadTries && store_.online(); ++tries) {
    if (tries > 0 && hurried_) break;
    if (tries > 0) co_await runtime_.sleep_for(kReadPause);
    const auto node = co_await store_.get(path);
    if (node) {
      const auto tag = metadata::decode_writer(node->value);
      co_return tag ? std::optional(*tag) : std::nullopt;
    }
    error = node.error();
    if (error == make_error_code(MetadataErrc::not_found)) co_return std::optional<WriterTag>();
  }
  co_return error;
}

}  // namespace mq::controller
