#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mq::sim {

/// What clients know about one partition: each value at an offset, by an acknowledgement or by
/// reading it. Throws Violation when two of them do not agree.
class RecordLedger {
 public:
  explicit RecordLedger(std::string name) : name_(std::move(name)) {}

  void acknowledged(std::int64_t offset, std::string_view value);
  void consumed(std::int64_t offset, std::string_view value);
  /// After a crash that may take unsynced records: nothing is promised from `offset` on.
  void forget_from(std::int64_t offset) {
    values_.erase(values_.lower_bound(offset), values_.end());
  }
  /// Retention has removed what lies below.
  void forget_below(std::int64_t offset) {
    values_.erase(values_.begin(), values_.lower_bound(offset));
  }
  /// The exclusive end of what is known to exist.
  [[nodiscard]] std::int64_t end() const noexcept {
    return values_.empty() ? 0 : values_.rbegin()->first + 1;
  }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// All that a reader found in [start, end) must have everything that is known there.
  void check_complete(const std::map<std::int64_t, std::string>& found) const;

 private:
  void note(std::int64_t offset, std::string_view value, const char* how);

  std::string name_;
  std::map<std::int64_t, std::string> values_;
};

/// "<producer>:<n>:<padding>", every byte of which is known from the two numbers.
std::string make_value(std::uint64_t producer, std::uint64_t number, std::size_t padding);

/// The records that one producer sent: values "<producer>:<n>:<padding>", and the one result of
/// each.
class SentRecords {
 public:
  /// `idempotent`: nothing of it may ever be there twice.
  explicit SentRecords(std::uint64_t producer, bool idempotent = false)
      : producer_(producer), idempotent_(idempotent) {}

  /// The value of the next record; it counts as accepted once accepted() is called.
  [[nodiscard]] std::string next_value(std::size_t padding) const;
  std::uint64_t accepted() {
    results_.push_back(Result::none);
    return results_.size() - 1;
  }
  [[nodiscard]] std::uint64_t next_number() const noexcept { return results_.size(); }
  /// CLI-1: exactly one result. `repeated`: it was sent more than once, or its outcome is unknown.
  void result(std::uint64_t number, bool delivered, bool repeated);
  [[nodiscard]] std::size_t without_result() const noexcept { return results_.size() - resolved_; }
  /// The logs may have forgotten it: from now on it is like one that is not idempotent.
  void forgotten() noexcept { forgotten_ = true; }
  [[nodiscard]] bool may_repeat(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t producer() const noexcept { return producer_; }
  [[nodiscard]] bool idempotent() const noexcept { return idempotent_; }
  [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }

 private:
  enum class Result : std::uint8_t { none, delivered, delivered_perhaps_twice, failed };

  std::uint64_t producer_;
  bool idempotent_;
  bool forgotten_ = false;
  std::vector<Result> results_;
  std::size_t resolved_ = 0;
  std::uint64_t delivered_ = 0;
};

/// Producer and number of a value made by next_value(); nothing of another form passes.
struct ValueName {
  std::uint64_t producer = 0;
  std::uint64_t number = 0;
};
ValueName parse_value(std::string_view value);

/// CLI-2: in one partition, the first appearances of a producer's records rise, and only records
/// that may repeat do.
void check_order(const std::string& partition, const std::map<std::int64_t, std::string>& found,
                 const std::map<std::uint64_t, const SentRecords*>& producers);

}  // namespace mq::sim
