"""One broker whose metadata is in a real ZooKeeper: restarts, ZooKeeper away, a session that ends, places that are wrong."""

import json
import pathlib
import signal
import sys
import time
import unittest

from daemon import Case, wait_until
from zookeeper import ZooKeeper, available


EXAMPLE = pathlib.Path(__file__).parents[3] / "deploy/examples/zookeeper/zoo.cfg"


class Example(Case):
    def test_example_configuration_serves_a_broker(self):
        zookeeper = ZooKeeper(EXAMPLE)
        self.addCleanup(zookeeper.end)
        zookeeper.start()
        broker = self.broker(metadata=f"zookeeper://localhost:{zookeeper.port}").start()
        broker.create("orders", "-p", "1000")
        self.assertEqual(broker.stop(), 0)


class OneBroker(Case):
    def setUp(self):
        super().setUp()
        self.zookeeper = ZooKeeper()
        self.addCleanup(self.zookeeper.end)
        self.zookeeper.start()

    def make(self, path="/mq/test", **options):
        return self.broker(metadata=f"zookeeper://127.0.0.1:{self.zookeeper.port}{path}", **options)

    def produce(self, broker, topic, text):
        done = broker.ctl("produce", topic, stdin=text.encode())
        self.assertEqual(done.code, 0, done.err)

    def records(self, broker, topic, count):
        done = broker.ctl("consume", topic, "-o", "start", "-n", str(count))
        self.assertEqual(done.code, 0, done.err)
        return sorted(done.out.split())

    def created(self, broker, topic):
        return broker.ctl("topic", "create", topic).code == 0

    def test_topics_and_records_survive_restarts_and_kills(self):
        broker = self.make().start()
        broker.create("orders", "-p", "3")
        self.produce(broker, "orders", "a\nb\n")
        self.assertEqual(broker.stop(), 0)
        broker.start()
        self.assertEqual(self.records(broker, "orders", 2), ["a", "b"])
        broker.kill9()
        broker.start()  # waits for the session of the killed process to end
        self.assertIn("waiting for the end of the session that broker 1 had", broker.log())
        self.assertEqual(self.records(broker, "orders", 2), ["a", "b"])
        self.assertEqual(broker.ctl("topic", "delete", "orders", "--yes").code, 0)
        self.assertEqual(broker.stop(), 0)
        broker.start()
        self.assertEqual(json.loads(broker.ctl("topic", "list", "-o", "json").out)["items"], [])
        self.assertEqual(broker.stop(), 0)

    def test_away_it_serves_refuses_changes_by_name_and_comes_back(self):
        broker = self.make().start()
        broker.create("orders")
        self.zookeeper.kill()
        self.produce(broker, "orders", "while-away\n")
        self.assertEqual(self.records(broker, "orders", 1), ["while-away"])
        refused = broker.ctl("topic", "create", "more")
        self.assertNotEqual(refused.code, 0)
        self.assertIn("METADATA_UNAVAILABLE", refused.err)
        self.assertIn(f"ZooKeeper 127.0.0.1:{self.zookeeper.port}/mq/test has not answered", refused.err)
        self.assertIn("has not answered", broker.ctl("status").out)
        self.zookeeper.start()
        wait_until(lambda: self.created(broker, "more"), 20, "a topic is made again")
        self.assertNotIn("has not answered", broker.ctl("status").out)
        self.assertEqual(broker.stop(), 0)

    def test_stops_in_order_while_zookeeper_is_silent_or_gone(self):
        for away in (self.zookeeper.pause, self.zookeeper.kill):
            with self.subTest(away.__name__):
                broker = self.make(f"/{away.__name__}").start()
                broker.create("orders")
                away()
                self.produce(broker, "orders", "x\n")
                began = time.monotonic()
                self.assertEqual(broker.stop(), 0)
                self.assertLess(time.monotonic() - began, 15)
                if away == self.zookeeper.pause:
                    self.zookeeper.resume()

    # CTL-4
    def test_session_that_ended_is_taken_up_again_without_a_restart(self):
        broker = self.make().start()
        broker.create("orders")
        broker.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: "/mq/test/ctl/leader" not in self.zookeeper.ask("dump"), 30, "the session ends")
        finally:
            broker.process.send_signal(signal.SIGCONT)
        wait_until(lambda: "registered again" in broker.log(), 20, "it registers again")
        broker.create("more")
        self.produce(broker, "more", "x\n")
        self.assertEqual(broker.stop(), 0)

    # CTL-4
    def test_a_second_broker_of_one_id_is_refused_by_name(self):
        first = self.make().start()
        second = self.make()
        code, text = second.run_to_end(seconds=60)
        self.assertNotEqual(code, 0)
        self.assertIn(f"another live broker at {first.address} is registered as broker 1", text)
        self.assertEqual(first.log().count("registered again"), 0)
        first.create("orders")
        self.assertEqual(first.stop(), 0)

    # REC-7
    def test_another_path_is_refused_for_a_directory_with_data(self):
        broker = self.make("/one").start()
        broker.create("orders")
        self.assertEqual(broker.stop(), 0)
        text = broker.config.read_text()
        broker.config.write_text(text.replace("/one", "/two"))
        code, said = broker.run_to_end()
        self.assertNotEqual(code, 0)
        self.assertIn("/two", said)
        self.assertIn("broker.metadata", said)
        broker.config.write_text(text)
        broker.start()
        self.assertEqual(broker.stop(), 0)


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main()
