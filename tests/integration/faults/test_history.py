"""The checkers of histories are checked: each is given a good history, and one that is wrong in just its way."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import history as h  # noqa: E402

# Two writers, two partitions; the last record failed, and may be there: it is.
LOAD = """
s t 0 0
s t 1 0
a t 0 0 0 0 100 200
a t 1 0 1 0 100 210
a t 0 1 0 1 220 300
a t 0 2 1 1 230 310
r t 0 0 0 0 250
r t 1 0 1 0 250
r t 0 1 0 1 350
r t 0 2 1 1 350
u t 1 0 2 400 900 TIMED_OUT
f t 1 1 2 400 900 NOT_ENOUGH_REPLICAS
w 0 3
w 1 3
x
"""
DRAIN = """
l t 0 0 3
l t 1 0 2
s t 0 0
s t 1 0
r t 0 0 0 0 1000
r t 0 1 0 1 1000
r t 0 2 1 1 1000
r t 1 0 1 0 1000
r t 1 1 0 2 1000
x
"""


def lines(text):
    return text.strip().splitlines()


class Checkers(unittest.TestCase):
    def found(self, load=(), drain=(), checkers=h.CHECKERS):
        """Names of the checkers that find something once lines are replaced (by None: left out)."""
        texts = []
        for text, changes in ((LOAD, load), (DRAIN, drain)):
            for old, new in changes:
                self.assertIn(old + "\n", text, "the good history has this line")
                text = text.replace(old + "\n", new + "\n" if new else "", 1)
            texts.append(lines(text))
        history = h.History().add(texts[0]).add(texts[1], "drain", final=True)
        return set(h.check(history, checkers=checkers))

    def test_a_good_history(self):
        self.assertEqual(self.found(), set())

    def test_an_acknowledged_record_that_is_gone_from_the_end(self):
        self.assertEqual(self.found(load=[("r t 0 2 1 1 350", None)], drain=[("r t 0 2 1 1 1000", None), ("l t 0 0 3", "l t 0 0 2")]),
                         {"lost_writes"})

    def test_an_acknowledged_record_that_cannot_be_read(self):
        self.assertEqual(self.found(load=[("r t 0 2 1 1 350", None)], drain=[("r t 0 2 1 1 1000", None)]), {"lost_writes"})

    def test_a_record_that_was_only_read_and_is_gone(self):
        self.assertEqual(self.found(load=[("a t 0 2 1 1 230 310", "u t 0 1 1 230 310 TIMED_OUT")],
                                    drain=[("r t 0 2 1 1 1000", None), ("l t 0 0 3", "l t 0 0 2")]), {"lost_writes"})

    def test_the_end_is_not_reached(self):
        self.assertEqual(self.found(drain=[("l t 1 0 2", "l t 1 0 3")]), {"lost_writes"})

    def test_a_partition_is_not_read_at_the_end(self):
        self.assertEqual(self.found(load=[("r t 1 0 1 0 250", None)],
                                    drain=[("l t 1 0 2", None), ("r t 1 0 1 0 1000", None), ("r t 1 1 0 2 1000", None)]),
                         {"lost_writes"})

    def test_nothing_is_read_at_the_end(self):
        self.assertEqual(h.lost_writes(h.History().add(lines(LOAD))), ["nothing was read at the end"])

    def test_a_value_at_two_offsets(self):
        drain = [("l t 0 0 3", "l t 0 0 4"), ("r t 0 2 1 1 1000", "r t 0 2 1 1 1000\nr t 0 3 1 1 1000")]
        self.assertEqual(self.found(drain=drain), {"duplicates", "writer_order"})

    def test_a_value_in_two_partitions(self):
        drain = [("l t 1 0 2", "l t 1 0 3"), ("r t 1 1 0 2 1000", "r t 1 1 0 2 1000\nr t 1 2 1 1 1000")]
        self.assertEqual(self.found(drain=drain), {"duplicates"})

    def test_another_value_at_an_offset(self):
        self.assertEqual(self.found(load=[("r t 0 1 0 1 350", None), ("r t 0 2 1 1 350", None)],
                                    drain=[("r t 0 1 0 1 1000", "r t 0 1 1 1 1000"), ("r t 0 2 1 1 1000", "r t 0 2 0 1 1000")]),
                         {"lost_writes", "inconsistent_offsets", "duplicates"})

    def test_a_reader_is_given_a_value_that_is_not_kept(self):
        self.assertEqual(self.found(load=[("r t 0 2 1 1 350", "r t 0 2 0 2 350")]),
                         {"lost_writes", "inconsistent_offsets", "duplicates"})

    def test_a_reader_misses_one(self):
        self.assertEqual(self.found(load=[("r t 0 1 0 1 350", None)]), {"poll_skips"})

    def test_a_reader_begins_late(self):
        self.assertEqual(self.found(load=[("r t 0 0 0 0 250", None)]), {"poll_skips"})

    def test_a_reader_goes_back(self):
        self.assertEqual(self.found(load=[("r t 0 2 1 1 350", "r t 0 2 1 1 350\nr t 0 1 0 1 360")]), {"poll_skips", "writer_order"})

    def test_one_is_sent_after_another_was_acknowledged_and_stands_before_it(self):
        self.assertEqual(self.found(load=[("a t 0 1 0 1 220 300", "a t 0 1 0 1 320 400")]), {"real_time_order"})

    def test_a_writer_is_turned_round(self):
        self.assertEqual(self.found(load=[("a t 0 0 0 0 100 200", "a t 0 1 0 0 100 300"), ("a t 0 1 0 1 220 300", "a t 0 0 0 1 220 300"),
                                          ("r t 0 0 0 0 250", "r t 0 0 0 1 350"), ("r t 0 1 0 1 350", "r t 0 1 0 0 350")],
                                    drain=[("r t 0 0 0 0 1000", "r t 0 0 0 1 1000"), ("r t 0 1 0 1 1000", "r t 0 1 0 0 1000")]),
                         {"writer_order"})

    def test_copies_of_writers_without_idempotence(self):
        checkers = [*h.PLAIN_CHECKERS, h.only_repeats]
        more = ("l t 0 0 3", "l t 0 0 5")
        last = "r t 0 2 1 1 1000"
        self.assertEqual(self.found(drain=[more, (last, f"{last}\nr t 0 3 0 1 1000\nr t 0 4 1 1 1000")], checkers=checkers), set())
        self.assertEqual(self.found(drain=[more, (last, f"{last}\nr t 0 3 0 0 1000\nr t 0 4 0 1 1000")], checkers=checkers),
                         {"only_repeats"})
        self.assertEqual(self.found(drain=[("l t 1 0 2", "l t 1 0 3"), ("r t 1 1 0 2 1000", "r t 1 1 0 2 1000\nr t 1 2 0 1 1000")],
                                    checkers=checkers), {"only_repeats", "order_of_first_copies"})

    def test_a_record_without_a_result(self):
        self.assertEqual(self.found(load=[("w 1 3", "w 1 4")]), {"results"})

    def test_a_record_with_two_results(self):
        self.assertEqual(self.found(load=[("a t 0 1 0 1 220 300", "a t 0 1 0 1 220 300\nu t 0 0 1 220 310 TIMED_OUT")]), {"results"})

    def test_what_was_refused_is_there(self):
        self.assertEqual(self.found(load=[("u t 1 0 2 400 900 TIMED_OUT", "f t 1 0 2 400 900 NOT_ENOUGH_REPLICAS")]), {"never_sent"})

    def test_what_nobody_sent(self):
        self.assertEqual(self.found(load=[("w 0 3", "b t 0 7\nw 0 3")]), {"never_sent"})
        self.assertEqual(self.found(load=[("u t 1 0 2 400 900 TIMED_OUT", None), ("w 0 3", "w 0 2")]), {"never_sent"})

    def test_a_reader_that_was_stopped(self):
        self.assertEqual(self.found(load=[("w 0 3", "e - -1 corrupt\nw 0 3")]), {"reading"})

    def test_a_run_that_was_broken_off(self):
        self.assertEqual(self.found(load=[("x", None)]), {"reading"})

    def test_of_one_topic_alone(self):
        other = [line.replace(" t ", " u ") for line in lines(DRAIN) if line != "r t 0 2 1 1 1000"]
        both = h.History().add(lines(LOAD)).add([line.replace(" t ", " u ") for line in lines(LOAD)])
        both.add(lines(DRAIN)[:-1] + other, "drain", final=True)
        without = [h.results]
        self.assertEqual(h.check(both.of({"t"}), without), {})
        self.assertEqual(h.lost_places(both), {("u", 0)})
        self.assertEqual(set(h.check(both.of({"u"}), without)), {"lost_writes"})

    def test_the_longest_time_without_an_acknowledgement(self):
        history = h.History().add(["a t 0 0 0 0 0 1000000", "a t 0 1 0 1 0 1500000", "a t 0 2 0 2 0 9000000", "a t 1 0 1 0 0 5"])
        self.assertEqual(h.outages(history), {("t", 0): 7.5, ("t", 1): 0})
        self.assertEqual(h.acknowledged_between(history, 1.2, 9.5), 2)
        self.assertEqual(h.acknowledged_between(history, 0, 20, {("t", 1)}), 1)


if __name__ == "__main__":
    unittest.main()
