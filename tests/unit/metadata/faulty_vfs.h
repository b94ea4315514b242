#pragma once

#include <functional>
#include <string>

namespace mq::testing {

/// While it lives, SQLite's files go through it, and a call can be made to fail: `decide` gets the
/// call ("write", "sync", "read") and the file's name and answers with 0 or an SQLite error code.
/// One at a time; files opened under it are closed before it goes.
class FaultyVfs {
 public:
  using Decide = std::function<int(const std::string& call, const std::string& file)>;
  FaultyVfs();
  ~FaultyVfs();
  FaultyVfs(const FaultyVfs&) = delete;
  FaultyVfs& operator=(const FaultyVfs&) = delete;
  void set(Decide decide);
};

}  // namespace mq::testing
