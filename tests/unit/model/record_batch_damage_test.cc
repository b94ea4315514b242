// LOG-3, LOG-4: every single flipped bit of a stored batch is seen, whatever its codec.
#include <gtest/gtest.h>

#include "batch_samples.h"

namespace mq::model {
namespace {

class RecordBatchDamage : public ::testing::TestWithParam<Codec> {
 protected:
  std::string stamped() const {
    std::string batch = testing::copy(testing::build(testing::sample_records(), GetParam()));
    stamp({reinterpret_cast<std::byte*>(batch.data()), batch.size()}, Offset(1000), LeaderEpoch(3),
          1'700'000'002'000);
    return batch;
  }
};

TEST_P(RecordBatchDamage, SampleUsesItsCodec) {
  const std::string batch = stamped();
  const auto view = RecordBatchView::parse(base::as_bytes(batch));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->codec(), GetParam());
  EXPECT_EQ(testing::read(base::as_bytes(batch)), testing::sample_records());
}

TEST_P(RecordBatchDamage, EveryBitFlipIsSeen) {
  std::string batch = stamped();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      batch[i] = static_cast<char>(batch[i] ^ (1 << bit));
      const auto whole = RecordBatchView::parse(base::as_bytes(batch));
      EXPECT_FALSE(whole) << "byte " << i << " bit " << bit;
      // A flip in the length may point behind what is there; all else is damage by name, and never
      // taken for another format.
      const auto first = RecordBatchView::parse_first(base::as_bytes(batch));
      ASSERT_FALSE(first);
      EXPECT_EQ(first.error(), ModelErrc::corrupt_batch) << "byte " << i << " bit " << bit;
      batch[i] = static_cast<char>(batch[i] ^ (1 << bit));
    }
  }
}

TEST_P(RecordBatchDamage, EveryByteValueIsSeen) {
  std::string batch = stamped();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const char right = batch[i];
    for (unsigned value = 0; value < 256; ++value) {
      batch[i] = static_cast<char>(value);
      if (batch[i] == right) continue;
      ASSERT_FALSE(RecordBatchView::parse_first(base::as_bytes(batch))) << i << " " << value;
    }
    batch[i] = right;
  }
}

TEST_P(RecordBatchDamage, DamagedPackedBytesNeverCrashTheReader) {
  // With checksums made right again: what a wrong writer could send.
  const std::string right = stamped();
  for (std::size_t i = 96; i < right.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string batch = right;
      batch[i] = static_cast<char>(batch[i] ^ (1 << bit));
      testing::seal(batch);
      ASSERT_TRUE(RecordBatchView::parse(base::as_bytes(batch)));
      (void)testing::read(base::as_bytes(batch));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Codecs, RecordBatchDamage,
                         ::testing::Values(Codec::none, Codec::lz4, Codec::zstd),
                         [](const auto& info) { return std::string(codec_name(info.param)); });

}  // namespace
}  // namespace mq::model
