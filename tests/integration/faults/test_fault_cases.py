"""Single stories of three brokers: the last replica in sync goes, a topic is deleted while a broker is away, answers to writers are lost while
leaders change."""

import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
import load  # noqa: E402
from daemon import free_port, wait_until  # noqa: E402
from fault_case import FaultCase, main  # noqa: E402
from history import PLAIN_CHECKERS, duplicates, only_repeats  # noqa: E402
from nemesis import back  # noqa: E402
from relays import BrokerRelay  # noqa: E402
from three_brokers import FAILOVER_SECONDS  # noqa: E402


class Stories(FaultCase):
    def items(self, *words):
        done = self.ctl(*words, "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        return json.loads(done.out)["items"]

    def produce(self, topic, values, *words):
        done = self.ctl("produce", topic, *words, stdin="\n".join(values).encode(), seconds=60)
        self.assertEqual(done.code, 0, done.err)

    def read(self, topic):
        done = self.ctl("consume", topic, "-e", seconds=60)
        self.assertEqual(done.code, 0, done.err)
        return sorted(done.out.split())

    def test_the_last_replica_in_sync_is_gone(self):
        done = self.ctl("topic", "create", "pair", "-p", "1", "--replicas", "2", "-c", "min_isr=1")
        self.assertEqual(done.code, 0, done.err)
        replicas = self.items("partition", "list", "pair")[0]["replicas"]
        first, second = replicas
        self.produce("pair", ["before"])
        self.assertEqual(self.nodes[second].stop(), 0)
        values = [f"v{i}" for i in range(100)]
        self.produce("pair", values)
        self.nodes[first].kill9()
        wait_until(lambda: self.leader_of("pair") == -1, FAILOVER_SECONDS, "nobody leads")
        back(self, [second])
        time.sleep(3)
        # The one that lacks them does not lead, says so, and nobody loses their place.
        self.assertEqual(self.leader_of("pair"), -1)
        self.assertIn("none", self.ctl("partition", "describe", "pair/0").out)
        refused = self.ctl("--timeout", "3s", "produce", "pair", stdin=b"x")
        self.assertNotEqual(refused.code, 0)
        self.assertIn("it has no leader", refused.err)
        unread = self.ctl("--timeout", "3s", "consume", "pair", "-n", "1", "-e", seconds=60)
        self.assertNotEqual(unread.code, 0)
        back(self, [first])
        wait_until(lambda: len(self.items("partition", "list", "pair")[0]["in_sync"]) == 2, 40, "both are in sync")
        self.assertEqual(self.leader_of("pair"), first)
        self.assertEqual(self.read("pair"), sorted([*values, "before"]))
        self.assertEqual(self.items("partition", "describe", "pair/0")[0]["loss_epoch"], -1)

    def test_a_topic_is_deleted_and_made_again_while_a_broker_is_away(self):
        self.produce("safe", [f"old{i}" for i in range(1000)])
        consumer = load.Load(self.addresses, ["safe"], 3, writers=0, rate=1)
        self.addCleanup(consumer.end)
        wait_until(lambda: sum(line.startswith("b safe") for line in consumer.lines()) == 1000, 30, "it is read")
        self.assertEqual(self.nodes[3].stop(), 0)
        done = self.ctl("topic", "delete", "safe", "--yes")
        self.assertEqual(done.code, 0, done.err)
        time.sleep(2)
        self.assertNotIn("safe", [one["name"] for one in self.items("topic", "list")], "reading it does not make it again")
        done = self.ctl("topic", "create", "safe", "-p", "2", "--replicas", "2")
        self.assertEqual(done.code, 0, done.err)
        values = [f"new{i}" for i in range(100)]
        self.produce("safe", values)
        back(self, [3])
        wait_until(lambda: not self.tree().deleting, 30, "nothing is being deleted any more")
        self.assertEqual(self.read("safe"), sorted(values))
        tree = self.tree()
        self.assertEqual(set(tree.states), set(tree.replicas()), "nothing of it is left in ZooKeeper")
        uuids = {uuid for uuid, _ in tree.states}
        wait_until(lambda: not self.folders() - uuids, 30, "nor on disks")

    def folders(self):
        return {one.name.split("-")[0] for node in self.nodes.values() for one in node.data.glob("*-[0-9]")}


class AnswersLost(FaultCase):
    """Clients reach brokers through relays that lose one of ten answers to Produce and break connections off within requests, while leaders change."""

    def place_of(self, number):
        port = free_port()
        relay = BrokerRelay(("127.0.0.1", port), seed=number)
        self.addCleanup(relay.end)
        self.relays.append(relay)
        return {"port": port, "advertised": f"127.0.0.1:{relay.port}"}

    def setUp(self):
        self.relays = []
        super().setUp()

    def lose_answers(self, writers=4):
        self.begin_load(writers)
        for relay in self.relays:
            relay.share = 0.1
        for round_number in range(10):
            for partition in range(3):
                leader = 1 + (round_number + partition) % 3
                self.ctl("partition", "elect-leader", f"safe/{partition}", f"fast/{partition}", "--broker", str(leader))
            time.sleep(2.5)
        lost = sum(relay.lost for relay in self.relays)
        self.say(f"{lost} answers were lost")
        self.assertGreater(lost, 50)
        for relay in self.relays:
            relay.share = 0
        self.finish()


class Idempotent(AnswersLost):
    def test_the_order_of_what_is_sent_again(self):
        self.lose_answers()


class Plain(AnswersLost):
    """Without idempotence: nothing is lost, but what is sent again may be there once more, behind newer ones."""

    LOAD = {"MQ_LOAD_PLAIN": "1"}
    CHECKERS = PLAIN_CHECKERS

    def test_nothing_is_lost_of_what_is_sent_again(self):
        self.lose_answers()
        self.assertTrue(duplicates(self.history), "something was stored once more")


class PlainOneByOne(AnswersLost):
    """The same where each record waits for the result of the one before: copies stand side by side."""

    LOAD = {"MQ_LOAD_PLAIN": "1", "MQ_LOAD_ONE": "1"}
    CHECKERS = (*PLAIN_CHECKERS, only_repeats)

    def test_the_order_of_what_is_sent_again(self):
        self.lose_answers(writers=9)
        self.assertTrue(duplicates(self.history), "something was stored once more")


if __name__ == "__main__":
    main()
