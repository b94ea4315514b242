#pragma once

#include <string>
#include <vector>

#include "base/runtime.h"
#include "metadata/node_values.h"
#include "metadata/store.h"

namespace mq::controller {

using base::Error;
using base::Result;

/// Why a multi did not take effect; empty: it did.
inline Error refusal(const Result<metadata::MultiResult>& result) {
  return result ? result->first_error() : result.error();
}

/// Writes of one process, each with a tag of its own, and the answer to "did it take effect?" when
/// the store's answer was lost: the node is read and its tag compared (MET-1).
class NodeWriter {
 public:
  /// `incarnation` is of this object alone: two that write under one would not be told apart.
  NodeWriter(metadata::MetadataStore& store, base::Runtime& runtime, base::Uuid incarnation)
      : store_(store), runtime_(runtime), incarnation_(incarnation) {}
  NodeWriter(metadata::MetadataStore& store, base::Runtime& runtime)
      : NodeWriter(store, runtime, base::Uuid::from_random(runtime.random(), runtime.random())) {}

  /// For the values of one write, which is one multi.
  metadata::WriterTag next_tag() noexcept { return {incarnation_, ++sequence_}; }

  /// One multi. `witness` is the path of a node that it makes or sets to a value with `tag`. The
  /// result is definite but for the error outcome_unknown: the store could not even be read then.
  /// After a lost answer the operations' results are not known and left out.
  asio::awaitable<Result<metadata::MultiResult>> commit(std::vector<metadata::Operation> operations,
                                                        std::string witness,
                                                        metadata::WriterTag tag);
  /// Sets the node again and again, from version `from` on, until it has version `to`. Somebody
  /// else's write in between is an error.
  asio::awaitable<Result<void>> raise(std::string path, std::string value, std::int32_t from,
                                      std::int32_t to);
  /// From now on a lost answer is asked for once, not several times.
  void hurry() noexcept { hurried_ = true; }

 private:
  /// True, false, or the error that kept from reading.
  asio::awaitable<Result<std::optional<metadata::WriterTag>>> read_tag(std::string path);

  metadata::MetadataStore& store_;
  base::Runtime& runtime_;
  base::Uuid incarnation_;
  std::uint64_t sequence_ = 0;
  bool hurried_ = false;
};

}  // namespace mq::controller
