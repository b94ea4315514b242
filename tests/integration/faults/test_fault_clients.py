"""Two hundred clients of three brokers, whose partitions are led elsewhere again and again."""

import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cases"))
from daemon import wait_until  # noqa: E402
from fault_case import SESSION_SECONDS, FaultCase, main  # noqa: E402
from nemesis import killed, stopped  # noqa: E402

CLIENTS = 200
AWAY_SECONDS = 15
# Until a client that has waited for so long tries again, and its records are there.
BACK_SECONDS = 30


class Many(FaultCase):
    RATE = 4

    def begin_many(self):
        self.begin_load(writers=CLIENTS)
        self.runs += CLIENTS // 10  # the next load has other writers
        self.wait_for_all(0)

    def wait_for_all(self, since):
        """Each of the clients has a record acknowledged that was sent since."""
        def writers():
            fields = (line.split() for line in self.load.lines() if line.startswith("a "))
            return {int(field[4]) for field in fields if int(field[6]) >= since}
        began = time.monotonic()
        wait_until(lambda: len(writers()) == CLIENTS, BACK_SECONDS, "every client is served")
        self.say(f"every client is served after {time.monotonic() - began:.1f} s")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.load.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def test_every_leader_is_lost(self):
        self.begin_many()
        for number in (1, 2, 3):
            self.say(f"kill -9 of broker {number}")
            with killed(self, number):
                self.others_lead(number)
                self.wait_for_all(time.monotonic_ns() // 1000)
            self.whole_again()
        for number in (3, 2, 1):
            self.say(f"broker {number} is stopped")
            with stopped(self, number):
                self.wait_for_all(time.monotonic_ns() // 1000)
            self.whole_again()
        self.finish(longest=SESSION_SECONDS + 3)

    def test_all_are_away_for_a_while(self):
        self.begin_many()
        self.say("kill -9 of all")
        with killed(self, 1, 2, 3):
            time.sleep(3)
            used = -self.cpu_seconds()
            time.sleep(AWAY_SECONDS)
            used += self.cpu_seconds()
        share = used / AWAY_SECONDS / CLIENTS
        self.say(f"each client uses {100 * share:.3f} % of a core while nobody is there")
        self.assertLess(share, 0.02)
        self.wait_for_all(time.monotonic_ns() // 1000)
        self.finish()


if __name__ == "__main__":
    main()
