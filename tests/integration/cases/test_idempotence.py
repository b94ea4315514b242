"""Producers that name themselves, spoken to the real broker byte by byte: repeats over lost connections and kill -9, five batches under
way, refusals by name, ids that nobody had before."""

import glob
import pathlib
import tempfile
import time
import unittest

from daemon import Case
from wire import Wire, hello, init_producer, named_batch, produce, produce_frame

OK = 0
UNKNOWN_PRODUCER, OUT_OF_ORDER_SEQUENCE, DUPLICATE_SEQUENCE, PRODUCER_FENCED, TOO_MANY_PRODUCERS = 40, 41, 42, 43, 44
RETRIABLE = 1
IDS_PER_BLOCK = 1000
PRODUCERS_MAX = 4096
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
MINUTE, DAY = 60, 86400


class Session(Wire):
    """A connection of one client, newer than all its others."""

    number = 0

    def __init__(self, broker):
        super().__init__(broker, seconds=20)
        Session.number += 1
        self.sequence = 0
        self.send(hello(7, Session.number))
        assert self.status() == 0

    def produce(self, topic, batch, partition=0):
        result = produce(self, topic, partition, self.sequence, batch)
        self.sequence = self.sequence + 1 if result.code == OK else 0
        return result


class ProducerCase(Case):
    def start(self, durability="disk", environment=None):
        self.b = self.broker(environment=environment).start()
        self.b.create("t", "--partitions", "1", "--config", f"durability={durability}")
        self.topic = bytes.fromhex(self.b.describe("t")["id"])
        return self.b

    def end_offset(self):
        return self.b.describe("t")["partitions"][0]["log_end_offset"]


class Repeats(ProducerCase):
    # IDM-5
    def test_no_id_is_given_out_twice_whatever_happens_to_the_broker(self):
        broker = self.start()
        seen = []
        for round_number in range(4):
            with Session(broker) as session:
                for _ in range(IDS_PER_BLOCK + 300 if round_number == 0 else 50):
                    code, producer, epoch = init_producer(session)
                    self.assertEqual((code, epoch), (OK, 0))
                    seen.append(producer)
            broker.stop() if round_number == 2 else broker.kill9()
            broker.start()
        self.assertEqual(len(set(seen)), len(seen))
        self.assertEqual(seen, sorted(seen))

    # IDM-2, IDM-4
    def test_five_batches_under_way_whose_answers_are_lost_are_stored_once(self):
        for durability in ("disk", "memory"):
            for end in ("connection", "kill -9", "stop"):
                with self.subTest(durability=durability, end=end):
                    broker = self.start(durability)
                    with Session(broker) as session:
                        _, producer, _ = init_producer(session)
                        first = session.produce(self.topic, named_batch(producer, 0, 0, 3))
                        self.assertEqual((first.code, first.offset), (OK, 0))
                        batches = [named_batch(producer, 0, 3 + 2 * i, 2) for i in range(5)]
                        for i, batch in enumerate(batches):
                            session.send(produce_frame(self.topic, 0, session.sequence + i, batch))
                        # The last answer says that all are in; nobody heard the others.
                        if end != "connection":
                            for _ in batches:
                                session.answer()
                    deadline = time.monotonic() + 10
                    while self.end_offset() < 13 and time.monotonic() < deadline:
                        time.sleep(0.01)
                    if end == "kill -9":
                        broker.kill9()
                        broker.start()
                    elif end == "stop":
                        self.assertEqual(broker.stop(), 0)
                        broker.start()
                    with Session(broker) as session:
                        for i, batch in enumerate(batches):
                            again = session.produce(self.topic, batch)
                            self.assertEqual((again.code, again.offset), (OK, 3 + 2 * i))
                        self.assertEqual(self.end_offset(), 13, "nothing is there twice")
                        # The one before them is too far back for its offset, and is not stored either.
                        self.assertEqual(session.produce(self.topic, named_batch(producer, 0, 0, 3)).code, DUPLICATE_SEQUENCE)
                        self.assertEqual(session.produce(self.topic, named_batch(producer, 0, 13, 1)).offset, 13)
                    self.assertEqual(self.end_offset(), 14)
                    broker.end()

    # IDM-1
    def test_what_does_not_follow_is_refused_by_name_and_not_stored(self):
        self.start()
        with Session(self.b) as session:
            _, producer, _ = init_producer(session)
            unknown = session.produce(self.topic, named_batch(producer, 0, 5, 1))
            self.assertEqual(unknown.code, UNKNOWN_PRODUCER)
            self.assertIn(f"producer {producer} epoch 0, sequence 5", unknown.text)
            self.assertEqual(session.produce(self.topic, named_batch(producer, 0, 0, 2)).code, OK)
            for epoch, sequence, code in ((0, 3, OUT_OF_ORDER_SEQUENCE), (0, 1, OUT_OF_ORDER_SEQUENCE),
                                          (1, 2, OUT_OF_ORDER_SEQUENCE)):
                got = session.produce(self.topic, named_batch(producer, epoch, sequence, 2))
                self.assertEqual(got.code, code, (epoch, sequence))
                self.assertEqual(got.flags & RETRIABLE, 0)
            # The same sequences with other records are no repeat.
            self.assertEqual(session.produce(self.topic, named_batch(producer, 0, 0, 2, b"other")).code, OUT_OF_ORDER_SEQUENCE)
            self.assertEqual(session.produce(self.topic, named_batch(producer, 1, 0, 2)).code, OK)
            self.assertEqual(session.produce(self.topic, named_batch(producer, 0, 2, 2)).code, PRODUCER_FENCED)
        self.assertEqual(self.end_offset(), 4)
        self.b.kill9()
        self.b.start()
        with Session(self.b) as session:
            self.assertEqual(session.produce(self.topic, named_batch(producer, 0, 2, 2)).code, PRODUCER_FENCED)
            self.assertEqual(session.produce(self.topic, named_batch(producer, 1, 3, 1)).code, OUT_OF_ORDER_SEQUENCE)
            self.assertEqual(session.produce(self.topic, named_batch(producer, 1, 2, 1)).offset, 4)

    # IDM-2, IDM-4: however many others come, what was appended just now is known again.
    def test_a_crowd_of_producers_is_refused_before_anybody_is_forgotten(self):
        self.start("memory")
        first = named_batch(10_000_000, 0, 0, 1)
        with Session(self.b) as session:
            self.assertEqual(session.produce(self.topic, first).offset, 0)
            for i in range(1, PRODUCERS_MAX):
                self.assertEqual(session.produce(self.topic, named_batch(10_000_000 + i, 0, 0, 1)).code, OK)
            one_more = named_batch(20_000_000, 0, 0, 1)
            refused = session.produce(self.topic, one_more)
            self.assertEqual(refused.code, TOO_MANY_PRODUCERS)
            self.assertEqual(refused.flags, RETRIABLE)
            again = session.produce(self.topic, first)
            self.assertEqual((again.code, again.offset), (OK, 0), "a repeat is known, not stored as new")
            self.assertEqual(session.produce(self.topic, named_batch(10_000_000, 0, 1, 1)).code, OK)
        self.assertEqual(self.end_offset(), PRODUCERS_MAX + 1)
        # Also by a broker that has read it all from the log.
        self.b.kill9()
        for path in self.b.data.glob("*-*/*.producers"):
            path.unlink()
        self.b.start()
        with Session(self.b) as session:
            self.assertEqual(session.produce(self.topic, one_more).code, TOO_MANY_PRODUCERS)
            self.assertEqual(session.produce(self.topic, named_batch(10_000_000, 0, 2, 1)).code, OK)


@unittest.skipUnless(FAKETIME, "no libfaketime (package libfaketime)")
class Expiry(ProducerCase):
    """By append time, with a clock that is set."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix="mq-case-")
        self.addCleanup(folder.cleanup)
        self.clock = pathlib.Path(folder.name) / "clock"
        self.set_clock(0)
        self.start(environment={
            "LD_PRELOAD": FAKETIME[0], "FAKETIME_TIMESTAMP_FILE": str(self.clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        })

    def set_clock(self, seconds):
        beside = self.clock.with_suffix(".new")
        beside.write_text(f"{seconds:+d}\n")
        beside.rename(self.clock)

    # IDM-4
    def test_a_day_later_nothing_is_known_and_a_clock_that_jumps_is_no_day(self):
        with Session(self.b) as session:
            old = named_batch(1, 0, 0, 1)
            self.assertEqual(session.produce(self.topic, old).offset, 0)
            self.set_clock(30 * DAY)
            self.assertEqual(session.produce(self.topic, named_batch(2, 0, 0, 1)).offset, 1)
            again = session.produce(self.topic, old)
            self.assertEqual((again.code, again.offset), (OK, 0), "a clock that is set forgets nothing at once")
            for i in range(1, 4):
                self.set_clock(30 * DAY + i * 6 * MINUTE)
                self.assertEqual(session.produce(self.topic, named_batch(2, 0, i, 1)).offset, 1 + i)
            self.assertEqual(session.produce(self.topic, named_batch(1, 0, 1, 1)).code, UNKNOWN_PRODUCER)
        self.b.kill9()
        self.b.start()
        with Session(self.b) as session:
            self.assertEqual(session.produce(self.topic, named_batch(1, 0, 1, 1)).code, UNKNOWN_PRODUCER)
            self.assertEqual(session.produce(self.topic, named_batch(2, 0, 3, 1)).offset, 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
