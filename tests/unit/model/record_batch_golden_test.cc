// The worked example of src/model/FORMAT.md, byte by byte.
#include <gtest/gtest.h>

#include "batch_samples.h"
#include "unit/hex_block.h"

namespace mq::model {
namespace {

TEST(RecordBatchGolden, WorkedExampleOfTheFormatIsWhatTheBuilderWrites) {
  std::string batch = testing::copy(
      testing::build({{"user-1", "hello", 1'700'000'000'000, std::nullopt, {}},
                      {std::nullopt, "", 1'700'000'000'005, "red", {{"from", "app"}}}}));
  stamp({reinterpret_cast<std::byte*>(batch.data()), batch.size()}, Offset(41), LeaderEpoch(3),
        1'700'000'000'100);
  const std::string example =
      mq::testing::hex_block(MQ_MODEL_TEST_DIR "/../../../src/model/FORMAT.md", "Worked example");
  EXPECT_EQ(mq::testing::hex_lines(batch), mq::testing::hex_lines(example));
}

TEST(RecordBatchGolden, HeaderFieldsStandWhereTheFormatSays) {
  using namespace batch_format;
  EXPECT_EQ(
      std::vector<std::size_t>({kBaseOffset,  kBatchBytes,      kLeaderEpoch,     kAppendTimeMs,
                                kBodyCrc,     kStampCrc,        kVersion,         kHeaderWords,
                                kCodec,       kReservedByte,    kFlagsRequired,   kFlagsOptional,
                                kRecordCount, kLastOffsetDelta, kBaseTimestampMs, kMaxTimestampMs,
                                kProducerId,  kProducerEpoch,   kBaseSequence,    kTagSet,
                                kRawBytes,    kReservedWord,    kHeaderBytes}),
      std::vector<std::size_t>({0,  8,  12, 16, 24, 28, 32, 33, 34, 35, 36, 38,
                                40, 44, 48, 56, 64, 72, 76, 80, 88, 92, 96}));
}

TEST(RecordBatchGolden, CodecNumbersAreFixed) {
  EXPECT_EQ(static_cast<int>(Codec::none), 0);
  EXPECT_EQ(static_cast<int>(Codec::lz4), 1);
  EXPECT_EQ(static_cast<int>(Codec::zstd), 2);
}

TEST(RecordBatchGolden, TagBitsOfKnownTagsAreFixed) {
  // A broker of any version must skip the same batches.
  EXPECT_EQ(tag_bits(base::as_bytes("red")), (std::uint64_t{1} << 21) | (std::uint64_t{1} << 39));
  EXPECT_EQ(tag_bits({}), (std::uint64_t{1} << 2) | (std::uint64_t{1} << 20));
}

}  // namespace
}  // namespace mq::model
