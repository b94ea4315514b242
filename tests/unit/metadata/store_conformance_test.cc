// What every metadata store does, written against the interface only: a new backend is added to
// store_backends() and runs all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/metadata/store_backends.h"

namespace mq::metadata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreConformance : public ::testing::TestWithParam<mq::testing::StoreBackendKind> {
 protected:
  StoreConformance() : backend_(GetParam().make()), store_(backend_->open(loop_)) {}
  ~StoreConformance() override {
    if (store_) loop_.run(store_->close());
  }

  Error create(const std::string& path, const std::string& value = "",
               CreateMode mode = CreateMode::persistent) {
    return loop_.run(store_->create(path, value, mode)).error();
  }
  Error set(const std::string& path, const std::string& value, std::int32_t version) {
    return loop_.run(store_->set(path, value, version)).error();
  }
  Error remove(const std::string& path, std::int32_t version = kAnyVersion) {
    return loop_.run(store_->remove(path, version)).error();
  }
  Result<Node> get(const std::string& path) { return loop_.run(store_->get(path)); }
  std::string value(const std::string& path) {
    const auto node = get(path);
    return node ? node->value : "<" + node.error().message() + ">";
  }
  bool exists(const std::string& path) { return get(path).has_value(); }
  std::vector<std::string> children(const std::string& path) {
    const auto names = loop_.run(store_->children(path));
    EXPECT_TRUE(names.has_value());
    return names ? *names : std::vector<std::string>{};
  }
  Result<MultiResult> multi(std::vector<Operation> operations) {
    return loop_.run(store_->multi(std::move(operations)));
  }
  std::vector<Error> errors(const MultiResult& result) {
    std::vector<Error> all;
    for (const auto& one : result.operations) all.push_back(one.error);
    return all;
  }
  void reopen_after_crash() {
    backend_->crash(std::move(store_));
    store_ = backend_->open(loop_);
  }
  void reopen_after_close() {
    loop_.run(store_->close());
    store_.reset();
    store_ = backend_->open(loop_);
  }

  mq::testing::RunLoop loop_;
  std::unique_ptr<mq::testing::StoreBackend> backend_;
  std::unique_ptr<MetadataStore> store_;
};

const Error kDone;
const Error kNotFound = MetadataErrc::not_found;
const Error kExists = MetadataErrc::already_exists;
const Error kBadVersion = MetadataErrc::bad_version;
const Error kNotEmpty = MetadataErrc::not_empty;
const Error kNotApplied = MetadataErrc::not_applied;
const Error kInvalidPath = MetadataErrc::invalid_path;
const Error kTooLarge = MetadataErrc::too_large;
const Error kUnavailable = MetadataErrc::unavailable;

TEST_P(StoreConformance, RootIsThereAndStays) {
  EXPECT_TRUE(exists("/"));
  EXPECT_THAT(children("/"), IsEmpty());
  EXPECT_EQ(create("/"), kExists);
  EXPECT_TRUE(remove("/"));
}

TEST_P(StoreConformance, CreatedNodeHasItsValueAndVersionZero) {
  const auto version = loop_.run(store_->create("/a", "one"));
  ASSERT_TRUE(version);
  EXPECT_EQ(*version, 0);
  const auto node = get("/a");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->value, "one");
  EXPECT_EQ(node->version, 0);
  EXPECT_EQ(node->ephemeral_owner, 0u);
}

TEST_P(StoreConformance, CreateTwiceIsRefusedAndKeepsTheFirst) {
  EXPECT_EQ(create("/a", "one"), kDone);
  EXPECT_EQ(create("/a", "two"), kExists);
  EXPECT_EQ(value("/a"), "one");
}

TEST_P(StoreConformance, CreateNeedsItsParent) {
  EXPECT_EQ(create("/a/b"), kNotFound);
  EXPECT_FALSE(exists("/a"));
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(create("/a/b"), kDone);
}

TEST_P(StoreConformance, MissingNodeIsNotFoundByEveryCall) {
  EXPECT_EQ(get("/no").error(), kNotFound);
  EXPECT_EQ(set("/no", "x", kAnyVersion), kNotFound);
  EXPECT_EQ(remove("/no"), kNotFound);
  EXPECT_EQ(loop_.run(store_->children("/no")).error(), kNotFound);
}

TEST_P(StoreConformance, AnyBytesAreAValue) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(create("/all", all), kDone);
  EXPECT_EQ(create("/none", ""), kDone);
  EXPECT_EQ(value("/all"), all);
  EXPECT_EQ(value("/none"), "");
}

TEST_P(StoreConformance, LargestValueIsTakenAndOneByteMoreRefused) {
  const std::string largest(kValueBytesMax, 'x');
  EXPECT_EQ(create("/a", largest), kDone);
  EXPECT_EQ(value("/a"), largest);
  EXPECT_EQ(set("/a", largest + "x", 0), kTooLarge);
  EXPECT_EQ(create("/b", largest + "x"), kTooLarge);
  EXPECT_EQ(value("/a"), largest);
  EXPECT_FALSE(exists("/b"));
}

TEST_P(StoreConformance, EverySetRaisesTheVersionByOne) {
  EXPECT_EQ(create("/a", "0"), kDone);
  for (std::int32_t i = 0; i < 5; ++i) {
    const auto version = loop_.run(store_->set("/a", std::to_string(i), i));
    ASSERT_TRUE(version);
    EXPECT_EQ(*version, i + 1);
  }
  EXPECT_EQ(set("/a", "4", kAnyVersion), kDone);  // an equal value counts too
  EXPECT_EQ(get("/a")->version, 6);
}

// MET-1: a write takes effect at the version it names or not at all.
TEST_P(StoreConformance, SetAtAnotherVersionChangesNothing) {
  EXPECT_EQ(create("/a", "one"), kDone);
  EXPECT_EQ(set("/a", "two", 1), kBadVersion);
  EXPECT_EQ(set("/a", "two", 0), kDone);
  EXPECT_EQ(set("/a", "three", 0), kBadVersion);
  EXPECT_EQ(value("/a"), "two");
  EXPECT_EQ(get("/a")->version, 1);
}

TEST_P(StoreConformance, RemoveAtAnotherVersionChangesNothing) {
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(remove("/a", 1), kBadVersion);
  EXPECT_TRUE(exists("/a"));
  EXPECT_EQ(remove("/a", 0), kDone);
  EXPECT_FALSE(exists("/a"));
}

TEST_P(StoreConformance, RemoveNeedsAnEmptyNode) {
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(create("/a/b"), kDone);
  EXPECT_EQ(remove("/a"), kNotEmpty);
  EXPECT_EQ(remove("/a/b"), kDone);
  EXPECT_EQ(remove("/a"), kDone);
}

TEST_P(StoreConformance, NodeMadeAgainStartsAtVersionZero) {
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(set("/a", "x", 0), kDone);
  EXPECT_EQ(remove("/a"), kDone);
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(get("/a")->version, 0);
}

TEST_P(StoreConformance, ChildrenAreTheDirectOnesInByteOrder) {
  for (const auto* path : {"/t", "/t/b", "/t/B", "/t/a", "/t/a/deep", "/t/a.1", "/tx", "/t/a-1"})
    EXPECT_EQ(create(path), kDone);
  EXPECT_THAT(children("/t"), ElementsAre("B", "a", "a-1", "a.1", "b"));
  EXPECT_THAT(children("/t/b"), IsEmpty());
  EXPECT_THAT(children("/"), ElementsAre("t", "tx"));
}

TEST_P(StoreConformance, NodeWhoseNameBeginsLikeAnotherIsNotItsChild) {
  for (const auto* path : {"/a", "/ab", "/ab/c", "/a.b", "/a.b/c"}) EXPECT_EQ(create(path), kDone);
  EXPECT_THAT(children("/a"), IsEmpty());
  EXPECT_EQ(remove("/a"), kDone);
  EXPECT_TRUE(exists("/ab/c"));
}

TEST_P(StoreConformance, PathsThatBreakTheRulesAreRefused) {
  for (const std::string path : {"", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a\nb"}) {
    EXPECT_EQ(create(path), kInvalidPath) << path;
    EXPECT_EQ(get(path).error(), kInvalidPath) << path;
  }
  EXPECT_EQ(create("/" + std::string(1024, 'x')), kInvalidPath);
  EXPECT_EQ(create("/" + std::string(1023, 'x')), kDone);
  EXPECT_EQ(create("/..."), kDone);
  EXPECT_EQ(create("/é ü"), kDone);
}

TEST_P(StoreConformance, GetManyAnswersInOrderWithGaps) {
  EXPECT_EQ(create("/a", "1"), kDone);
  EXPECT_EQ(create("/b", "2"), kDone);
  const auto nodes = loop_.run(store_->get_many({"/b", "/no", "/a", "/b"}));
  ASSERT_TRUE(nodes);
  ASSERT_EQ(nodes->size(), 4u);
  EXPECT_EQ((*nodes)[0]->value, "2");
  EXPECT_FALSE((*nodes)[1]);
  EXPECT_EQ((*nodes)[2]->value, "1");
  EXPECT_EQ((*nodes)[3]->value, "2");
}

TEST_P(StoreConformance, MultiDoesAllInOrder) {
  EXPECT_EQ(create("/old", "x"), kDone);
  const auto result = multi({Create("/a", "1"), Create("/a/b", "2"), SetValue("/a", "3", 0),
                             Check("/a", 1), Remove("/old", 0)});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->applied());
  ASSERT_EQ(result->operations.size(), 5u);
  EXPECT_EQ(result->operations[0].version, 0);
  EXPECT_EQ(result->operations[2].version, 1);
  EXPECT_EQ(value("/a"), "3");
  EXPECT_EQ(value("/a/b"), "2");
  EXPECT_FALSE(exists("/old"));
}

TEST_P(StoreConformance, MultiSeesWhatItsEarlierOperationsDid) {
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(create("/a/b"), kDone);
  const auto result =
      multi({Remove("/a/b", kAnyVersion), Remove("/a", kAnyVersion), Create("/a", "new")});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->applied());
  EXPECT_EQ(value("/a"), "new");
  const auto refused = multi({Create("/a/c", ""), Remove("/a", kAnyVersion)});
  ASSERT_TRUE(refused);
  EXPECT_THAT(errors(*refused), ElementsAre(kNotApplied, kNotEmpty));
  EXPECT_FALSE(exists("/a/c"));
}

// MET-1: one refused operation refuses them all, wherever it stands.
TEST_P(StoreConformance, MultiWithOneRefusedOperationChangesNothing) {
  EXPECT_EQ(create("/a", "1"), kDone);
  EXPECT_EQ(create("/b", "1"), kDone);
  for (std::size_t bad = 0; bad < 4; ++bad) {
    std::vector<Operation> operations{Create("/new", ""), SetValue("/a", "2", 0), Remove("/b", 0),
                                      Check("/a", kAnyVersion)};
    operations[bad] = Check("/a", 7);
    const auto result = multi(operations);
    ASSERT_TRUE(result);
    EXPECT_FALSE(result->applied());
    EXPECT_EQ(result->first_error(), kBadVersion);
    std::vector<Error> expected(4, kNotApplied);
    expected[bad] = kBadVersion;
    EXPECT_EQ(errors(*result), expected);
    EXPECT_FALSE(exists("/new"));
    EXPECT_EQ(value("/a"), "1");
    EXPECT_EQ(value("/b"), "1");
  }
}

TEST_P(StoreConformance, EveryKindOfOperationCanRefuseAMulti) {
  EXPECT_EQ(create("/a", "1"), kDone);
  const std::vector<std::pair<Operation, Error>> refusals{
      {Create("/a", ""), kExists},         {Create("/no/b", ""), kNotFound},
      {SetValue("/no", "", 0), kNotFound}, {SetValue("/a", "", 3), kBadVersion},
      {Remove("/no", 0), kNotFound},       {Remove("/a", 3), kBadVersion},
      {Check("/no", 0), kNotFound},        {Check("/no", kAnyVersion), kNotFound}};
  for (const auto& [operation, error] : refusals) {
    const auto result = multi({Create("/new", ""), operation});
    ASSERT_TRUE(result);
    EXPECT_THAT(errors(*result), ElementsAre(kNotApplied, error));
    EXPECT_FALSE(exists("/new"));
  }
}

TEST_P(StoreConformance, MultiAboveItsLimitIsRefusedUntried) {
  const std::string half(kMultiBytesMax / 2, 'x');
  const auto result = multi({Create("/a", half), Create("/b", half)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), kTooLarge);
  EXPECT_FALSE(exists("/a"));
}

TEST_P(StoreConformance, MultiWithABadPathIsRefusedUntried) {
  const auto result = multi({Create("/a", ""), Create("b", "")});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error(), kInvalidPath);
  EXPECT_FALSE(exists("/a"));
}

TEST_P(StoreConformance, MultiOfNothingIsApplied) {
  const auto result = multi({});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->applied());
}

TEST_P(StoreConformance, MultiOfManyOperationsIsOneStep) {
  std::vector<Operation> operations;
  operations.emplace_back(Create("/many", ""));
  for (int i = 0; i < 2000; ++i) operations.emplace_back(Create("/many/" + std::to_string(i), "v"));
  const auto result = multi(std::move(operations));
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->applied());
  EXPECT_EQ(children("/many").size(), 2000u);
}

TEST_P(StoreConformance, OverlappingCallsTakeEffectInTheOrderMade) {
  EXPECT_EQ(create("/a", ""), kDone);
  std::vector<int> answered;
  std::vector<bool> done(50);
  auto setter = [](MetadataStore& store, int i, std::vector<int>& order,
                   std::vector<bool>& results) -> asio::awaitable<void> {
    const auto result = co_await store.set("/a", std::to_string(i), i);
    order.push_back(i);
    results[static_cast<std::size_t>(i)] = result.has_value();
  };
  for (int i = 0; i < 50; ++i) loop_.runtime().spawn("setter", setter(*store_, i, answered, done));
  while (answered.size() < 50) EXPECT_TRUE(get("/a"));
  EXPECT_THAT(done, ::testing::Each(true));
  EXPECT_TRUE(std::is_sorted(answered.begin(), answered.end()));
  EXPECT_EQ(value("/a"), "49");
}

TEST_P(StoreConformance, EphemeralNodeNamesItsSession) {
  EXPECT_NE(store_->session(), 0u);
  EXPECT_EQ(create("/live", ""), kDone);
  EXPECT_EQ(create("/live/1", "me", CreateMode::ephemeral), kDone);
  EXPECT_EQ(get("/live/1")->ephemeral_owner, store_->session());
  EXPECT_EQ(set("/live/1", "me too", 0), kDone);
  EXPECT_EQ(get("/live/1")->ephemeral_owner, store_->session());
  EXPECT_EQ(remove("/live/1"), kDone);
}

TEST_P(StoreConformance, EphemeralNodeHasNoChildren) {
  EXPECT_EQ(create("/e", "", CreateMode::ephemeral), kDone);
  EXPECT_EQ(create("/e/child"), make_error_code(MetadataErrc::ephemeral_parent));
}

TEST_P(StoreConformance, EphemeralNodesGoWithTheirSession) {
  EXPECT_EQ(create("/e", "", CreateMode::ephemeral), kDone);
  EXPECT_EQ(create("/p", ""), kDone);
  const auto first = store_->session();
  reopen_after_close();
  EXPECT_FALSE(exists("/e"));
  EXPECT_TRUE(exists("/p"));
  EXPECT_NE(store_->session(), first);
  EXPECT_EQ(create("/e", "", CreateMode::ephemeral), kDone);
  reopen_after_crash();
  EXPECT_FALSE(exists("/e"));
  EXPECT_TRUE(exists("/p"));
}

// MET-1: what was acknowledged survives.
TEST_P(StoreConformance, AcknowledgedWritesSurviveACrash) {
  EXPECT_EQ(create("/t", "root"), kDone);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(create("/t/" + std::to_string(i), "v" + std::to_string(i)), kDone);
    if (i % 3 == 0) {
      EXPECT_EQ(set("/t/" + std::to_string(i), "changed", 0), kDone);
    }
    if (i % 25 == 24) reopen_after_crash();
  }
  EXPECT_EQ(remove("/t/7"), kDone);
  reopen_after_crash();
  EXPECT_EQ(children("/t").size(), 99u);
  EXPECT_EQ(value("/t/1"), "v1");
  EXPECT_EQ(value("/t/99"), "changed");
  EXPECT_EQ(get("/t/99")->version, 1);
  EXPECT_FALSE(exists("/t/7"));
}

TEST_P(StoreConformance, EverythingSurvivesAnOrderlyClose) {
  EXPECT_EQ(create("/a", "1"), kDone);
  EXPECT_EQ(set("/a", "2", 0), kDone);
  reopen_after_close();
  EXPECT_EQ(value("/a"), "2");
  EXPECT_EQ(get("/a")->version, 1);
}

TEST_P(StoreConformance, ClosedStoreIsUnavailable) {
  EXPECT_EQ(create("/a", "1"), kDone);
  EXPECT_TRUE(store_->online());
  loop_.run(store_->close());
  EXPECT_FALSE(store_->online());
  EXPECT_EQ(get("/a").error(), kUnavailable);
  EXPECT_EQ(create("/b"), kUnavailable);
  EXPECT_EQ(loop_.run(store_->children("/")).error(), kUnavailable);
  EXPECT_EQ(multi({Check("/a", 0)}).error(), kUnavailable);
}

class StoreWatch : public StoreConformance {
 protected:
  /// Counts how often the watch on `path` fires, from now on.
  std::shared_ptr<int> watch(const std::string& path, WatchKind kind) {
    auto fired = std::make_shared<int>(0);
    EXPECT_TRUE(loop_.run(store_->watch(path, kind, [fired] { ++*fired; })));
    return fired;
  }
  int settled(const std::shared_ptr<int>& fired) {
    for (int i = 0; i < 100 && *fired == 0; ++i) EXPECT_TRUE(get("/"));
    return *fired;
  }
};

TEST_P(StoreWatch, DataWatchFiresOnceForASet) {
  EXPECT_EQ(create("/a"), kDone);
  const auto fired = watch("/a", WatchKind::data);
  EXPECT_EQ(*fired, 0);
  EXPECT_EQ(set("/a", "x", 0), kDone);
  EXPECT_EQ(settled(fired), 1);
  EXPECT_EQ(set("/a", "y", 1), kDone);
  EXPECT_EQ(settled(fired), 1);
}

TEST_P(StoreWatch, DataWatchFiresForCreateAndRemove) {
  const auto made = watch("/a", WatchKind::data);
  EXPECT_EQ(create("/a"), kDone);
  EXPECT_EQ(settled(made), 1);
  const auto removed = watch("/a", WatchKind::data);
  EXPECT_EQ(remove("/a"), kDone);
  EXPECT_EQ(settled(removed), 1);
}

TEST_P(StoreWatch, ChildrenWatchFiresForCreateAndRemoveBelow) {
  EXPECT_EQ(create("/a"), kDone);
  const auto made = watch("/a", WatchKind::children);
  EXPECT_EQ(create("/a/b"), kDone);
  EXPECT_EQ(settled(made), 1);
  const auto removed = watch("/a", WatchKind::children);
  EXPECT_EQ(remove("/a/b"), kDone);
  EXPECT_EQ(settled(removed), 1);
}

INSTANTIATE_TEST_SUITE_P(All, StoreConformance, ::testing::ValuesIn(mq::testing::store_backends()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(All, StoreWatch, ::testing::ValuesIn(mq::testing::store_backends()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mq::metadata
