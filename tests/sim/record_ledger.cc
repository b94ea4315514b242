#include "sim/record_ledger.h"

#include "base/strings.h"
#include "sim/violation.h"

namespace mq::sim {

void RecordLedger::note(std::int64_t offset, std::string_view value, const char* how) {
  const auto [at, added] = values_.emplace(offset, std::string(value));
  require(added || at->second == value, "LOG-2: {}: offset {} was \"{}\" and is now {} as \"{}\"",
          name_, offset, at->second.substr(0, 24), how, value.substr(0, 24));
}

void RecordLedger::acknowledged(std::int64_t offset, std::string_view value) {
  note(offset, value, "acknowledged");
}
void RecordLedger::consumed(std::int64_t offset, std::string_view value) {
  note(offset, value, "read");
}

void RecordLedger::check_complete(const std::map<std::int64_t, std::string>& found) const {
  for (const auto& [offset, value] : values_) {
    const auto at = found.find(offset);
    require(at != found.end(), "{}: offset {} (\"{}\") is lost", name_, offset,
            value.substr(0, 24));
    require(at->second == value, "LOG-2: {}: offset {} was \"{}\" and is \"{}\" in the end", name_,
            offset, value.substr(0, 24), at->second.substr(0, 24));
  }
}

std::string make_value(std::uint64_t producer, std::uint64_t number, std::size_t padding) {
  std::string value = fmt::format("{}:{}:", producer, number);
  const std::size_t named = value.size();
  value.resize(named + padding);
  for (std::size_t i = named; i < value.size(); ++i)
    value[i] = static_cast<char>((producer * 31 + number * 17 + i) % 256);
  return value;
}

std::string SentRecords::next_value(std::size_t padding) const {
  return make_value(producer_, next_number(), padding);
}

void SentRecords::result(std::uint64_t number, bool delivered, bool repeated) {
  require(number < results_.size(),
          "CLI-1: producer {}: a result for record {}, which was never sent", producer_, number);
  require(results_[number] == Result::none, "CLI-1: producer {}: record {} has two results",
          producer_, number);
  ++resolved_;
  if (delivered) ++delivered_;
  results_[number] = !delivered ? Result::failed
                     : repeated ? Result::delivered_perhaps_twice
                                : Result::delivered;
}

bool SentRecords::may_repeat(std::uint64_t number) const {
  return (!idempotent_ || forgotten_) && number < results_.size() &&
         results_[number] != Result::delivered;
}

ValueName parse_value(std::string_view value) {
  const auto first = value.find(':');
  const auto second = value.find(':', first + 1);
  require(first != std::string_view::npos && second != std::string_view::npos,
          "LOG-7: \"{}\" is no value that was sent", value.substr(0, 24));
  const auto producer = base::parse_unsigned(value.substr(0, first));
  const auto number = base::parse_unsigned(value.substr(first + 1, second - first - 1));
  require(producer && number, "LOG-7: \"{}\" is no value that was sent", value.substr(0, 24));
  for (std::size_t i = second + 1; i < value.size(); ++i) {
    require(value[i] == static_cast<char>((*producer * 31 + *number * 17 + i) % 256),
            "LOG-7: the value of {}:{} came back with another byte at {}", *producer, *number, i);
  }
  return {*producer, *number};
}

void check_order(const std::string& partition, const std::map<std::int64_t, std::string>& found,
                 const std::map<std::uint64_t, const SentRecords*>& producers) {
  std::map<std::uint64_t, std::set<std::uint64_t>> seen;
  for (const auto& [offset, value] : found) {
    const auto name = parse_value(value);
    const auto sender = producers.find(name.producer);
    require(sender != producers.end() && name.number < sender->second->next_number(),
            "{}: offset {} holds {}:{}, which nobody sent", partition, offset, name.producer,
            name.number);
    auto& numbers = seen[name.producer];
    if (numbers.contains(name.number)) {
      require(sender->second->may_repeat(name.number),
              "IDM-2: {}: record {}:{} is there twice (again at offset {})", partition,
              name.producer, name.number, offset);
      continue;
    }
    // Retention may have taken the first of two.
    const bool repeats_what_is_gone =
        found.begin()->first > 0 && sender->second->may_repeat(name.number);
    require(numbers.empty() || name.number > *numbers.rbegin() || repeats_what_is_gone,
            "CLI-2: {}: record {}:{} at offset {} stands behind {}", partition, name.producer,
            name.number, offset, numbers.empty() ? 0 : *numbers.rbegin());
    numbers.insert(name.number);
  }
}

}  // namespace mq::sim
