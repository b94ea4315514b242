#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mq::mqctl {

/// Columns of text, two blanks between them, numbers to the right. The last column is not padded.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as there are columns; an empty one is shown as "-", but for the last.
  void add(std::vector<std::string> cells);
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool empty() const noexcept { return rows_.empty(); }

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// "1 record", "2 records".
std::string counted(std::uint64_t count, std::string_view noun);
/// "984120077" as "984,120,077".
std::string grouped(std::uint64_t number);

}  // namespace mq::mqctl
