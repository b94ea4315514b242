// The worked example of src/model/FORMAT.md, byte by byte.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "batch_samples.h"

namespace mq::model {
namespace {

/// The hex bytes of the first fenced block behind the heading "Worked example": per line a
/// position, a colon, pairs of hex digits, then two blanks and a comment.
std::string worked_example() {
  std::ifstream in(MQ_MODEL_TEST_DIR "/../../../src/model/FORMAT.md");
  std::string bytes;
  bool in_section = false;
  bool in_block = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) in_section = line.find("Worked example") != std::string::npos;
    if (!in_section) continue;
    if (line.starts_with("```")) {
      if (in_block) return bytes;
      in_block = true;
      continue;
    }
    if (!in_block) continue;
    const auto colon = line.find(": ");
    EXPECT_EQ(std::stoul(line.substr(0, colon)), bytes.size()) << line;
    std::istringstream pairs(line.substr(colon + 2, line.find("  ", colon + 2) - colon - 2));
    for (std::string pair; pairs >> pair;)
      bytes += static_cast<char>(std::stoul(pair, nullptr, 16));
  }
  return bytes;
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{:02x}", i % 16 == 0 ? "\n" : " ", static_cast<std::uint8_t>(bytes[i]));
  return text;
}

TEST(RecordBatchGolden, WorkedExampleOfTheFormatIsWhatTheBuilderWrites) {
  std::string batch = testing::copy(
      testing::build({{"user-1", "hello", 1'700'000'000'000, std::nullopt, {}},
                      {std::nullopt, "", 1'700'000'000'005, "red", {{"from", "app"}}}}));
  stamp({reinterpret_cast<std::byte*>(batch.data()), batch.size()}, Offset(41), LeaderEpoch(3),
        1'700'000'000'100);
  EXPECT_EQ(hex(batch), hex(worked_example()));
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
