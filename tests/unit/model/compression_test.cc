#include "model/compression.h"

#include <gtest/gtest.h>
#include <lz4.h>
#include <zstd.h>

#include <fstream>
#include <string>

#include "batch_samples.h"

namespace mq::model {
namespace {

using testing::read;
using testing::wrap;

std::string zstd_frame(const std::string& raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), 3));
  return packed;
}
std::string lz4_block(const std::string& raw) {
  std::string packed(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(raw.size()))),
                     '\0');
  packed.resize(static_cast<std::size_t>(LZ4_compress_default(
      raw.data(), packed.data(), static_cast<int>(raw.size()), static_cast<int>(packed.size()))));
  return packed;
}

Error unpack_error(const std::string& batch, std::uint32_t limit = batch_format::kRawBytesMax) {
  const auto view = RecordBatchView::parse(base::as_bytes(batch));
  if (!view) return view.error();
  const auto unpacked = decompress(*view, base::BufferPool::shared(), limit);
  return unpacked ? Error() : unpacked.error();
}

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  in >> total >> resident;
  return resident * 4096;
}

TEST(Compression, NamesComeBack) {
  for (const Codec codec : {Codec::none, Codec::lz4, Codec::zstd})
    EXPECT_EQ(codec_from_name(codec_name(codec)), codec);
  EXPECT_FALSE(codec_from_name("gzip"));
}

TEST(Compression, WhatDoesNotShrinkIsSentAsItIs) {
  std::string noise(500, '\0');
  std::uint64_t state = 1;
  for (char& c : noise) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>(state >> 56);
  }
  for (const Codec codec : {Codec::lz4, Codec::zstd}) {
    const auto batch = testing::build({{std::nullopt, noise, 1, std::nullopt, {}}}, codec);
    EXPECT_EQ(RecordBatchView::parse(batch.bytes)->codec(), Codec::none);
  }
}

TEST(Compression, CodecNoneAliasesTheBatch) {
  const auto batch = testing::build(testing::sample_records());
  const auto view = RecordBatchView::parse(batch.bytes);
  const auto unpacked = decompress(*view, base::BufferPool::shared());
  ASSERT_TRUE(unpacked);
  EXPECT_FALSE(unpacked->owner);
  EXPECT_EQ(unpacked->bytes.data(), batch.bytes.data() + 96);
}

TEST(Compression, RawBytesIsExactForEveryCodec) {
  const std::string raw(1000, 'r');
  const std::string zstd = zstd_frame(raw);
  const std::string lz4 = lz4_block(raw);
  EXPECT_FALSE(unpack_error(wrap(zstd, 1, 0, Codec::zstd, 1000)));
  EXPECT_FALSE(unpack_error(wrap(lz4, 1, 0, Codec::lz4, 1000)));
  for (const std::uint32_t raw_bytes : {999u, 1001u, 8u, 100'000u}) {
    EXPECT_EQ(unpack_error(wrap(zstd, 1, 0, Codec::zstd, raw_bytes)), ModelErrc::corrupt_records);
    EXPECT_EQ(unpack_error(wrap(lz4, 1, 0, Codec::lz4, raw_bytes)), ModelErrc::corrupt_records);
  }
}

TEST(Compression, LimitIsCheckedBeforeMemoryIsTaken) {
  const std::string raw(1000, 'r');
  EXPECT_EQ(unpack_error(wrap(zstd_frame(raw), 1, 0, Codec::zstd, 1000), 999),
            ModelErrc::too_large);
}

TEST(Compression, ChainOfFramesIsRefused) {
  const std::string half(500, 'r');
  const std::string chain = zstd_frame(half) + zstd_frame(half);
  EXPECT_EQ(unpack_error(wrap(chain, 1, 0, Codec::zstd, 1000)), ModelErrc::corrupt_records);
  EXPECT_EQ(unpack_error(wrap(zstd_frame(half) + "tail", 1, 0, Codec::zstd, 500)),
            ModelErrc::corrupt_records);
}

TEST(Compression, FrameWithoutItsContentSizeIsRefused) {
  const std::string raw(1000, 'r');
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
  packed.resize(ZSTD_compress2(context, packed.data(), packed.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  EXPECT_EQ(unpack_error(wrap(packed, 1, 0, Codec::zstd, 1000)), ModelErrc::corrupt_records);
}

TEST(Compression, BombsAreRefusedWithoutTakingMuchMemory) {
  // 64 MiB of zeros pack to a few KiB with zstd, 256 KiB with lz4; neither may cost its size when
  // the header says less, nor may a few bytes that claim 64 MiB.
  const std::string zeros(batch_format::kRawBytesMax, '\0');
  const std::string zstd = zstd_frame(zeros);
  const std::string lz4 = lz4_block(zeros);
  const std::uint64_t before = resident_bytes();
  EXPECT_EQ(unpack_error(wrap(zstd, 1, 0, Codec::zstd, 4096)), ModelErrc::corrupt_records);
  EXPECT_EQ(unpack_error(wrap(lz4, 1, 0, Codec::lz4, 4096)), ModelErrc::corrupt_records);
  EXPECT_EQ(unpack_error(wrap("tiny", 1, 0, Codec::lz4, batch_format::kRawBytesMax)),
            ModelErrc::corrupt_records);
  EXPECT_EQ(unpack_error(wrap("tiny", 1, 0, Codec::zstd, batch_format::kRawBytesMax)),
            ModelErrc::corrupt_records);
  // PRO-1
  EXPECT_LE(resident_bytes(), before + (std::uint64_t{16} << 20));
}

}  // namespace
}  // namespace mq::model
