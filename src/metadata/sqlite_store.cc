#include "metadata/sqlite_store.h"

#include "metadata/node_table.h"
#include "metadata/serial_executor.h"
#include "metadata/sqlite_database.h"
#include "metadata/watch_list.h"

namespace mq::metadata {
namespace {

/// The awaitable face of one database. Work on the disk thread shares ownership of all it touches,
/// so that nothing dangles when a caller is destroyed meanwhile.
class SqliteStore final : public MetadataStore {
 public:
  SqliteStore(SerialExecutor executor, base::Runtime& runtime, std::uint64_t session)
      : executor_(std::move(executor)), session_(session), watches_(runtime) {}

  asio::awaitable<Result<void>> open(std::string path) {
    using Opened = std::shared_ptr<SqliteDatabase>;
    const auto opened =
        std::make_shared<Result<Opened>>(make_error_code(MetadataErrc::unavailable));
    std::function<void()> work = [opened, path = std::move(path), session = session_] {
      auto result = SqliteDatabase::open(path, session);
      if (result)
        *opened = Result<Opened>(Opened(std::move(*result)));
      else
        *opened = Result<Opened>(result.error());
    };
    co_await executor_.run(std::move(work));
    if (!*opened) co_return opened->error();
    database_ = **opened;
    co_return Result<void>();
  }

  asio::awaitable<Result<Node>> get(std::string path) override {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    Work<std::optional<Node>> work = [path = std::move(path)](SqliteDatabase& database) {
      return database.get(path);
    };
    auto found = co_await call(std::move(work));
    if (!found) co_return found.error();
    if (!*found) co_return make_error_code(MetadataErrc::not_found);
    co_return std::move(**found);
  }

  asio::awaitable<Result<std::vector<std::optional<Node>>>> get_many(
      std::vector<std::string> paths) override {
    for (const auto& path : paths) {
      if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    }
    Work<std::vector<std::optional<Node>>> work =
        [paths = std::move(paths)](SqliteDatabase& database) { return read_all(database, paths); };
    co_return co_await call(std::move(work));
  }

  asio::awaitable<Result<std::vector<std::string>>> children(std::string path) override {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    Work<std::vector<std::string>> work = [path = std::move(path)](SqliteDatabase& database) {
      return database.children(path);
    };
    co_return co_await call(std::move(work));
  }

  asio::awaitable<Result<MultiResult>> multi(std::vector<Operation> operations) override {
    if (const auto wrong = check_operations(operations)) co_return wrong;
    const auto shared = std::make_shared<const std::vector<Operation>>(std::move(operations));
    Work<MultiResult> work = [shared](SqliteDatabase& database) { return database.multi(*shared); };
    auto result = co_await call(std::move(work));
    if (result && result->applied()) watches_.changed(*shared);
    co_return std::move(result);
  }

  asio::awaitable<Result<void>> watch(std::string path, WatchKind kind,
                                      std::function<void()> fire) override {
    if (check_path(path)) co_return make_error_code(MetadataErrc::invalid_path);
    if (!online()) co_return make_error_code(MetadataErrc::unavailable);
    watches_.add(std::move(path), kind, std::move(fire));
    co_return Result<void>();
  }

  std::uint64_t session() const override { return session_; }
  bool online() const override { return database_->online(); }

  asio::awaitable<void> close() override {
    std::function<void()> work = [database = database_] { database->close(); };
    co_await executor_.run(std::move(work));
  }

 private:
  template <class T>
  using Work = std::function<Result<T>(SqliteDatabase&)>;

  template <class T>
  asio::awaitable<Result<T>> call(Work<T> work) {
    const auto outcome = std::make_shared<Result<T>>(make_error_code(MetadataErrc::unavailable));
    std::function<void()> task = [database = database_, outcome, work = std::move(work)] {
      *outcome = work(*database);
    };
    co_await executor_.run(std::move(task));
    co_return std::move(*outcome);
  }

  static Result<std::vector<std::optional<Node>>> read_all(SqliteDatabase& database,
                                                           const std::vector<std::string>& paths) {
    std::vector<std::optional<Node>> found;
    found.reserve(paths.size());
    for (const auto& path : paths) {
      MQ_TRY(auto node, database.get(path));
      found.push_back(std::move(node));
    }
    return found;
  }

  SerialExecutor executor_;
  std::uint64_t session_;
  WatchList watches_;
  std::shared_ptr<SqliteDatabase> database_;
};

}  // namespace

asio::awaitable<Result<std::unique_ptr<MetadataStore>>> open_sqlite_store(std::string path,
                                                                          base::DiskExecutor& disk,
                                                                          base::Runtime& runtime) {
  // The session is kept as a signed number; 0 means none.
  const std::uint64_t session = (runtime.random() >> 1) | 1;
  auto store = std::make_unique<SqliteStore>(SerialExecutor(disk), runtime, session);
  const auto opened = co_await store->open(std::move(path));
  if (!opened) co_return opened.error();
  co_return std::unique_ptr<MetadataStore>(std::move(store));
}

}  // namespace mq::metadata
