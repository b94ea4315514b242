// The sample that operators start from: it works as it is, and it shows every key there is.
#include "config/broker_schema.h"
#include "unit/config/config_fixture.h"

namespace mq::config {
namespace {

std::string sample() {
  std::ifstream in(MQ_SAMPLE_CONFIG, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// The sample with its commented keys ("#key = value", no blank behind the mark) put in force.
std::string sample_with_all_keys() {
  std::string text = sample();
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool line_begins = at == 0 || text[at - 1] == '\n';
    if (line_begins && text[at] == '#' && at + 1 < text.size() && text[at + 1] != ' ' &&
        text[at + 1] != '\n')
      text[at] = ' ';
  }
  return text;
}

using SampleConfig = mq::testing::ConfigFixture;

TEST_F(SampleConfig, LoadsAsItIs) {
  const auto loaded = load(sample());
  EXPECT_TRUE(loaded.ok()) << errors(loaded);
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST_F(SampleConfig, EveryKeyOfTheSchemaIsInItAndGood) {
  const auto loaded = load(sample_with_all_keys());
  EXPECT_TRUE(loaded.ok()) << errors(loaded);
  for (const auto& key : broker_schema())
    EXPECT_TRUE(origin(loaded, key.name).starts_with("broker.toml:")) << key.name;
}

/// The commented values are the built-in ones, so that nobody reads a default that is none.
TEST_F(SampleConfig, CommentedValuesAreTheBuiltInOnes) {
  const auto plain = load(sample());
  const auto all = load(sample_with_all_keys());
  for (const auto& setting : plain.settings) EXPECT_EQ(value(all, setting.key), setting.value);
}

}  // namespace
}  // namespace mq::config
