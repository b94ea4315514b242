#include "mqctl/data/record_source.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/unique_fd.h"
#include "base/units.h"

namespace mq::mqctl {
namespace {

class FileInput final : public Input {
 public:
  explicit FileInput(base::UniqueFd fd) : fd_(std::move(fd)), input_(fd_.get()) {}
  std::ptrdiff_t read(std::span<char> into) override { return input_.read(into); }

 private:
  base::UniqueFd fd_;
  FdInput input_;
};

[[noreturn]] void throw_unreadable(const std::string& file, int error) {
  auto failure =
      make_failure(protocol::WireError::file_unreadable, fmt::format("{} cannot be read", file),
                   std::generic_category().message(error));
  failure.item = file;
  throw Failed(std::move(failure));
}

base::UniqueFd open_file(const std::string& file) {
  base::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) throw_unreadable(file, errno);
  return fd;
}

}  // namespace

RecordSource::RecordSource(Console& console, std::vector<std::string> files, SourceOptions options)
    : console_(console), files_(std::move(files)), options_(std::move(options)) {
  if (files_.empty()) files_.emplace_back("-");
  for (const auto& file : files_)
    if (file != "-") open_file(file);
}

bool RecordSource::open_next() {
  if (next_file_ == files_.size()) return false;
  const auto& file = files_[next_file_++];
  first_numbers_.push_back(number_ + 1);
  file_ = file == "-" ? nullptr : std::make_unique<FileInput>(open_file(file));
  framer_.emplace(file_ ? *file_ : console_.in, options_.framing);
  return true;
}

std::string RecordSource::name_of(std::uint64_t number) const {
  std::size_t file = 0;
  while (file + 1 < first_numbers_.size() && first_numbers_[file + 1] <= number) ++file;
  if (files_[file] == "-") return fmt::format("record {}", number);
  return fmt::format("record {} of {}", number - first_numbers_[file] + 1, files_[file]);
}

RecordSource::Got RecordSource::refuse(protocol::WireError code, std::string why) {
  refusal_ = make_failure(code, fmt::format("{} was not sent", name_of(number_)), std::move(why),
                          "mqctl produce --help");
  refusal_.item = name_of(number_);
  return Got::refused;
}

RecordSource::Got RecordSource::next(SourceRecord& record) {
  while (true) {
    if (!framer_ && !open_next()) return Got::end;
    const auto got = framer_->next();
    switch (got) {
      case Framer::Got::end:
        framer_.reset();
        continue;
      case Framer::Got::failed:
        throw_unreadable(file_ ? files_[next_file_ - 1] : "standard input", framer_->error());
      case Framer::Got::interrupted:
        if (console_.interrupted()) return Got::interrupted;
        continue;
      case Framer::Got::too_large:
        ++number_;
        return refuse(
            protocol::WireError::record_too_large,
            fmt::format("it is {} long, more than {}", base::format_bytes(framer_->piece_bytes()),
                        base::format_bytes(options_.framing.piece_bytes_max)));
      case Framer::Got::piece:
        ++number_;
        return make_record(record);
    }
  }
}

bool RecordSource::split_key(SourceRecord& record, std::string_view& value) {
  if (options_.key_field) {
    const auto key = field_of(value, *options_.key_field);
    if (key) record.key = as_bytes(*key);
    return true;
  }
  if (!options_.key_separator) return true;
  const auto at = value.find(*options_.key_separator);
  if (at == std::string_view::npos) return false;
  record.key = as_bytes(value.substr(0, at));
  value.remove_prefix(at + options_.key_separator->size());
  return true;
}

RecordSource::Got RecordSource::make_record(SourceRecord& record) {
  record = SourceRecord{};
  for (const auto& [name, value] : options_.headers)
    record.headers.push_back({name, as_bytes(value)});
  record.bytes = framer_->piece_bytes();
  if (options_.json) return make_json_record(record);
  std::string_view value = framer_->piece();
  if (!split_key(record, value))
    return refuse(protocol::WireError::invalid_argument,
                  fmt::format("it has no key separator \"{}\"", *options_.key_separator));
  if (!value.empty() || !options_.empty_is_tombstone) record.value = as_bytes(value);
  return Got::record;
}

RecordSource::Got RecordSource::make_json_record(SourceRecord& record) {
  auto parsed = parse_record_json(framer_->piece());
  if (!parsed.record) return refuse(protocol::WireError::invalid_argument, parsed.error);
  json_ = std::move(parsed.record);
  if (json_->key) record.key = as_bytes(*json_->key);
  if (json_->value) record.value = as_bytes(*json_->value);
  if (json_->unix_ms) record.timestamp = Timestamp(Duration(*json_->unix_ms));
  for (const auto& header : json_->headers)
    record.headers.push_back(
        {header.name, header.value ? std::optional(as_bytes(*header.value)) : std::nullopt});
  return Got::record;
}

}  // namespace mq::mqctl
