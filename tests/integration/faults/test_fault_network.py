"""Brokers that cannot reach each other, ZooKeeper or clients, in one direction or both, and links that lose packets. Needs root."""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import cut, lossy, one_way_cut  # noqa: E402

# Longer than a session, and than a follower may lag behind.
CUT_SECONDS = 12
LAG_SECONDS = 10


class Network(FaultCase):
    NETWORK = True

    def during(self, fault, what, seconds=CUT_SECONDS):
        """How many records were acknowledged from two seconds after its begin to its end."""
        self.say(what)
        with fault:
            time.sleep(2)
            before = self.load.acknowledged()
            time.sleep(seconds - 2)
            there = self.load.acknowledged() - before
        self.say(f"{there} records acknowledged meanwhile")
        self.whole_again(60)
        self.writes_go_on()
        return there


class Cuts(Network):
    def test_one_is_cut_off(self):
        self.begin_load()
        for number in self.nodes:
            there = self.during(cut(self, [f"b{number}"], ["b1", "b2", "b3", "zk"]), f"broker {number} is cut from all but clients")
            self.assertGreater(there, 0, "the two others go on")
        self.finish(longest=SESSION_SECONDS + 3)

    def test_one_is_cut_from_the_others_and_not_from_zookeeper(self):
        self.begin_load()
        for number in self.nodes:
            others = [f"b{other}" for other in self.nodes if other != number]
            controller = self.controller()
            there = self.during(cut(self, [f"b{number}"], others), f"broker {number} is cut from the others, controller is {controller}",
                                LAG_SECONDS + 6)
            # Where it was the controller it gives the office to one of the others first.
            self.assertGreater(there, 0, "it is taken out of the ISR of the partitions that others lead")
        self.finish()

    def test_two_are_cut_from_each_other_and_the_third_hears_both(self):
        self.begin_load()
        for one, other in (("b1", "b2"), ("b2", "b3"), ("b3", "b1")):
            there = self.during(cut(self, [one], [other]), f"{one} and {other} are cut from each other, controller is {self.controller()}")
            self.assertGreater(there, 0)
        self.finish()

    def test_all_are_apart(self):
        self.begin_load()
        brokers = ["b1", "b2", "b3"]
        there = self.during(cut(self, brokers, brokers), "all are cut from each other")
        self.assertEqual(there, 0, "none of them acknowledges anything")
        there = self.during(cut(self, brokers, [*brokers, "zk"]), "and from ZooKeeper")
        self.assertEqual(there, 0)
        self.finish()


class OneWay(Network):
    def test_between_brokers(self):
        self.begin_load()
        for deaf, mute, what in (("b1", ["b2", "b3"], "broker 1 does not hear the others"), ("b2", ["b1"], "broker 2 does not hear broker 1")):
            self.during(one_way_cut(self, *((deaf, one) for one in mute)), what)
            self.during(one_way_cut(self, *((one, deaf) for one in mute)), what + ", the other way round")
        self.finish()

    def test_between_a_broker_and_the_controller(self):
        self.begin_load()
        for _ in range(2):
            controller = self.controller()
            other = next(number for number in self.nodes if number != controller)
            there = self.during(one_way_cut(self, (f"b{controller}", f"b{other}")), f"{controller}, the controller, does not hear {other}")
            self.assertGreater(there, 0)
            there = self.during(one_way_cut(self, (f"b{other}", f"b{controller}")), f"broker {other} does not hear {controller}, the controller")
            self.assertGreater(there, 0)
        self.finish()

    def test_between_a_broker_and_zookeeper(self):
        self.begin_load()
        for pair in (("b1", "zk"), ("zk", "b1"), (f"b{self.controller()}", "zk"), ("zk", f"b{self.controller()}")):
            there = self.during(one_way_cut(self, pair), f"{pair[0]} does not hear {pair[1]}")
            self.assertGreater(there, 0)
        self.finish()

    def test_between_a_broker_and_clients(self):
        self.begin_load()
        for pair in (("b1", "clients"), ("clients", "b1"), ("b2", "clients"), ("clients", "b3")):
            there = self.during(one_way_cut(self, pair), f"{pair[0]} does not hear {pair[1]}")
            self.assertGreater(there, 0)
        self.finish()


class Loss(Network):
    def test_packets_between_brokers_are_lost(self):
        self.begin_load()
        for percent in (1, 5, 30):
            there = self.during(lossy(self, percent, "b1", "b2", "b3"), f"{percent} % are lost", 10)
            self.assertGreater(there, 0)
        self.finish()


if __name__ == "__main__":
    main(needs_network=True)
