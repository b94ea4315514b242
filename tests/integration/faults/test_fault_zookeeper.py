"""ZooKeeper servers that are killed, cut from each other, emptied or out of space, and answers of theirs that are lost, under load.
Needs root."""

import contextlib
import json
import os
import pathlib
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
import audit  # noqa: E402
from daemon import wait_until  # noqa: E402
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import cut, killed, paused, stopped  # noqa: E402
from relays import ZooKeeperRelay  # noqa: E402
from small_disk import SmallDisk  # noqa: E402

# Records are written and read all the time; 600 for the long run.
AWAY_SECONDS = int(os.environ.get("MQ_AWAY_SECONDS", "25"))


class Servers(FaultCase):
    NETWORK = True
    ZOOKEEPERS = 3
    # Whoever stands for controller while there is no ensemble says so.
    EXPECTED_ERRORS = ("it stands again later",)

    def follower(self):
        leader = self.ensemble.leader()
        return next(number for number in (1, 2, 3) if number != leader)

    def serves(self, *gone):
        """Most of the ensemble is there: it has a leader, and the cluster takes changes."""
        wait_until(lambda: self.ensemble.leader() not in (None, *gone), 60, "a server leads")
        wait_until(lambda: self.created("meanwhile"), 40, "a topic is made")
        done = self.ctl("topic", "delete", "meanwhile", "--yes")
        self.assertEqual(done.code, 0, done.err)

    @staticmethod
    def states_at(server):
        try:
            return len(audit.Tree(server.port, server.host).states)
        except KeyError:
            return None  # a topic that is being deleted went away between two reads

    def finish(self, **options):
        wait_until(lambda: self.ctl("health").code == 0, 40, "all is well")
        super().finish(**options)


class Ensemble(Servers):
    def test_servers_are_killed(self):
        self.begin_load()
        for _ in range(2):
            leader = self.ensemble.leader()
            self.say(f"kill -9 of server {leader}, which leads")
            self.ensemble.servers[leader].kill()
            self.serves(leader)
            self.ensemble.start([leader])
        gone = [self.ensemble.leader(), self.follower()]
        self.say(f"kill -9 of servers {gone}")
        for number in gone:
            self.ensemble.servers[number].kill()
        time.sleep(2 * SESSION_SECONDS)
        self.writes_go_on()
        self.ensemble.start(gone)
        self.serves()
        self.say("kill -9 of all")
        for server in self.ensemble.servers.values():
            server.kill()
        time.sleep(1)
        self.writes_go_on()
        self.ensemble.start()
        self.serves()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_all_are_away_for_long_and_a_broker_is_killed_meanwhile(self):
        self.begin_load()
        for server in self.ensemble.servers.values():
            server.kill()
        self.say("no ZooKeeper")
        time.sleep(AWAY_SECONDS)
        self.writes_go_on()
        self.nodes[2].kill9()
        times = self.restart(2)
        time.sleep(5)
        self.ensemble.start()
        began = time.monotonic()
        self.ready(self.nodes[2], times)
        self.say(f"broker 2 is ready {time.monotonic() - began:.1f} s after the quorum")
        self.serves()
        self.finish()

    def test_a_server_is_cut_from_the_others_while_it_serves_a_broker(self):
        self.begin_load()
        for number in (self.follower(), self.ensemble.leader()):
            others = [f"zk{other}" for other in (1, 2, 3) if other != number]
            self.say(f"server {number} is cut from {others}, leader is {self.ensemble.leader()}")
            with cut(self, [f"zk{number}"], others):
                self.serves(number)
                self.writes_go_on()
                time.sleep(SESSION_SECONDS)
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_a_server_comes_back_empty(self):
        self.begin_load()
        number = self.follower()
        server = self.ensemble.servers[number]
        server.kill()
        shutil.rmtree(server.data / "version-2")
        self.say(f"server {number} has lost everything")
        self.ensemble.start([number])
        wait_until(lambda: self.ensemble.mode(number) == "follower", 60, "it follows")
        with killed(self, 1, 2, 3):
            pass
        self.serves()
        wait_until(lambda: self.states_at(server) == self.how_many(), 30, "it has the state of every partition")
        self.finish()

    def test_a_paused_server(self):
        self.begin_load()
        for number in (self.follower(), self.ensemble.leader()):
            self.say(f"server {number} is paused, leader is {self.ensemble.leader()}")
            self.ensemble.servers[number].pause()
            try:
                time.sleep(2 * SESSION_SECONDS)
                self.writes_go_on()
            finally:
                self.ensemble.servers[number].resume()
            self.serves()
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)


class FullServer(Servers):
    def server_options(self):
        self.server_disks = {number: SmallDisk("ext4", 96) for number in (1, 2, 3)}
        for disk in self.server_disks.values():
            self.addCleanup(disk.end)
        return {"data": lambda number: self.server_disks[number].path / "data"}

    def test_a_server_has_no_space(self):
        self.begin_load()
        for number in (self.follower(), self.ensemble.leader()):
            self.say(f"the disk of server {number} is full, leader is {self.ensemble.leader()}")
            self.server_disks[number].fill()
            for n in range(20):
                self.ctl("topic", "alter", "safe", "-c", f"retention.age={n + 1}d")
                time.sleep(0.2)
            self.serves()
            self.writes_go_on()
            self.server_disks[number].give_back()
            self.ensemble.servers[number].kill()
            self.ensemble.start([number])
            self.serves()
            self.whole_again()
        self.finish()


class One(FaultCase):
    NETWORK = True
    EXPECTED_ERRORS = ("it stands again later",)

    def test_a_broker_is_cut_from_it_beyond_its_session(self):
        """It is registered again by itself, and stays."""
        self.begin_load()
        self.say("broker 3 cannot reach ZooKeeper")
        with cut(self, ["b3"], ["zk"]):
            wait_until(lambda: self.led_by(3) == 0 and self.all_led(), 40, "others lead")
            time.sleep(SESSION_SECONDS)
        wait_until(lambda: "registered again" in self.nodes[3].log(), 15, "it is registered again")
        self.whole_again()
        self.say("kill -9 of broker 2, which is back before its session ends")
        with killed(self, 2):
            time.sleep(1)
        self.whole_again()
        for _ in range(10):
            time.sleep(1)
            self.assertTrue(self.whole(), "nobody goes when the session of the killed process ends")
        self.finish(longest=SESSION_SECONDS + 3)


class AnswersLost(FaultCase):
    """Each broker reaches ZooKeeper through a relay that loses answers to writes: they have taken effect, and the one who wrote has to find out."""

    EXPECTED_ERRORS = ("it stands again later",)
    SHARE = 0.2

    def start_zookeeper(self):
        super().start_zookeeper()
        self.relays = [ZooKeeperRelay(("127.0.0.1", self.zookeeper.port), seed=number) for number in (1, 2, 3)]
        for relay in self.relays:
            self.addCleanup(relay.end)
        return [f"zookeeper://127.0.0.1:{relay.port}/mq" for relay in self.relays]

    def lose(self, share, *about):
        for relay in self.relays:
            relay.share, relay.about = share, about

    def lost(self):
        return sum(relay.lost for relay in self.relays)

    def admin(self, *words):
        return self.ctl("--timeout", "20s", *words, seconds=90)

    def change_topics(self, round_number):
        """What is said to be done is done; what is not may be repeated."""
        name = f"made-{round_number}"
        made = self.admin("topic", "create", name, "-p", "2", "--replicas", "3")
        if made.code != 0:
            made = self.admin("topic", "create", name, "-p", "2", "--replicas", "3")
        if made.code == 0 or "TOPIC_EXISTS" in made.err:
            self.made.add(name)
        else:
            self.unsure.add(name)
        if round_number % 3 == 2:
            gone = self.admin("topic", "delete", f"made-{round_number - 1}", "--yes")
            self.made.discard(f"made-{round_number - 1}")
            if gone.code != 0:
                self.unsure.add(f"made-{round_number - 1}")

    def test_while_topics_and_leaders_change(self):
        self.made, self.unsure = set(), set()
        self.begin_load()
        self.lose(self.SHARE)
        rounds = 9
        for round_number in range(rounds):
            self.change_topics(round_number)
            if round_number % 3 == 0:
                number = 1 + round_number // 3
                self.say(f"kill -9 of broker {number}")
                with killed(self, number):
                    time.sleep(SESSION_SECONDS + 2)
        self.lose(0)
        self.say(f"{self.lost()} answers were lost")
        self.assertGreater(self.lost(), 5)
        self.whole_again(60)
        done = self.ctl("topic", "list", "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        there = {one["name"] for one in json.loads(done.out)["items"]} - set(self.TOPICS)
        self.assertEqual(there - self.unsure, self.made - self.unsure)
        # Whatever became of a change, it can be made once more.
        for round_number in range(rounds):
            self.assertTrue(self.created(f"made-{round_number}"))
        self.whole_again()
        self.finish()

    @contextlib.contextmanager
    def losing(self, what, *about, least=1):
        """Half of the answers to the writes that are about this."""
        before = self.lost()
        self.lose(0.5, *about)
        try:
            yield
        finally:
            self.lose(0)
        self.say(f"{what}: {self.lost() - before} answers were lost")
        self.assertGreaterEqual(self.lost() - before, least)

    def test_of_registrations(self):
        self.begin_load()
        for way in (killed, stopped, killed):
            with self.losing("registrations", b"/brokers/live/", b"/brokers/epoch/"):
                for number in (1, 2, 3):
                    with way(self, number):
                        time.sleep(1)
            self.whole_again(60)
        for number, node in self.nodes.items():
            with self.losing(f"registrations of broker {number} after a lost session", b"/brokers/live/", b"/brokers/epoch/", least=0):
                with paused(self, number):
                    time.sleep(1.5 * SESSION_SECONDS)
                wait_until(lambda: "registered again" in node.log(), 60, "it is registered again")  # noqa: B023
            self.whole_again(60)
        self.finish()

    def test_of_the_controllers_elections(self):
        self.begin_load()
        for _ in range(6):
            number = self.controller()
            self.say(f"kill -9 of broker {number}, the controller")
            with self.losing("the office", b"/ctl/leader", least=0), killed(self, number):
                wait_until(lambda: self.controller() not in (None, number), 60, "another controller")  # noqa: B023
                wait_until(lambda: self.created(f"meanwhile-{number}"), 60, "a topic is made")  # noqa: B023
            self.whole_again(60)
        self.assertGreater(self.lost(), 3)
        self.finish()

    def test_of_elections_and_of_changes_of_isrs(self):
        self.begin_load()
        names = [f"{topic}/{partition}" for topic, (partitions, _) in self.TOPICS.items() for partition in range(partitions)]
        with self.losing("leaders chosen by hand", b"/state/", least=3):
            for number in (1, 2, 3) * 3:
                self.admin("partition", "elect-leader", *names, "--broker", str(number))
                time.sleep(0.5)
        self.whole_again(60)
        before = self.lost()
        for number in (1, 2, 3):
            with self.losing("a killed leader", b"/state/", least=0), killed(self, number):
                self.others_lead(number, seconds=60)
            self.whole_again(60)
        for number in (1, 2, 3):
            # Out of the ISR, and in again.
            with self.losing("a broker that stands still", b"/state/", least=0):
                with paused(self, number):
                    time.sleep(2 * SESSION_SECONDS)
                wait_until(self.whole, 90, "it is in sync again")
            self.whole_again(60)
        self.assertGreater(self.lost() - before, 1)
        self.finish()

    def test_of_changes_of_topics(self):
        self.begin_load()
        with self.losing("topics", b"/topics/", b"/state/", b"/deleting/", least=10):
            for round_number in range(8):
                name = f"changed-{round_number}"
                self.until_done("topic", "create", name, "-p", "2", "--replicas", "3", but="TOPIC_EXISTS")
                self.until_done("topic", "add-partitions", name, "--total", "4")
                self.until_done("topic", "alter", name, "-c", f"retention.age={round_number + 16}d")
                if round_number % 2:
                    self.until_done("topic", "delete", name, "--yes", but="UNKNOWN_TOPIC")
        self.whole_again(60)
        done = self.ctl("topic", "list", "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        there = {one["name"]: one["partitions"] for one in json.loads(done.out)["items"] if one["name"] not in self.TOPICS}
        self.assertEqual(there, {f"changed-{round_number}": 4 for round_number in (0, 2, 4, 6)})
        for round_number in (0, 2, 4, 6):
            done = self.ctl("topic", "describe", f"changed-{round_number}", "-o", "json")
            self.assertEqual(json.loads(done.out)["items"][0]["settings"]["retention.age"]["value"], f"{round_number + 16}d")
        self.finish()

    def until_done(self, *words, but="nothing else"):
        """Whatever became of it, it can be asked for again; the second time it may have been done already."""
        for _ in range(20):
            done = self.admin(*words)
            if done.code == 0 or but in done.err:
                return
        self.fail(done.err)


if __name__ == "__main__":
    main(needs_network=True, needs_disks=True)
