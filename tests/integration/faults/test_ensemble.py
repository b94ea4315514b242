"""Three brokers on three ZooKeeper servers, each broker through a server of its own: the leading server is killed, most of
them are, and the one of a broker is cut from the others, while records are written. In a network of its own; needs root."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from ensemble import Ensemble  # noqa: E402
from three_brokers import FAILOVER_SECONDS, ThreeBrokers  # noqa: E402
from zookeeper import available  # noqa: E402

SKIPPED = 77
INSIDE = "MQ_TEST_OWN_NETWORK"


class ThreeZooKeepers(ThreeBrokers):
    def start_zookeeper(self):
        self.ensemble = Ensemble()
        self.addCleanup(self.ensemble.end)
        self.ensemble.start()
        places = [f"127.0.0.1:{server.port}" for server in self.ensemble.servers.values()]
        # Every broker knows all servers but begins with another one.
        return [f"zookeeper://{','.join(places[i:] + places[:i])}/mq" for i in range(3)]

    def acknowledged_more(self, writer):
        before = len(writer.acknowledged)
        wait_until(lambda: len(writer.acknowledged) > before + 40, 60, "writing goes on")

    def stop_all(self):
        for node in self.nodes.values():
            self.assertEqual(node.stop(), 0)

    def test_its_leader_is_killed(self):
        writer = self.writer()
        for round_number in range(2):
            leader = self.ensemble.leader()
            self.ensemble.servers[leader].kill()
            wait_until(lambda: self.ensemble.leader() not in (None, leader), 60, "another server leads")
            wait_until(lambda: self.created(f"round-{round_number}"), FAILOVER_SECONDS, "a topic is made")
            self.acknowledged_more(writer)
            self.ensemble.start([leader])
        self.check_records(writer.end())
        self.stop_all()

    def test_most_of_it_is_killed_and_comes_back(self):
        writer = self.writer()
        gone = [self.ensemble.leader(), next(n for n in (1, 2, 3) if n != self.ensemble.leader())]
        for number in gone:
            self.ensemble.servers[number].kill()
        time.sleep(8)
        self.acknowledged_more(writer)
        self.assertNotEqual(self.ctl("--timeout", "3s", "topic", "create", "more").code, 0)
        self.ensemble.start(gone)
        wait_until(lambda: self.created("more"), FAILOVER_SECONDS, "a topic is made again")
        self.check_records(writer.end())
        self.stop_all()

    def test_a_server_cut_from_its_leader(self):
        """The brokers on it find another one, or lose their sessions and come back; nothing is lost, and they agree."""
        writer = self.writer()
        leader = self.ensemble.leader()
        follower = next(n for n in (1, 2, 3) if n != leader)
        self.assertTrue(self.ensemble.cut_from_leader(follower, leader), "the follower has a connection to its leader")
        self.addCleanup(self.ensemble.mend)
        wait_until(lambda: self.ensemble.mode(follower) is None, 30, "the server has found out that it is alone")
        wait_until(lambda: self.created("meanwhile"), FAILOVER_SECONDS, "a topic is made")
        self.acknowledged_more(writer)
        self.ensemble.mend()
        wait_until(lambda: self.ensemble.mode(follower) == "follower", 60, "it follows again")
        wait_until(lambda: self.ctl("health").code == 0, FAILOVER_SECONDS, "all is well")
        images = set()
        for node in self.nodes.values():
            listed = node.ctl("partition", "list", "-o", "json")
            self.assertEqual(listed.code, 0, listed.err)
            images.add(tuple((one["topic"], one["partition"], one["leader"]) for one in json.loads(listed.out)["items"]))
        self.assertEqual(len(images), 1, "every broker says the same")
        self.check_records(writer.end())
        self.stop_all()


def in_own_network():
    """Runs this again in a network namespace, in which only loopback is."""
    command = ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B", *sys.argv]
    return subprocess.run(command, env=os.environ | {INSIDE: "1"}).returncode


def main():
    tools = all(shutil.which(tool) for tool in ("unshare", "ip", "nft", "ss"))
    if not available() or not tools or subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode != 0:
        print("skipped: needs java, zookeeper.jar, iproute2, nftables, and to be root")
        return SKIPPED
    if INSIDE not in os.environ:
        return in_own_network()
    unittest.main(verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
