"""Machines that lose their power under load, one, two and all: brokers on file systems of their own in loop devices, of which what was
not synced is gone afterwards. Needs root."""

import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import cut_power, paused, without_power  # noqa: E402


class PowerCuts(FaultCase):
    DISKS = ("ext4", 512)

    def test_of_one_machine_after_the_other(self):
        self.begin_load()
        for number, seconds in ((1, 0), (2, 3), (3, 12), (1, 1), (2, 0), (3, 2)):
            self.say(f"broker {number} is without power for {seconds} s")
            with without_power(self, number):
                time.sleep(seconds)
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_of_two_machines_at_once(self):
        self.begin_load()
        for numbers in ((1, 2), (2, 3), (3, 1)):
            self.say(f"brokers {numbers} are without power")
            with without_power(self, *numbers):
                time.sleep(2)
            self.whole_again(60)
        self.finish()

    def test_of_all_machines_at_once(self):
        """What was acknowledged under `disk` is there. Of `memory` some may be gone, and then that is an alarm."""
        self.begin_load()
        self.power_off_and_on((1, 2, 3))
        self.power_off_and_on((3, 1, 2))
        self.power_off_and_on((2, 3, 1))
        self.expected_errors.append("below its high watermark")
        self.finish(losses=("fast",))

    def power_off_and_on(self, numbers):
        self.say(f"no power; they come back in the order {numbers}")
        with without_power(self, *numbers):
            pass
        self.whole_again(60)

    def test_one_is_paused_another_loses_its_power_and_the_third_is_paused(self):
        """The one that was away all the time is never taken for whole: what it lacks is waited for."""
        self.begin_load()
        for away, cut, held in ((1, 2, 3), (2, 3, 1)):
            self.say(f"broker {away} is paused, {cut} loses its power, {held} is paused, {away} goes on, {cut} comes back")
            node = self.nodes.pop(away)
            self.nodes[away] = node  # others are asked first
            with paused(self, away):
                self.others_lead(away)
                self.writes_go_on()
                time.sleep(2)
                cut_power(self, cut)
                self.nodes[held].process.send_signal(signal.SIGSTOP)
            times = self.restart(cut)
            time.sleep(2 * SESSION_SECONDS)
            self.nodes[held].process.send_signal(signal.SIGCONT)
            self.ready(self.nodes[cut], times)
            self.whole_again(60)
            self.writes_go_on()
        self.finish()


class OnXfs(PowerCuts):
    DISKS = ("xfs", 768)  # the file in it is sparse; a full disk is another test


if __name__ == "__main__":
    main(needs_disks=True)
