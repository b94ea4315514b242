// CLI-3: one key, one partition, in every version and build. Also compiled with the other
// signedness of char (partitioner_unsigned_char_tests).
#include "model/partitioner.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.h"

namespace mq::model {
namespace {

constexpr std::array<std::size_t, 5> kCounts{1, 3, 7, 10, 4096};

struct Vector {
  std::vector<std::byte> key;
  std::uint64_t hash = 0;
  std::array<std::size_t, kCounts.size()> slots{};
};

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  if (hex == "-") return bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

std::vector<Vector> published_vectors() {
  std::ifstream in(MQ_MODEL_TEST_DIR "/partitioner_vectors.txt");
  std::vector<Vector> vectors;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string key;
    std::string hash;
    Vector vector;
    words >> key >> hash;
    vector.key = from_hex(key);
    vector.hash = std::stoull(hash, nullptr, 16);
    for (auto& slot : vector.slots) words >> slot;
    EXPECT_FALSE(words.fail()) << line;
    vectors.push_back(vector);
  }
  return vectors;
}

TEST(Partitioner, PublishedVectorsHold) {
  const auto vectors = published_vectors();
  ASSERT_EQ(vectors.size(), 100u);
  for (const auto& vector : vectors) {
    EXPECT_EQ(base::xxh3_64(vector.key), vector.hash);
    for (std::size_t i = 0; i < kCounts.size(); ++i)
      EXPECT_EQ(key_slot(vector.key, kCounts[i]), vector.slots[i]);
  }
}

TEST(Partitioner, HashOfTheEmptyKeyIsTheReferenceValue) {
  // From the reference implementation of XXH3 with seed 0.
  EXPECT_EQ(base::xxh3_64({}), 0x2d06800538d394c2u);
}

TEST(Partitioner, RandomBinaryKeysStayInRange) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200'000; ++i) {
    std::vector<std::byte> key(random() % 40);
    for (auto& byte : key) byte = static_cast<std::byte>(random());
    for (const std::size_t count : kCounts) ASSERT_LT(key_slot(key, count), count);
  }
}

TEST(Partitioner, ChoosesAmongActivePartitionsByPosition) {
  const std::vector<std::int32_t> active{2, 5, 9};
  for (const auto& vector : published_vectors())
    EXPECT_EQ(partition_for_key(vector.key, active), active[vector.slots[1]]);
}

TEST(Partitioner, KeysSpreadEvenly) {
  std::array<int, 10> hits{};
  for (int i = 0; i < 100'000; ++i) {
    const std::string key = "user-" + std::to_string(i);
    ++hits[key_slot(base::as_bytes(key), hits.size())];
  }
  for (const int count : hits) EXPECT_NEAR(count, 10'000, 500);
}

}  // namespace
}  // namespace mq::model
