"""Processes that are killed, stopped, started again and paused, one and all, under load."""

import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import program, wait_until  # noqa: E402
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import back, killed, paused, stopped  # noqa: E402


class Killed(FaultCase):
    def test_one_after_the_other_comes_back_at_once_and_late(self):
        self.begin_load()
        # Each leads some partitions and follows in others; the first is the controller besides.
        order = [self.controller(), *(number for number in self.nodes if number != self.controller())]
        for number, seconds in zip((*order, *order), (0, 2, SESSION_SECONDS / 2, 2 * SESSION_SECONDS, 0, 1)):
            self.say(f"kill -9 of broker {number}, back after {seconds:.0f} s")
            began = time.monotonic()
            with killed(self, number):
                time.sleep(seconds)
            self.say(f"ready {time.monotonic() - began - seconds:.1f} s later")
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_all_at_once_come_back_in_any_order(self):
        self.begin_load()
        for order in ((1, 2, 3), (3, 1, 2), (2, 3, 1), (3, 2, 1), (1, 3, 2)):
            self.say(f"kill -9 of all; they come back in the order {order}")
            began = time.monotonic()
            with killed(self, *order):
                pass
            self.writes_go_on(seconds=SESSION_SECONDS + 10 + 10)
            self.say(f"writing goes on {time.monotonic() - began:.1f} s later")
            self.whole_again()
        self.finish()

    def test_restarts_without_a_pause(self):
        self.begin_load()
        chosen = random.Random(4)
        for _ in range(12):
            number = chosen.choice((1, 2, 3))
            self.say(f"kill -9 of broker {number}")
            with killed(self, number):
                time.sleep(chosen.choice((0, 0.3, 1)))
        for _ in range(4):
            number = max(1, self.leader_of("safe"))
            self.say(f"kill -9 of broker {number}, which leads")
            with killed(self, number):
                wait_until(lambda: self.leader_of("safe") not in (-1, number), 40, "another one leads")  # noqa: B023
        self.finish()

    def test_one_after_the_other_is_stopped_and_started(self):
        self.begin_load()
        for _ in range(2):
            for number in self.nodes:
                self.say(f"broker {number} is stopped")
                with stopped(self, number):
                    time.sleep(0.5)
                self.whole_again()
        self.finish(longest=1.5, failures_allowed=False)


class Paused(FaultCase):
    def test_leaders_for_a_moment_and_beyond_their_sessions(self):
        self.begin_load()
        for number, seconds in ((1, 1), (2, SESSION_SECONDS / 2), (3, 2 * SESSION_SECONDS), (1, 1), (2, 20)):
            self.say(f"broker {number} is paused for {seconds:.0f} s")
            with paused(self, number):
                time.sleep(seconds)
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_the_controller_and_then_the_next_one(self):
        self.begin_load()
        for _ in range(2):
            number = self.controller()
            self.say(f"broker {number}, the controller, is paused")
            node = self.nodes.pop(number)
            self.nodes[number] = node
            with paused(self, number):
                time.sleep(2 * SESSION_SECONDS)
            wait_until(lambda: self.controller() not in (None, number), 40, "another controller")  # noqa: B023
            wait_until(lambda: self.created(f"meanwhile-{number}"), 40, "a topic is made")  # noqa: B023
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_two_so_that_nothing_can_be_acknowledged(self):
        self.begin_load()
        for some in ((1, 2), (2, 3), (3, 1)):
            self.say(f"brokers {some} are paused")
            with paused(self, *some):
                time.sleep(SESSION_SECONDS / 2)
                before = self.load.acknowledged()
                time.sleep(SESSION_SECONDS)
                self.assertEqual(self.load.acknowledged(), before, "the one that is left acknowledges nothing")
            self.writes_go_on(seconds=60)
            self.whole_again(60)
        self.finish()

    def test_one_while_another_is_killed(self):
        self.begin_load()
        for held, gone, seconds in ((1, 2, 1), (2, 3, 12), (3, 1, 3)):
            self.say(f"broker {held} is paused, and {gone} killed meanwhile")
            with paused(self, held):
                time.sleep(seconds)
                self.nodes[gone].kill9()
                time.sleep(1)
            back(self, [gone])
            self.whole_again(60)
        self.finish()


class GivenUp(FaultCase):
    def write_to(self, node, value):
        """acks=leader, through this broker; it goes on by itself."""
        command = [program("mqctl"), "-b", node.address, "--timeout", "15s", "produce", "plain", "--acks", "leader"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        process.stdin.write(value.encode())
        process.stdin.close()
        return process

    def test_a_leader_that_is_back_from_a_pause_acknowledges_nothing_by_itself(self):
        done = self.ctl("topic", "create", "plain", "-p", "1", "--replicas", "3", "-c", "durability=memory", "-c", "min_isr=2")
        self.assertEqual(done.code, 0, done.err)
        self.begin_load(rate=100)
        acknowledged = set()
        for number in self.nodes:
            self.ctl("partition", "elect-leader", "plain/0", "--broker", str(number))
            wait_until(lambda: self.leader_of("plain") == number, 20, "it leads")  # noqa: B023
            self.say(f"broker {number} leads and is paused, and is written to")
            with paused(self, number):
                wait_until(lambda: self.leader_of("plain") not in (-1, number), 40, "another one leads")  # noqa: B023
                writers = {f"{number}-{n}": self.write_to(self.nodes[number], f"{number}-{n}") for n in range(6)}
                time.sleep(1)
            acknowledged |= {value for value, process in writers.items() if process.wait(timeout=60) == 0}
            self.whole_again()
        self.say(f"{len(acknowledged)} were acknowledged")
        done = self.ctl("consume", "plain", "-e", seconds=60)
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(acknowledged - set(done.out.split()), set(), "acknowledged and lost")
        self.finish()


if __name__ == "__main__":
    main()
