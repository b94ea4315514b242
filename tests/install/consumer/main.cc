// Uses the installed client library as an application would. Without a broker it must get one clear
// error within its time limit; with an address as argument it sends a record and reads it back.
#include <mq/mq.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

int fail(std::string_view what, const mq::Error& error) {
  std::printf("%.*s: %s\n", static_cast<int>(what.size()), what.data(),
              mq::to_string(error).c_str());
  return 1;
}

int meet_nobody() {
  mq::ProducerConfig config;
  config.bootstrap = {"127.0.0.1:1"};
  config.connect_timeout = mq::Duration(500);
  config.log = [](mq::LogLevel, std::string_view) {};
  const auto producer = mq::Producer::create(config);
  if (producer || producer.error().code != mq::Errc::unreachable) return 1;
  return producer.error().message.find("127.0.0.1:1") == std::string::npos ? 1 : 0;
}

int round_trip(const std::string& address) {
  mq::ClientConfig admin_config;
  admin_config.bootstrap = {address};
  auto admin = mq::Admin::create(admin_config);
  if (!admin) return fail("admin", admin.error());
  const mq::NewTopic topic("greetings");
  for (const auto& [name, created] : admin->create_topics({topic}))
    if (!created) return fail(name, created.error());

  mq::ProducerConfig producer_config;
  producer_config.bootstrap = {address};
  auto producer = mq::Producer::create(producer_config);
  if (!producer) return fail("producer", producer.error());
  const auto sent = producer->send_sync(mq::Record("greetings").key("k").value("hello"));
  if (!sent) return fail("send", sent.error());

  mq::ConsumerConfig consumer_config;
  consumer_config.bootstrap = {address};
  auto consumer = mq::Consumer::create(consumer_config);
  if (!consumer) return fail("consumer", consumer.error());
  const auto assigned = consumer->assign({{{"greetings", sent->partition}, mq::Start{}}});
  if (!assigned) return fail("assign", assigned.error());
  const auto batch = consumer->poll(mq::Duration(10'000));
  if (!batch) return fail("poll", batch.error());
  return batch->size() == 1 && (*batch)[0].offset == sent->offset ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  return count > 1 ? round_trip(arguments[1]) : meet_nobody();
}
