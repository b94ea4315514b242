#include "model/compression.h"

#include <lz4.h>
#include <zstd.h>

#include <memory>

namespace mq::model {
namespace {

/// zstd's fast level: above it, compression costs more than the rest of the path together.
constexpr int kZstdLevel = 1;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
};

/// One per thread, because making one costs more than packing a small batch.
ZSTD_CCtx* zstd_compressor() noexcept {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  return context.get();
}
ZSTD_DCtx* zstd_decompressor() noexcept {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  return context.get();
}

const char* chars(base::Bytes bytes) noexcept {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(base::MutableBytes bytes) noexcept { return reinterpret_cast<char*>(bytes.data()); }

/// Lengths come from batches, which are far below 2 GiB; anything else is refused.
bool fits_int(std::size_t bytes) noexcept { return bytes <= LZ4_MAX_INPUT_SIZE; }

std::size_t compress_zstd(base::Bytes in, base::MutableBytes out) noexcept {
  ZSTD_CCtx* context = zstd_compressor();
  if (!context) return 0;
  const std::size_t packed =
      ZSTD_compressCCtx(context, out.data(), out.size(), in.data(), in.size(), kZstdLevel);
  return ZSTD_isError(packed) ? 0 : packed;
}

bool decompress_zstd(base::Bytes in, base::MutableBytes out) noexcept {
  // One frame and nothing behind it: ZSTD_decompressDCtx alone would accept a chain of frames.
  const std::size_t frame = ZSTD_findFrameCompressedSize(in.data(), in.size());
  if (ZSTD_isError(frame) || frame != in.size()) return false;
  ZSTD_DCtx* context = zstd_decompressor();
  if (!context) return false;
  return ZSTD_decompressDCtx(context, out.data(), out.size(), in.data(), in.size()) == out.size();
}

}  // namespace

std::string_view codec_name(Codec codec) noexcept {
  switch (codec) {
    case Codec::none:
      return "none";
    case Codec::lz4:
      return "lz4";
    case Codec::zstd:
      return "zstd";
  }
  return "unknown";
}

std::optional<Codec> codec_from_name(std::string_view name) noexcept {
  for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd})
    if (codec_name(codec) == name) return codec;
  return std::nullopt;
}

std::size_t compress(Codec codec, base::Bytes in, base::MutableBytes out) noexcept {
  if (!fits_int(in.size()) || !fits_int(out.size())) return 0;
  switch (codec) {
    case Codec::none:
      return 0;
    case Codec::lz4:
      return static_cast<std::size_t>(LZ4_compress_default(
          chars(in), chars(out), static_cast<int>(in.size()), static_cast<int>(out.size())));
    case Codec::zstd:
      return compress_zstd(in, out);
  }
  return 0;
}

bool plausible_raw_bytes(Codec codec, base::Bytes in, std::size_t raw_bytes) noexcept {
  switch (codec) {
    case Codec::none:
      return raw_bytes == in.size();
    case Codec::lz4:
      // One byte of a block stands for at most 255 bytes of output; 32 covers its short ends.
      return raw_bytes <= in.size() * 255 + 32;
    case Codec::zstd:
      return ZSTD_getFrameContentSize(in.data(), in.size()) == raw_bytes;
  }
  return false;
}

bool decompress_exactly(Codec codec, base::Bytes in, base::MutableBytes out) noexcept {
  if (!fits_int(in.size()) || !fits_int(out.size())) return false;
  switch (codec) {
    case Codec::none:
      return false;
    case Codec::lz4:
      return LZ4_decompress_safe(chars(in), chars(out), static_cast<int>(in.size()),
                                 static_cast<int>(out.size())) == static_cast<int>(out.size());
    case Codec::zstd:
      return decompress_zstd(in, out);
  }
  return false;
}

}  // namespace mq::model
