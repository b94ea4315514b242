#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/real/posix_file_system.h"
#include "config/broker_config.h"
#include "support/temp_dir.h"

namespace mq::testing {

/// A folder with a broker.toml, and what loading it says.
class ConfigFixture : public ::testing::Test {
 protected:
  static constexpr const char* kMinimal =
      "[broker]\n"
      "id = 1\n"
      "metadata = \"local\"\n"
      "[[storage.disk]]\n"
      "path = \"/data/b\"\n";

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary | std::ios::trunc) << text;
  }
  config::LoadedConfig load() {
    sources_.file = folder_ / "broker.toml";
    return config::load_broker_config(files_, sources_);
  }
  config::LoadedConfig load(const std::string& text) {
    write("broker.toml", text);
    return load();
  }
  /// The errors as lines, without the folder's name.
  std::string errors(const config::LoadedConfig& loaded) {
    std::string lines;
    for (const auto& error : loaded.errors) {
      std::string line = error.text();
      const auto prefix = folder_.path() + "/";
      while (line.find(prefix) != std::string::npos) line.erase(line.find(prefix), prefix.size());
      lines += line + "\n";
    }
    return lines;
  }
  std::string errors(const std::string& text) { return errors(load(text)); }
  static std::string value(const config::LoadedConfig& loaded, const std::string& key) {
    for (const auto& setting : loaded.settings) {
      if (setting.key == key) return setting.value;
    }
    return "<no such key>";
  }
  std::string origin(const config::LoadedConfig& loaded, const std::string& key) {
    for (const auto& setting : loaded.settings) {
      if (setting.key != key) continue;
      const auto prefix = folder_.path() + "/";
      return setting.origin.starts_with(prefix) ? setting.origin.substr(prefix.size())
                                                : setting.origin;
    }
    return "<no such key>";
  }

  TempDir folder_;
  base::PosixFileSystem files_;
  config::ConfigSources sources_;
};

}  // namespace mq::testing
