"""Three brokers with three replicas of each partition: kill -9 of leaders, a controlled stop, a pause, an emptied disk. Records
are written with acks=all all the time; what was acknowledged is there at the end, whoever leads then, and every log is the same."""

import json
import pathlib
import shutil
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, PARTITIONS, TOPIC, Replicated  # noqa: E402
from zookeeper import available  # noqa: E402


class ThreeReplicas(Replicated):
    def starts(self):
        """As brokers that live say."""
        done = self.ctl("topic", "describe", TOPIC, "-o", "json")
        self.assertEqual(done.code, 0, done.err)
        return [one["log_start_offset"] for one in json.loads(done.out)["items"][0]["partitions"]]

    def test_all_replicas_are_in_sync_from_the_start(self):
        self.wait_until_whole()
        leaders = {one["leader"] for one in self.partitions()}
        self.assertEqual(leaders, {1, 2, 3})
        done = self.ctl("produce", TOPIC, "--acks", "all", stdin=b"one\ntwo\n")
        self.assertEqual(done.code, 0, done.err)

    def test_a_deleted_topic_leaves_no_file_on_any_of_them(self):
        self.wait_until_whole()
        folders = [node.data for node in self.nodes.values()]
        self.assertTrue(all(len(list(data.glob("*-[0-9]"))) == PARTITIONS for data in folders))
        self.assertEqual(self.ctl("topic", "delete", TOPIC, "-y").code, 0)
        wait_until(lambda: not any(list(data.glob("*-[0-9]")) for data in folders), 30, "the files are gone")

    def test_what_is_trimmed_is_gone_from_whoever_leads_next(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer, 300)
        writer.end()
        self.assertEqual(self.ctl("topic", "trim", TOPIC, "--to", "-10", "-y").code, 0)
        starts = self.starts()
        self.assertTrue(all(starts), starts)
        for number in (1, 2, 3):
            self.assertEqual(self.nodes[number].stop(), 0)
            wait_until(lambda: self.led_by(number) == 0 and self.all_led(), 3, "others lead at once")
            self.assertEqual(self.starts(), starts)
            self.ready(self.nodes[number], self.restart(number))
            self.wait_until_whole()

    def test_a_replica_comes_back_behind_a_trim_into_a_batch(self):
        self.wait_until_whole()
        data = lambda first: "".join(f"k:{number}\n" for number in range(first, first + 500)).encode()  # noqa: E731
        produce = ("produce", TOPIC, "-p", "0", "-K", ":", "--compression", "none")
        for how in ("away", "emptied"):
            self.assertEqual(self.ctl(*produce, stdin=data(0)).code, 0)
            self.wait_until_whole()
            self.assertEqual(self.nodes[3].stop(), 0)
            if how == "emptied":
                shutil.rmtree(self.nodes[3].data)
            wait_until(self.all_led, 10, "others lead")
            self.assertEqual(self.ctl(*produce, stdin=data(500)).code, 0)
            # One record alone is no batch of these.
            done = self.ctl("topic", "trim", TOPIC, "-p", "0", "--to", "-3", "-y")
            self.assertEqual(done.code, 0, done.err)
            self.ready(self.nodes[3], self.restart(3))
            self.wait_until_whole()
            self.assertEqual(self.ctl("partition", "elect-leader", f"{TOPIC}/0", "--broker", "3").code, 0)
            done = self.ctl("consume", TOPIC, "-p", "0", "-o", "start", "-e", "-f", "%v\\n")
            self.assertEqual(done.out.split(), ["997", "998", "999"], done.err)

    def test_leaders_are_killed_and_come_back(self):
        self.wait_until_whole()
        writer = self.writer()
        for number in (1, 2, 3, 1):
            self.write_some(writer)
            self.nodes[number].kill9()
            wait_until(lambda: self.led_by(number) == 0 and self.all_led(), FAILOVER_SECONDS, "others lead")
            self.write_some(writer)
            self.ready(self.nodes[number], self.restart(number))
            self.wait_until_whole()
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_a_machine_is_lost_with_its_disk(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer)
        acknowledged = set(writer.acknowledged)
        self.nodes[2].kill9()
        shutil.rmtree(self.nodes[2].data)
        wait_until(lambda: self.led_by(2) == 0 and self.all_led(), FAILOVER_SECONDS, "others lead")
        self.assertTrue(acknowledged)
        self.write_some(writer)
        self.ready(self.nodes[2], self.restart(2))
        self.wait_until_whole()
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_all_are_killed_at_once(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer)
        for node in self.nodes.values():
            node.kill9()
        for number, node in self.nodes.items():
            self.ready(node, self.restart(number))
        self.wait_until_whole()
        self.write_some(writer)
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_a_controlled_stop_hands_the_partitions_over_first(self):
        self.wait_until_whole()
        writer = self.writer()
        for number in (1, 2, 3):
            self.write_some(writer)
            began = time.monotonic()
            self.assertEqual(self.nodes[number].stop(), 0)
            # Not only after the session of the one that went has ended.
            wait_until(lambda: self.led_by(number) == 0 and self.all_led(), 3, "others lead at once")
            self.assertLess(time.monotonic() - began, 10)
            self.write_some(writer)
            self.ready(self.nodes[number], self.restart(number))
            self.wait_until_whole()
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_a_paused_leader_is_replaced_and_follows_afterwards(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer)
        paused = self.nodes.pop(1)
        paused.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: self.led_by(1) == 0 and self.all_led(), FAILOVER_SECONDS, "others lead")
            self.write_some(writer)
        finally:
            paused.process.send_signal(signal.SIGCONT)
            self.nodes[1] = paused
        self.wait_until_whole()
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_a_log_that_lost_its_end_is_made_anew_from_its_leader(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer, 400)
        self.assertEqual(self.nodes[2].stop(), 0)  # the journal has nothing any more of what is damaged
        segments = [one for one in self.nodes[2].data.glob("*-*/*.log") if one.stat().st_size > 200]
        self.assertTrue(segments)
        for segment in segments:
            with open(segment, "r+b") as file:
                file.truncate(100)
        wait_until(lambda: self.led_by(2) == 0 and self.all_led(), FAILOVER_SECONDS, "others lead")
        self.ready(self.nodes[2], self.restart(2))
        self.wait_until_whole()
        self.assertIn("is kept under unknown/", self.nodes[2].log())
        self.write_some(writer)
        self.check_records(writer.end())
        self.check_logs_are_equal()

    def test_with_two_away_nothing_is_acknowledged_and_nothing_lost(self):
        self.wait_until_whole()
        writer = self.writer()
        self.write_some(writer)
        for number in (2, 3):
            self.nodes[number].kill9()
        wait_until(lambda: self.led_by(1) > 0, FAILOVER_SECONDS, "the last one leads")
        wait_until(lambda: "NOT_ENOUGH_REPLICAS" in self.ctl(
            "--timeout", "5s", "produce", TOPIC, stdin=b"k:refused\n").err, FAILOVER_SECONDS, "acks=all is refused")
        for number in (2, 3):
            self.ready(self.nodes[number], self.restart(number))
        self.wait_until_whole()
        self.write_some(writer)
        self.check_records(writer.end())
        self.check_logs_are_equal()


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
