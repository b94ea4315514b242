#include "mqctl/cli/table.h"

#include <fmt/format.h>

#include <algorithm>

namespace mq::mqctl {
namespace {

/// Code points, which is near enough to columns for what is shown.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  for (std::size_t i = 0; i + 1 < cells.size(); ++i)
    if (cells[i].empty()) cells[i].assign(1, '-');
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = width_of(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto add_line = [&](auto&& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_at(i);
      const std::size_t pad = widths[i] - width_of(cell);
      if (i > 0) line.append(2, ' ');
      if (columns_[i].align == Align::right) line.append(pad, ' ');
      line.append(cell);
      if (columns_[i].align == Align::left) line.append(pad, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text.append(line).append(1, '\n');
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_)
    add_line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

std::string grouped(std::uint64_t number) {
  const std::string digits = fmt::format("{}", number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

}  // namespace mq::mqctl
