#include "config/broker_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "config/broker_schema.h"
#include "config/config_document.h"
#include "config/listener_rules.h"

namespace mq::config {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;
constexpr std::string_view kDiskKey = "storage.disk.path";
constexpr std::string_view kJournalKey = "storage.disk.journal";

/// A value with where it came from.
struct Given {
  ConfigValue value;
  std::string source;
  Place place;
  int element = 0;  ///< of its list in that source
  [[nodiscard]] std::string origin() const {
    return place.line == 0 ? source : fmt::format("{}:{}", source, place.line);
  }
};

std::string read_failure(const base::Error& error) {
  if (error == make_error_code(base::BaseErrc::not_found)) return "there is no such file";
  if (error == make_error_code(base::BaseErrc::not_permitted))
    return "the file cannot be read: permission denied";
  if (error == make_error_code(base::BaseErrc::too_large)) return "the file is larger than 1 MiB";
  return fmt::format("the file cannot be read: {}", error.message());
}

/// Collects values source by source, weakest first, then applies the strongest ones.
class Loader {
 public:
  explicit Loader(base::FileSystem& files) : files_(files) {}

  LoadedConfig load(const ConfigSources& sources) {
    main_file_ = sources.file;
    read_toml(sources.file);
    read_drop_ins(sources.file);
    for (const auto& [variable, text] : sources.environment) take_variable(variable, text);
    for (const auto& flag : sources.flags) take_flag(flag);
    apply_all();
    check_whole();
    return std::move(loaded_);
  }

 private:
  void read_toml(const std::string& path) {
    note_source(path);
    const auto bytes = base::read_file(files_, path, kFileBytesMax);
    if (!bytes) {
      unread_ = true;
      return add_error(path, {}, "", read_failure(bytes.error()));
    }
    const auto document = parse_document(base::as_text(*bytes));
    unread_ = unread_ || !document.errors.empty();
    for (const auto& error : document.errors) add_error(path, error.place, "", error.message);
    const auto refused = check_sections(path, document);
    take_entries(path, document, refused);
  }

  void read_drop_ins(const std::string& path) {
    const auto slash = path.rfind('/');
    const std::string folder =
        (slash == std::string::npos ? std::string() : path.substr(0, slash + 1)) + "broker.d";
    const auto entries = files_.list_directory(folder);
    if (!entries) {
      if (entries.error() != make_error_code(base::BaseErrc::not_found))
        add_error(folder, {}, "", read_failure(entries.error()));
      return;
    }
    for (const auto& entry : *entries) {
      if (!entry.is_directory && entry.name.ends_with(".toml") && !entry.name.starts_with('.'))
        read_toml(folder + "/" + entry.name);
    }
  }

  /// Reports unknown sections and wrong brackets; returns the sections whose keys say nothing more.
  std::vector<std::string> check_sections(const std::string& path, const Document& document) {
    std::vector<std::string> refused;
    for (const auto& section : document.sections) {
      if (is_below(section.key, refused)) continue;
      const bool known = std::ranges::count(broker_sections(), section.key) > 0;
      if (!known && is_key_part(section.key)) continue;
      const bool list = section.key == kDiskSection;
      if (!known)
        add_error(path, section.place, section.key, explain_unknown_section(section.key));
      else if (section.is_list && !list)
        add_error(path, section.place, section.key,
                  fmt::format("write [{}] with one bracket", section.key));
      else if (!section.is_list && list)
        add_error(path, section.place, section.key,
                  "write [[storage.disk]] with two brackets, one for each disk");
      else
        continue;
      refused.push_back(section.key);
    }
    return refused;
  }

  /// "topic.defaults.retention" is no section, but "retention.age" is written with a dot.
  static bool is_key_part(const std::string& section) {
    return std::ranges::any_of(
        broker_schema(), [&](const ConfigKey& key) { return key.name.starts_with(section + "."); });
  }
  static bool is_below(const std::string& key, const std::vector<std::string>& sections) {
    return std::ranges::any_of(sections, [&](const std::string& section) {
      return key == section || key.starts_with(section + ".");
    });
  }

  void take_entries(const std::string& path, const Document& document,
                    const std::vector<std::string>& refused) {
    std::map<std::pair<std::string, int>, Place> seen;
    bool first_of_list = true;
    for (const auto& entry : document.entries) {
      if (is_below(entry.key, refused)) {
        attempted_.insert(entry.key);
        continue;
      }
      const auto [other, fresh] =
          seen.emplace(std::pair(entry.key, entry.element), entry.key_place);
      if (!fresh) {
        add_error(path, entry.key_place, entry.key,
                  fmt::format("is set twice, here and in line {}", other->second.line));
        continue;
      }
      const Given given{entry.value, path, entry.value_place, entry.element};
      const bool in_list = section_of(entry.key) == kDiskSection;
      if (in_list && first_of_list) forget_list();
      take(entry.key, given, entry.key_place, in_list);
      if (in_list) first_of_list = false;
    }
    mark_refused_sections(refused);
  }

  /// A stronger source says all of the list.
  void forget_list() {
    for (const auto& key : broker_schema()) {
      if (section_of(key.name) == kDiskSection) given_[key.name].clear();
    }
  }

  /// A key whose section was refused counts as tried: "missing" would be a second complaint.
  void mark_refused_sections(const std::vector<std::string>& refused) {
    for (const auto& section : refused) {
      for (const auto& key : broker_schema()) {
        if (is_below(key.name, {section})) attempted_.insert(key.name);
      }
    }
  }

  void take_variable(const std::string& variable, const std::string& text) {
    const auto key = key_of_variable(variable);
    if (!key) return;
    const Given given{{ConfigValue::Type::plain, text}, "environment variable " + variable, {}};
    take(*key, given, {}, false);
  }

  void take_flag(const std::string& flag) {
    const auto equals = flag.find('=');
    const Given given{{ConfigValue::Type::plain,
                       equals == std::string::npos ? std::string() : flag.substr(equals + 1)},
                      "--set",
                      {}};
    const auto key = flag.substr(0, equals);
    if (equals == std::string::npos) return add_error("--set", {}, key, "expected --set key=value");
    take(key, given, {}, false);
  }

  /// `more`: one more element of the list that this source has begun.
  void take(const std::string& key, const Given& given, Place key_place, bool more) {
    if (!find_key(key)) {
      attempted_.insert(key);
      return add_error(given.source, key_place, key, explain_unknown_key(key));
    }
    auto& values = given_[key];
    // Every value has to be good, also one that a stronger source replaces.
    BrokerConfig scratch;
    if (auto refusal = find_key(key)->set(scratch, given.value)) {
      add_error(given.source, given.place, key, std::move(*refusal));
      attempted_.insert(key);
      return;
    }
    // A disk named by a variable or flag replaces those of the files, with their journals.
    if (!more && key == kDiskKey)
      std::erase_if(given_[std::string(kJournalKey)],
                    [](const Given& journal) { return journal.place.line != 0; });
    if (!more) values.clear();
    values.push_back(given);
  }

  void apply_all() {
    for (const auto& key : broker_schema()) {
      std::string origin = "built-in";
      for (const auto& given : given_[key.name]) {
        (void)key.set(loaded_.config, given.value);
        origin = given.origin();
      }
      if (key.name == "listener.clients.advertised" && given_[key.name].empty())
        loaded_.config.listener.advertised = loaded_.config.listener.bind;
      if (key.name == kJournalKey) pair_journals();
      loaded_.settings.push_back({key.name, key.text(loaded_.config), std::move(origin)});
    }
  }

  /// To each disk its journal, by the table that both stand in.
  void pair_journals() {
    auto& journals = loaded_.config.journals;
    const auto paths = std::move(journals);
    journals.assign(loaded_.config.disks.size(), {});
    const auto& disks = given_[std::string(kDiskKey)];
    const auto& given = given_[std::string(kJournalKey)];
    for (std::size_t i = 0; i < std::min(given.size(), paths.size()); ++i) {
      const auto disk = std::ranges::find(disks, given[i].element, &Given::element);
      if (disk == disks.end()) continue;
      journals[static_cast<std::size_t>(disk - disks.begin())] = paths[i];
    }
    const bool none = std::ranges::all_of(journals, &std::string::empty);
    if (none) journals.clear();
  }

  void check_whole() {
    check_required();
    check_disks();
    check_journals();
    check_advertised();
    check_copies();
    std::ranges::stable_sort(loaded_.errors, {}, [this](const ConfigError& error) {
      const auto order = std::ranges::find(source_order_, error.source) - source_order_.begin();
      // What concerns the whole source comes behind its lines.
      return std::tuple(order, error.line == 0, error.line, error.column);
    });
    if (loaded_.ok()) loaded_.warnings = listener_warnings(loaded_.config.listener);
  }

  void check_required() {
    // With a line or file unread it may well be there.
    if (unread_) return;
    for (const auto& key : broker_schema()) {
      if (!key.required || !given_[key.name].empty() || attempted_.contains(key.name)) continue;
      const bool disk = key.name == "storage.disk.path";
      add_error(main_file_, {}, key.name,
                disk
                    ? "is missing; say where the data goes: [[storage.disk]] path = \"/var/lib/mq\""
                    : fmt::format("is missing in [{}]", section_of(key.name)));
    }
  }

  /// Each place of data once: two tables with one path would be one disk under two names.
  void check_disks() {
    const auto& disks = given_["storage.disk.path"];
    const auto& paths = loaded_.config.disks;
    for (std::size_t i = 1; i < std::min(disks.size(), paths.size()); ++i) {
      if (std::find(paths.begin(), paths.begin() + static_cast<std::ptrdiff_t>(i), paths[i]) ==
          paths.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      add_error(
          disks[i].source, disks[i].place, "storage.disk.path",
          fmt::format("{} is there twice; each disk has a [[storage.disk]] of its own", paths[i]));
    }
  }

  void check_journals() {
    const std::string key(kJournalKey);
    const auto& disks = given_[std::string(kDiskKey)];
    for (const auto& given : given_[key]) {
      const auto disk = std::ranges::find(disks, given.element, &Given::element);
      if (disk == disks.end() && attempted_.contains(std::string(kDiskKey))) continue;
      if (disk == disks.end()) {
        add_error(given.source, given.place, key, "there is no path in this [[storage.disk]]");
        continue;
      }
      BrokerConfig one;
      (void)find_key(key)->set(one, given.value);
      const auto& journal = one.journals.front();
      for (const auto& path : loaded_.config.disks) {
        if (journal != path && !journal.starts_with(path + "/")) continue;
        add_error(given.source, given.place, key,
                  fmt::format("{} lies in the data directory {}; leave the key out to have the "
                              "journal there, or name a folder on another device",
                              journal, path));
      }
    }
  }

  /// A standalone broker keeps one replica; and a partition needs min_isr of them.
  void check_copies() {
    const auto& config = loaded_.config;
    const auto check = [&](const char* key, std::uint32_t copies) {
      const auto& given = given_[key];
      if (given.empty() || config.metadata != "local" || copies <= 1) return;
      add_error(given.back().source, given.back().place, key,
                fmt::format("a standalone broker keeps one replica; expected 1, got {}", copies));
    };
    const auto replicas = static_cast<std::uint32_t>(config.default_replicas);
    check("topic.defaults.replicas", replicas);
    check("topic.defaults.min_isr", config.default_min_isr);
    const auto& min_isr = given_["topic.defaults.min_isr"];
    if (min_isr.empty() || replicas == 0 || config.default_min_isr <= replicas) return;
    add_error(min_isr.back().source, min_isr.back().place, "topic.defaults.min_isr",
              fmt::format("{} is more than replicas = {}", config.default_min_isr, replicas));
  }

  void check_advertised() {
    const auto& listener = loaded_.config.listener;
    const auto& bind = given_["listener.clients.bind"];
    if (!given_["listener.clients.advertised"].empty() || bind.empty()) return;
    if (attempted_.contains("listener.clients.advertised") || !is_wildcard(listener.bind.host))
      return;
    add_error(bind.back().source, bind.back().place, "listener.clients.advertised",
              fmt::format("is needed, because clients cannot connect to {}; name this machine as "
                          "they see it, such as \"hdd-01:{}\"",
                          listener.bind.host, kDefaultPort));
  }

  void add_error(const std::string& source, Place place, std::string key, std::string message) {
    note_source(source);
    loaded_.errors.push_back(
        {source, place.line, place.column, std::move(key), std::move(message)});
  }
  void note_source(const std::string& source) {
    if (std::ranges::count(source_order_, source) == 0) source_order_.push_back(source);
  }

  base::FileSystem& files_;
  std::string main_file_;
  LoadedConfig loaded_;
  std::map<std::string, std::vector<Given>> given_;  ///< the strongest source's values by key
  std::set<std::string> attempted_;                  ///< keys of which a value was refused
  std::vector<std::string> source_order_;
  bool unread_ = false;
};

}  // namespace

std::string ConfigError::text() const {
  std::string text = base::printable(source, 500);
  if (line != 0) text += fmt::format(":{}:{}", line, column);
  if (!key.empty()) text += fmt::format(": {}", base::printable(key, 200));
  return text + ": " + message;
}

LoadedConfig load_broker_config(base::FileSystem& files, const ConfigSources& sources) {
  return Loader(files).load(sources);
}

std::string render_effective_config(const std::vector<EffectiveSetting>& settings) {
  std::size_t widest = 0;
  for (const auto& setting : settings)
    widest = std::max(widest, setting.key.size() + setting.value.size() + 3);
  std::string text;
  for (const auto& setting : settings) {
    const auto line = fmt::format("{} = {}", setting.key, setting.value);
    text += fmt::format("{:<{}}  # {}\n", line, widest, setting.origin);
  }
  return text;
}

}  // namespace mq::config
