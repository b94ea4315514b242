#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/bytes.h"

namespace mq::model {

/// How the records of a batch are packed. The numbers are part of the format.
enum class Codec : std::uint8_t { none = 0, lz4 = 1, zstd = 2 };
inline constexpr std::uint8_t kCodecCount = 3;

[[nodiscard]] std::string_view codec_name(Codec codec) noexcept;
[[nodiscard]] std::optional<Codec> codec_from_name(std::string_view name) noexcept;

/// Packs `in` into `out` and returns the bytes used, or 0 when they do not fit. LZ4 block or one
/// zstd frame that names its content size; not for Codec::none.
[[nodiscard]] std::size_t compress(Codec codec, base::Bytes in, base::MutableBytes out) noexcept;

/// True when a stream of `packed_bytes` starting with `in` could unpack to `raw_bytes`: checked
/// before memory is taken, so that a few bytes cannot claim 64 MiB.
[[nodiscard]] bool plausible_raw_bytes(Codec codec, base::Bytes in, std::size_t raw_bytes) noexcept;

/// Unpacks `in` so that it fills `out` exactly; false otherwise. Never writes outside `out`.
[[nodiscard]] bool decompress_exactly(Codec codec, base::Bytes in, base::MutableBytes out) noexcept;

}  // namespace mq::model
