#include "mqctl/data/framing.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "unit/mqctl/console_fixture.h"

namespace mq::mqctl {
namespace {

using testing::StringInput;
using Mode = Framing::Mode;

std::vector<std::string> pieces(const std::string& text, Framing framing,
                                std::size_t read_bytes = SIZE_MAX) {
  StringInput input(text, read_bytes);
  Framer framer(input, std::move(framing));
  std::vector<std::string> found;
  while (true) {
    const auto got = framer.next();
    if (got == Framer::Got::end) return found;
    if (got == Framer::Got::piece)
      found.emplace_back(framer.piece());
    else
      found.push_back("too large: " + std::to_string(framer.piece_bytes()));
  }
}

using Pieces = std::vector<std::string>;

TEST(Framer, DelimiterIsNoPartOfARecordAndTheLastNeedsNone) {
  EXPECT_EQ(pieces("a\nb\n", {}), (Pieces{"a", "b"}));
  EXPECT_EQ(pieces("a\n\nlast", {}), (Pieces{"a", "", "last"}));
  EXPECT_EQ(pieces("", {}), Pieces{});
  EXPECT_EQ(pieces("\n", {}), Pieces{""});
}

TEST(Framer, ADelimiterMayBeLongAndSplitOverReads) {
  for (std::size_t read = 1; read < 6; ++read)
    EXPECT_EQ(pieces("a--b-c--d-", {.delimiter = "--"}, read), (Pieces{"a", "b-c", "d-"})) << read;
}

TEST(Framer, BinaryZeroMayEndRecords) {
  EXPECT_EQ(pieces(std::string("x\ny\0z\0", 6), {.delimiter = std::string(1, '\0')}),
            (Pieces{"x\ny", "z"}));
}

TEST(Framer, LinesKeepTheirNewline) {
  EXPECT_EQ(pieces("a\n\nb", {.mode = Mode::line}), (Pieces{"a\n", "\n", "b"}));
}

TEST(Framer, ParagraphsKeepTheirBlankLines) {
  EXPECT_EQ(pieces("A: 1\nB: 2\n\nA: 3\n\n\n\nA: 4\n", {.mode = Mode::paragraph}),
            (Pieces{"A: 1\nB: 2\n\n", "A: 3\n\n\n\n", "A: 4\n"}));
  EXPECT_EQ(pieces("\n\nA: 1\n\n", {.mode = Mode::paragraph}), (Pieces{"\n\nA: 1\n\n"}));
  EXPECT_EQ(pieces("\n\n", {.mode = Mode::paragraph}), (Pieces{"\n\n"}));
}

TEST(Framer, ChunksHaveOneSizeButForTheLast) {
  EXPECT_EQ(pieces("abcdefgh", {.mode = Mode::chunk, .chunk_bytes = 3}, 2),
            (Pieces{"abc", "def", "gh"}));
}

TEST(Framer, AnEndlessPieceIsReportedAndTheNextOneIsWhole) {
  const Framing framing{.piece_bytes_max = 1000};
  std::string text(2'000'000, 'x');
  text.append("\nok\n");
  EXPECT_EQ(pieces(text, framing, 4096), (Pieces{"too large: 2000000", "ok"}));
}

/// Joined, the pieces are the input: for any bytes, in any mode that promises it, however the reads
/// fall.
TEST(Framer, PiecesJoinedAreTheInput) {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = random() % 3 == 0 ? '\n' : static_cast<char>('a' + random() % 3);
    const auto read = 1 + random() % 20;
    for (const auto mode : {Mode::line, Mode::paragraph, Mode::chunk}) {
      std::string joined;
      for (const auto& piece : pieces(text, {.mode = mode, .chunk_bytes = 7}, read)) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      }
      EXPECT_EQ(joined, text) << "mode " << static_cast<int>(mode) << " read " << read;
    }
  }
}

TEST(Framer, HowReadsFallChangesNothing) {
  std::mt19937 random(12);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 100, '\0');
    for (char& c : text) c = random() % 2 == 0 ? '\n' : 'x';
    for (const auto mode : {Mode::delimiter, Mode::line, Mode::paragraph})
      EXPECT_EQ(pieces(text, {.mode = mode}, 1 + random() % 9), pieces(text, {.mode = mode}));
  }
}

TEST(FieldOf, FindsTheFirstLineOfThatName) {
  EXPECT_EQ(field_of("Source: x\nPackage:  bash \nPackage: no\n", "package"), "bash");
  EXPECT_EQ(field_of("Package:\n", "Package"), "");
  EXPECT_EQ(field_of(" Package: continued\n", "Package"), std::nullopt);
  EXPECT_EQ(field_of("", "Package"), std::nullopt);
}

}  // namespace
}  // namespace mq::mqctl
