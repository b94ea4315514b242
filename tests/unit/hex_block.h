#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace mq::testing {

/// The hex bytes of the first fenced block behind the heading that contains `heading`: per line a
/// position, a colon, pairs of hex digits, then two blanks and a comment. Documents and code are
/// held together this way.
inline std::string hex_block(const std::string& file, std::string_view heading) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  std::string bytes;
  bool in_section = false;
  bool in_block = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) in_section = line.find(heading) != std::string::npos;
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

/// Sixteen bytes a line, for messages of failed expectations.
inline std::string hex_lines(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{:02x}", i % 16 == 0 ? "\n" : " ", static_cast<std::uint8_t>(bytes[i]));
  return text;
}

}  // namespace mq::testing
