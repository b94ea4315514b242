#pragma once

#include "base/result.h"

namespace mq::model {

using base::Error;
using base::Result;

enum class ModelErrc {
  /// Fewer bytes than one whole batch: more may come (network), or the tail is torn (log).
  incomplete_batch = 1,
  /// Damage: a checksum does not hold, or the length cannot be one.
  corrupt_batch,
  /// The checksums hold, but version, codec, required flag or a reserved field is unknown: written
  /// by a newer mq. Never treated as damage.
  unsupported_format,
  /// The checksums hold, but the header breaks a rule of the format: its writer is wrong.
  invalid_batch,
  /// Larger than the limit that the caller gave.
  too_large,
  /// The records inside a batch do not parse or do not decompress to what the header says.
  corrupt_records,
};

const boost::system::error_category& model_category() noexcept;
Error make_error_code(ModelErrc code) noexcept;

}  // namespace mq::model

template <>
struct boost::system::is_error_code_enum<mq::model::ModelErrc> : std::true_type {};
