#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mqctl/cli/run.h"

namespace mq::mqctl::testing {

/// Keeps what is written; fails with `fail_with` (an errno) when that is set.
class StringOutput final : public Output {
 public:
  std::string text;
  int fail_with = 0;

 private:
  int write_all(std::string_view more) override {
    if (fail_with != 0) return fail_with;
    text += more;
    return 0;
  }
};

/// Gives `text` in pieces of at most `piece` bytes.
class StringInput final : public Input {
 public:
  explicit StringInput(std::string text = {}, std::size_t piece = SIZE_MAX)
      : text_(std::move(text)), piece_(piece) {}
  std::ptrdiff_t read(std::span<char> into) override {
    const auto bytes = std::min({piece_, into.size(), text_.size() - at_});
    std::memcpy(into.data(), text_.data() + at_, bytes);
    at_ += bytes;
    return static_cast<std::ptrdiff_t>(bytes);
  }

 private:
  std::string text_;
  std::size_t piece_;
  std::size_t at_ = 0;
};

/// A console of strings, and one command line on it.
class MqctlTest : public ::testing::Test {
 protected:
  int run(const std::vector<std::string>& words) {
    out.text.clear();
    err.text.clear();
    Console console{out, err, in};
    console.in_is_terminal = in_is_terminal;
    console.env = [this](const std::string& name) -> std::optional<std::string> {
      const auto at = environment.find(name);
      if (at == environment.end()) return std::nullopt;
      return at->second;
    };
    if (interrupted) console.interrupted = interrupted;
    console.out_is_terminal = out_is_terminal;
    return mqctl::run(words, console);
  }

  StringOutput out;
  StringOutput err;
  StringInput in;
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  std::function<bool()> interrupted;
  std::map<std::string, std::string> environment;
};

}  // namespace mq::mqctl::testing
