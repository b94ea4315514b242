"""Who leads after a broker of three has gone, and how soon: killed processes are not waited for, partitions that only one broker can
lead are handed over as soon as another one has them, leaders go back to the first of their replicas."""

import json
import pathlib
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, TOPIC, Replicated  # noqa: E402
from zookeeper import available  # noqa: E402

# Well below the session time of ten seconds.
SOON_SECONDS = 4


class KilledBrokers(Replicated):
    def place_of(self, number):
        return {"extra": '\n[replication]\nleader_balance_after = "2s"\n'}

    def kill_and_watch(self, number):
        began = time.monotonic()
        self.nodes[number].kill9()
        wait_until(lambda: self.led_by(number) == 0 and self.all_led(), SOON_SECONDS, "others lead at once")
        return time.monotonic() - began

    def some_follower_of_the_controller(self):
        return next(number for number in self.nodes if number != self.controller())

    def test_what_a_killed_process_led_is_led_elsewhere_before_its_session_ends(self):
        self.wait_until_whole()
        writer = self.writer()
        for number in (self.some_follower_of_the_controller(), self.controller()):
            self.write_some(writer)
            self.kill_and_watch(number)
            self.write_some(writer)
            # Its registration is gone, so that it need not wait either.
            began = time.monotonic()
            self.ready(self.nodes[number], self.restart(number))
            self.assertLess(time.monotonic() - began, SOON_SECONDS)
            self.wait_until_whole()
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_leaders_go_back_to_the_first_of_their_replicas(self):
        self.wait_until_whole()
        firsts = {number: sum(1 for one in self.partitions() if one["replicas"][0] == number) for number in self.nodes}
        writer = self.writer()
        number = self.some_follower_of_the_controller()
        self.kill_and_watch(number)
        self.ready(self.nodes[number], self.restart(number))
        wait_until(lambda: self.led_by(number) == firsts[number], FAILOVER_SECONDS, "it leads again what it led")
        # Who is chosen by hand stays.
        chosen = next(one for one in self.partitions() if one["replicas"][0] == number)
        other = chosen["replicas"][1]
        name = f"{TOPIC}/{chosen['partition']}"
        self.assertEqual(self.ctl("partition", "elect-leader", name, "--broker", str(other)).code, 0)
        time.sleep(10)
        now = next(one for one in self.partitions() if one["partition"] == chosen["partition"])
        self.assertEqual(now["leader"], other)
        self.check_records(writer.end())

    def test_a_topic_is_made_while_a_broker_is_away(self):
        self.wait_until_whole()
        away = self.some_follower_of_the_controller()
        self.nodes[away].kill9()
        wait_until(lambda: self.led_by(away) == 0, SOON_SECONDS, "it is known to be away")
        done = self.ctl("topic", "create", "made-meanwhile", "-p", "3")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(self.ctl("produce", "made-meanwhile", "--acks", "all", stdin=b"one\ntwo\n").code, 0)
        self.ready(self.nodes[away], self.restart(away))
        wait_until(lambda: all(len(one["in_sync"]) == 3 for one in self.partitions("made-meanwhile")), FAILOVER_SECONDS,
                   "it has its copies")


class Leaving(Replicated):
    def one_in_sync(self, leaver):
        """Its two followers stand still until they are out of the ISR; min_isr is 1, so that nobody is in the ELR."""
        for number, node in self.nodes.items():
            if number != leaver:
                node.kill9()
        wait_until(lambda: all(one["leader"] == leaver and one["in_sync"] == [leaver] for one in self.partitions()),
                   FAILOVER_SECONDS, "it is the only one in sync")

    def test_the_only_one_in_sync_says_so_or_hands_over_later(self):
        self.wait_until_whole()
        self.assertEqual(self.ctl("topic", "alter", TOPIC, "-c", "min_isr=1").code, 0)
        leaver = self.controller()
        node = self.nodes[leaver]
        self.one_in_sync(leaver)
        self.assertEqual(self.ctl("produce", TOPIC, stdin=b"only\nhere\n").code, 0)
        done = node.ctl("broker", "can-stop", str(leaver))
        self.assertEqual(done.code, 10, done.err)
        self.assertIn("no other copy of it is in sync", done.out)
        began = time.monotonic()
        self.assertEqual(node.stop(), 0)
        self.assertLess(time.monotonic() - began, 5, "nobody is waited for")
        self.assertIn("this broker stops as the only one with a copy in sync of orders-0", node.log())
        for number in self.nodes:
            self.restart(number)
        self.wait_until_whole()
        done = self.ctl("consume", TOPIC, "-e", seconds=60)
        self.assertEqual(sorted(done.out.split()), ["here", "only"])
        self.check_logs_are_equal()


class StalledDisk(Replicated):
    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_a_leader_whose_disk_stands_still_gives_way(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer)
        number = next(number for number in self.nodes if number != self.controller())
        stall = subprocess.Popen(
            ["strace", "-qq", "-f", "-o", "/dev/null", "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=25s",
             "-p", str(self.nodes[number].process.pid)], stdin=subprocess.DEVNULL)
        try:
            # Ten seconds without progress for each partition that is written to.
            wait_until(lambda: self.led_by(number) == 0, FAILOVER_SECONDS, "others lead")
            self.assertIsNone(self.nodes[number].process.poll())
            self.write_some(writer)
        finally:
            stall.terminate()
            stall.wait()
        self.wait_until_whole()
        self.check_records(writer.end())
        self.check_logs_are_equal()


class RecordsGivenUp(Replicated):
    TOPICS = {TOPIC: (1, ("min_isr=1", "unclean_election=true"))}

    def test_a_topic_that_would_rather_lose_records_says_which(self):
        self.wait_until_whole()
        self.assertEqual(self.ctl("produce", TOPIC, "--acks", "all", stdin=b"kept\n").code, 0)
        time.sleep(6)  # how far it was confirmed is written down every five seconds
        leader = self.partitions()[0]["leader"]
        others = [number for number in self.nodes if number != leader]
        for number in others:
            self.nodes[number].kill9()
        wait_until(lambda: self.partitions() and self.partitions()[0]["in_sync"] == [leader], FAILOVER_SECONDS,
                   "it is alone")
        self.assertEqual(self.ctl("produce", TOPIC, "--acks", "all", stdin=b"lost-1\nlost-2\n").code, 0)
        self.nodes[leader].kill9()
        for number in others:
            self.ready(self.nodes[number], self.restart(number))
        time.sleep(10)
        self.assertNotIn(self.partitions()[0]["leader"], self.nodes, "whoever was only restarted is waited for")
        wait_until(lambda: self.partitions()[0]["leader"] in others, FAILOVER_SECONDS, "another one leads")
        done = self.ctl("health")
        self.assertIn("orders/0 (from offset 1 on", done.out + done.err)
        self.assertEqual(self.ctl("produce", TOPIC, stdin=b"new\n").code, 0)
        self.ready(self.nodes[leader], self.restart(leader))
        self.wait_until_whole()
        item = json.loads(self.ctl("partition", "describe", f"{TOPIC}/0", "-o", "json").out)["items"][0]
        self.assertEqual((item["loss_start"], item["loss_end"]), (1, 3))
        self.assertEqual(self.ctl("partition", "acknowledge-loss", f"{TOPIC}/0").code, 0)
        self.assertEqual(self.ctl("health").code, 0)
        self.assertEqual(self.ctl("consume", TOPIC, "-e").out.split(), ["kept", "new"])
        self.check_logs_are_equal()


class OlderDisk(Replicated):
    def test_a_disk_that_was_put_back_from_an_older_copy_does_not_lead(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer)
        number = next(number for number in self.nodes if number != self.controller())
        node = self.nodes[number]
        copy = node.data.with_name("copy")
        self.assertEqual(node.stop(), 0)
        shutil.copytree(node.data, copy)
        self.ready(node, self.restart(number))
        self.wait_until_whole()
        self.assertNotIn("an older copy was put back", node.log())
        self.write_some(writer, 300)
        # All at once, so that it is in every ISR; and it comes back alone, with the log of a clean stop.
        for one in self.nodes.values():
            one.kill9()
        acknowledged = writer.end()
        shutil.rmtree(node.data)
        copy.rename(node.data)
        self.ready(node, self.restart(number))
        self.assertIn("an older copy was put back", node.log())
        time.sleep(3)
        partitions = self.partitions()
        self.assertEqual(len(partitions), self.how_many())
        self.assertFalse([one for one in partitions if one["leader"] in self.nodes])
        for other in self.nodes:
            if other != number:
                self.restart(other)
        self.wait_until_whole()
        self.check_records(acknowledged)
        self.check_logs_are_equal()


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
