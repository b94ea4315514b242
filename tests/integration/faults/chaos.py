"""Three brokers with three replicas of each partition, four writers and a reader, and one trouble after the other drawn from a seed: kill -9
and controlled stops of one, two or all brokers, pauses, ZooKeeper away; as root also cuts in one direction or both, packets that are lost,
power cuts and full disks. In the end everything is healed, and all that has to hold is looked at (README.md of tests/integration).

MQ_CHAOS_SEED and MQ_CHAOS_SECONDS choose which and how long; `tools/dev chaos` sets them."""

import contextlib
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
import network  # noqa: E402
from fault_case import FaultCase, main  # noqa: E402
from nemesis import cut, full_disks, killed, lossy, one_way_cut, paused, stopped, without_power, without_zookeeper  # noqa: E402
from three_brokers import FAILOVER_SECONDS  # noqa: E402

SEED = int(os.environ.get("MQ_CHAOS_SEED", time.time_ns() % 1_000_000))
SECONDS = float(os.environ.get("MQ_CHAOS_SECONDS", 120))
OWN_HOSTS = network.missing() is None


class Chaos(FaultCase):
    NETWORK = OWN_HOSTS
    DISKS = ("ext4", 512) if OWN_HOSTS else None
    RATE = 100
    EXPECTED_ERRORS = ("it stands again later", "is full")

    def setUp(self):
        print(f"chaos: seed {SEED}, {SECONDS:.0f} s{'' if OWN_HOSTS else '; no cuts and no disks: ' + network.missing()}", flush=True)
        self.random = random.Random(SEED)
        super().setUp()

    def some(self, count=1):
        return self.random.sample(sorted(self.nodes), count)

    def a_moment(self):
        """For less than a session, or for more."""
        return self.random.choice((0, 1, 3, 8, 14))

    def troubles(self):
        """name: a context"""
        one, other, third = self.some(3)
        controller = self.controller() or one
        host, neighbour = f"b{one}", self.random.choice((f"b{other}", f"b{third}", "zk", "clients"))
        always = {
            f"kill -9 of broker {one}": killed(self, one),
            f"kill -9 of broker {controller}, the controller": killed(self, controller),
            f"kill -9 of brokers {one} and {other}": killed(self, one, other),
            f"kill -9 of all, back in the order {one} {other} {third}": killed(self, one, other, third),
            f"broker {one} is stopped": stopped(self, one),
            f"broker {one} is paused": paused(self, one),
            f"brokers {one} and {other} are paused": paused(self, one, other),
            f"broker {one} is paused, and {other} killed meanwhile": self.both(killed(self, other), paused(self, one)),
            "ZooKeeper is away": without_zookeeper(self),
        }
        if not OWN_HOSTS:
            return always
        return always | {
            f"{host} is cut off": cut(self, [host], [f"b{other}", f"b{third}", "zk"]),
            f"{host} and {neighbour} are cut from each other": cut(self, [host], [neighbour]),
            f"{host} does not hear {neighbour}": one_way_cut(self, (host, neighbour)),
            f"{neighbour} does not hear {host}": one_way_cut(self, (neighbour, host)),
            "a tenth of all packets is lost": lossy(self, 10, "b1", "b2", "b3"),
            f"broker {one} is without power": without_power(self, one),
            f"the disk of broker {one} is full": full_disks(self, one),
        }

    @contextlib.contextmanager
    def both(self, first, second):
        """The second one is over before the first."""
        with first, second:
            yield

    def test_chaos(self):
        self.begin_load()
        while time.monotonic() - self.begun < SECONDS:
            troubles = self.troubles()
            name = self.random.choice(sorted(troubles))
            seconds = self.a_moment()
            self.say(f"{name}, {seconds} s")
            with troubles[name]:
                time.sleep(seconds)
            if self.random.random() < 0.5:
                self.whole_again(FAILOVER_SECONDS + 60)
            else:
                time.sleep(self.random.choice((0.2, 1, 3)))
        self.whole_again(FAILOVER_SECONDS + 60)
        self.finish()


if __name__ == "__main__":
    main(needs_network=OWN_HOSTS, needs_disks=OWN_HOSTS)
