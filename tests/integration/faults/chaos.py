"""Three brokers with three replicas of each partition, two writers, and one trouble after the other drawn from a seed: kill -9
and controlled stops of one, two or all brokers, pauses, ZooKeeper away. In the end everything is healed, and what was
acknowledged is there once, in order, and the same on all three disks.

MQ_CHAOS_SEED and MQ_CHAOS_SECONDS choose which and how long; `tools/dev chaos` sets them."""

import os
import pathlib
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from three_brokers import FAILOVER_SECONDS, TOPIC, Replicated  # noqa: E402
from zookeeper import available  # noqa: E402

SEED = int(os.environ.get("MQ_CHAOS_SEED", time.time_ns() % 1_000_000))
SECONDS = float(os.environ.get("MQ_CHAOS_SECONDS", 120))
WRITERS = 2


class Chaos(Replicated):
    def setUp(self):
        print(f"chaos: seed {SEED}, {SECONDS:.0f} s", flush=True)
        self.random = random.Random(SEED)
        super().setUp()

    def say(self, text):
        print(f"  {time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def pause(self, *choices):
        time.sleep(self.random.choice(choices))

    def back(self, numbers):
        """Starts them all, then waits: alone none of them need ever get ready."""
        waits = [(self.nodes[number], self.restart(number)) for number in numbers]
        for node, times in waits:
            self.ready(node, times)

    def kill(self, numbers):
        for number in numbers:
            self.nodes[number].kill9()
        self.pause(0, 2, 3, 12)
        self.random.shuffle(numbers)
        self.back(numbers)

    def kill_one(self):
        number = self.random.choice([self.controller() or 1, *self.nodes])
        self.say(f"kill -9 of broker {number}")
        self.kill([number])

    def kill_two(self):
        numbers = self.random.sample(sorted(self.nodes), 2)
        self.say(f"kill -9 of brokers {numbers}")
        self.kill(numbers)

    def kill_all(self):
        self.say("kill -9 of all")
        self.kill(sorted(self.nodes))

    def stop_one(self):
        number = self.random.choice(sorted(self.nodes))
        self.say(f"broker {number} is stopped")
        self.assertEqual(self.nodes[number].stop(), 0)
        self.pause(0, 3)
        self.back([number])

    def hold_one(self):
        number = self.random.choice(sorted(self.nodes))
        seconds = self.random.choice((1, 3, 14))
        self.say(f"broker {number} is paused for {seconds} s")
        node = self.nodes[number]
        node.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            node.process.send_signal(signal.SIGCONT)

    def hold_one_and_kill_one(self):
        held, killed = self.random.sample(sorted(self.nodes), 2)
        self.say(f"broker {held} is paused, and {killed} killed meanwhile")
        node = self.nodes[held]
        node.process.send_signal(signal.SIGSTOP)
        try:
            self.pause(1, 12)
            self.nodes[killed].kill9()
        finally:
            node.process.send_signal(signal.SIGCONT)
        self.back([killed])

    def zookeeper_away(self):
        self.say("ZooKeeper is away")
        self.zookeeper.kill()
        self.pause(1, 4, 15)
        self.zookeeper.start()

    def check_order(self, writers):
        """Each value once; and in a partition those of one writer in the order in which they were sent."""
        done = self.ctl("consume", TOPIC, "-e", "-f", "%p %k:%v\\n", seconds=300)
        self.assertEqual(done.code, 0, done.err)
        newest, seen = {}, set()
        for line in done.out.splitlines():
            partition, record = line.split()
            self.assertNotIn(record, seen, "twice")
            seen.add(record)
            writer, number = record.split(":")[1].split("-")
            self.assertGreater(int(number), newest.get((partition, writer), -1), f"out of order: {line}")
            newest[(partition, writer)] = int(number)
        for writer in writers:
            self.assertTrue(writer.acknowledged)
            self.assertEqual(writer.acknowledged - seen, set(), "acknowledged and lost")

    def test_chaos(self):
        self.wait_until_whole()
        writers = [self.writer(f"w{number}") for number in range(WRITERS)]
        troubles = [self.kill_one, self.kill_one, self.kill_two, self.kill_all, self.stop_one, self.hold_one,
                    self.hold_one_and_kill_one, self.zookeeper_away]
        self.begun = time.monotonic()
        while time.monotonic() - self.begun < SECONDS:
            self.random.choice(troubles)()
            if self.random.random() < 0.5:
                self.wait_until_whole(FAILOVER_SECONDS + 60)
                self.say("whole again")
            self.pause(0.2, 1, 3)
        self.wait_until_whole(FAILOVER_SECONDS + 60)
        for writer in writers:
            before = len(writer.acknowledged)
            wait_until(lambda: len(writer.acknowledged) > before, 60, "writing works")  # noqa: B023
        for writer in writers:
            writer.end()
        self.check_order(writers)
        self.wait_until_whole()
        self.check_logs_are_equal()
        print(f"chaos: {sum(len(writer.acknowledged) for writer in writers)} records acknowledged, none lost", flush=True)


if __name__ == "__main__":
    if not available():
        print("skipped: no java or no zookeeper.jar (tools/dev setup installs both)")
        sys.exit(77)
    unittest.main(verbosity=2)
