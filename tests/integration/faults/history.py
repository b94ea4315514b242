"""What the writers and readers of a run have seen (fault_load writes it down), and the checkers of it. Each checker returns what
it found, as sentences; nothing found is []. test_history.py feeds each of them a history that is wrong."""

from collections import defaultdict
from typing import NamedTuple


class Sent(NamedTuple):
    """One record: acknowledged at an offset, or (offset None) failed with an error."""
    topic: str
    partition: int
    offset: int | None
    writer: int
    number: int
    start: int
    end: int
    error: str | None = None
    maybe_stored: bool = False

    @property
    def value(self):
        return (self.writer, self.number)

    @property
    def place(self):
        return (self.topic, self.partition)


class Read(NamedTuple):
    topic: str
    partition: int
    offset: int
    writer: int
    number: int
    time: int

    @property
    def value(self):
        return (self.writer, self.number)

    @property
    def place(self):
        return (self.topic, self.partition)


class Session:
    """What one reader was given, in that order; each partition from where the reader began in it."""

    def __init__(self):
        self.begun = {}
        self.reads = []


class History:
    def __init__(self):
        self.acknowledged = []
        self.failed = []
        self.sent = {}  # writer: how many
        self.sessions = []
        self.final = None  # the session that read everything at the end
        self.ranges = {}  # (topic, partition): start and end then
        self.nobodys = []
        self.reader_errors = []
        self.unfinished = []
        self.logged = []  # (writer, time, text)

    def add(self, lines, name="load", final=False):
        """One run of fault_load."""
        session = Session()
        self.sessions.append(session)
        if final:
            self.final = session
        ended = False
        for line in lines:
            kind, _, rest = line.rstrip("\n").partition(" ")
            if kind == "x":
                ended = True
            elif kind:
                getattr(self, f"_{kind}")(session, rest)
        if not ended:
            self.unfinished.append(name)
        return self

    def _a(self, _, rest):
        topic, *numbers = rest.split()
        partition, offset, writer, number, start, end = map(int, numbers)
        self.acknowledged.append(Sent(topic, partition, offset, writer, number, start, end))

    def _not_acknowledged(self, rest, maybe):
        topic, *numbers, error = rest.split()
        partition, writer, number, start, end = map(int, numbers)
        self.failed.append(Sent(topic, partition, None, writer, number, start, end, error, maybe))

    def _u(self, _, rest):
        self._not_acknowledged(rest, True)

    def _f(self, _, rest):
        self._not_acknowledged(rest, False)

    def _w(self, _, rest):
        writer, count = map(int, rest.split())
        self.sent[writer] = count

    def _r(self, session, rest):
        topic, *numbers = rest.split()
        session.reads.append(Read(topic, *map(int, numbers)))

    def _b(self, _, rest):
        self.nobodys.append(rest)

    def _g(self, _, rest):
        writer, time, text = rest.split(" ", 2)
        self.logged.append((int(writer), int(time), text))

    def _s(self, session, rest):
        topic, partition, offset = rest.split()
        session.begun[(topic, int(partition))] = int(offset)

    def _e(self, _, rest):
        self.reader_errors.append(rest)

    def _l(self, _, rest):
        topic, partition, start, end = rest.split()
        self.ranges[(topic, int(partition))] = (int(start), int(end))

    def of(self, topics):
        """The part of it that is about these topics."""
        part = History()
        part.sent, part.unfinished = self.sent, self.unfinished
        others = {place[0] for place in self.ranges} - set(topics)
        part.reader_errors = [error for error in self.reader_errors if not any(f"{other}/" in error for other in others)]
        part.acknowledged = [one for one in self.acknowledged if one.topic in topics]
        part.failed = [one for one in self.failed if one.topic in topics]
        part.ranges = {place: ends for place, ends in self.ranges.items() if place[0] in topics}
        part.nobodys = [place for place in self.nobodys if place.split()[0] in topics]
        for session in self.sessions:
            mine = Session()
            mine.begun = {place: offset for place, offset in session.begun.items() if place[0] in topics}
            mine.reads = [read for read in session.reads if read.topic in topics]
            part.sessions.append(mine)
            if session is self.final:
                part.final = mine
        return part

    def seen(self):
        """(place, offset, value) of all that somebody was told."""
        for one in self.acknowledged:
            yield one.place, one.offset, one.value
        for session in self.sessions:
            for read in session.reads:
                yield read.place, read.offset, read.value

    def by_place(self):
        """Acknowledged records of each partition, by offset."""
        places = defaultdict(list)
        for one in self.acknowledged:
            places[one.place].append(one)
        for sent in places.values():
            sent.sort(key=lambda one: one.offset)
        return places


def few(findings, most=5):
    return findings[:most] + ([f"and {len(findings) - most} more"] if len(findings) > most else [])


def lost_places(history):
    """The partitions in which something that somebody was told is not there any more."""
    there = {(read.place, read.offset): read.value for read in history.final.reads}
    return {place for place, offset, value in history.seen() if there.get((place, offset)) != value}


def lost_writes(history):
    """What was acknowledged, or given to a reader, is where it was, when all is read at the end; and all is read to the end."""
    if history.final is None:
        return ["nothing was read at the end"]
    there = {(read.place, read.offset): read.value for read in history.final.reads}
    findings = []
    for place, offset, value in history.seen():
        if there.get((place, offset)) != value:
            findings.append(f"{value} was at {place} {offset}; there is {there.get((place, offset), 'nothing')} now")
    for place in {one.place for one in history.acknowledged}:
        if place not in history.ranges:
            findings.append(f"{place} was not read at the end")
    for place, (start, end) in history.ranges.items():
        missing = end - start - sum(1 for read in history.final.reads if read.place == place)
        if missing:
            findings.append(f"{missing} of the {end - start} offsets of {place} cannot be read")
    return findings


def duplicates(history):
    """No value is at two offsets."""
    where, findings = {}, []
    for place, offset, value in history.seen():
        first = where.setdefault((place[0], value), (place, offset))
        if first != (place, offset):
            findings.append(f"{value} is at {first} and at {(place, offset)}")
    return findings


def inconsistent_offsets(history):
    """No offset has two values, whoever says it, whenever."""
    what, findings = {}, []
    for place, offset, value in history.seen():
        first = what.setdefault((place, offset), value)
        if first != value:
            findings.append(f"{place} {offset} is {first} and {value}")
    return findings


def poll_skips(history):
    """A reader gets one offset after the other."""
    findings = []
    for session in history.sessions:
        following = dict(session.begun)
        for read in session.reads:
            due = following.get(read.place)
            if read.offset != due:
                findings.append(f"{read.place}: {read.offset} came where {due} was due")
            following[read.place] = read.offset + 1
    return findings


def real_time_order(history):
    """What is sent after something else was acknowledged stands behind it."""
    findings = []
    for place, sent in history.by_place().items():
        latest = None  # of the lower offsets, the one that was sent last
        for one in sent:
            if latest and one.end < latest.start:
                findings.append(f"{place}: {one.offset} was acknowledged before {latest.offset} was sent")
            if latest is None or one.start > latest.start:
                latest = one
    return findings


def writer_order(history):
    """The records of one writer stand in a partition as they were sent, also those that nobody acknowledged."""
    findings = []
    for session in history.sessions:
        newest = {}
        for read in session.reads:
            before = newest.get((read.place, read.writer), -1)
            if read.number <= before:
                findings.append(f"{read.place} {read.offset}: {read.number} of writer {read.writer} is behind {before}")
            newest[(read.place, read.writer)] = max(before, read.number)
    return findings


def only_repeats(history):
    """Of writers without idempotence that send one record at a time: the copies of a record stand side by side, as far as they are concerned."""
    findings = []
    for session in history.sessions:
        newest = {}
        for read in session.reads:
            before = newest.get((read.place, read.writer), -1)
            if read.number < before:
                findings.append(f"{read.place} {read.offset}: {read.number} of writer {read.writer} is behind {before}")
            newest[(read.place, read.writer)] = read.number
    return findings


def order_of_first_copies(history):
    """Of writers without idempotence: what stands behind newer ones stood before them as well."""
    findings = []
    for session in history.sessions:
        newest, there = {}, set()
        for read in session.reads:
            before = newest.get((read.place, read.writer), -1)
            if read.number < before and (read.place, read.value) not in there:
                findings.append(f"{read.place} {read.offset}: the first {read.number} of writer {read.writer} is behind {before}")
            newest[(read.place, read.writer)] = max(before, read.number)
            there.add((read.place, read.value))
    return findings


def results(history):
    """Each record that was sent has one result."""
    findings, seen = [], defaultdict(set)
    for one in history.acknowledged + history.failed:
        if one.number in seen[one.writer]:
            findings.append(f"{one.value} has two results")
        seen[one.writer].add(one.number)
    for writer, count in history.sent.items():
        if seen[writer] != set(range(count)):
            findings.append(f"writer {writer} sent {count} and has results of {len(seen[writer])}")
    return findings


def never_sent(history):
    """Nothing is read that nobody sent, nor what failed and was said not to be stored."""
    findings = [f"nobody sent what is at {place}" for place in history.nobodys]
    refused = {one.value + (one.topic,): one.error for one in history.failed if not one.maybe_stored}
    for place, offset, value in history.seen():
        if value + (place[0],) in refused:
            findings.append(f"{value} at {place} {offset} failed with {refused[value + (place[0],)]} and is there")
        if value[0] in history.sent and value[1] >= history.sent[value[0]]:
            findings.append(f"{value} at {place} {offset} was never sent")
    return findings


def reading(history):
    """No reader was stopped by an error, and every run came to its end."""
    return [f"a reader was told: {error}" for error in history.reader_errors] + \
           [f"{name} did not come to its end" for name in history.unfinished]


CHECKERS = [lost_writes, duplicates, inconsistent_offsets, poll_skips, real_time_order, writer_order, results, never_sent, reading]
# Without idempotence records may be there more than once.
PLAIN_CHECKERS = [*(one for one in CHECKERS if one not in (duplicates, writer_order)), order_of_first_copies]


def check(history, without=(), checkers=CHECKERS):
    """{name of the checker: what it found}, of those that found something."""
    found = {checker.__name__: few(checker(history)) for checker in checkers if checker not in without}
    return {name: findings for name, findings in found.items() if findings}


def outages(history):
    """The longest time without an acknowledgement of each partition, in seconds, from its first one to its last."""
    longest = {}
    for place, sent in history.by_place().items():
        ends = sorted(one.end for one in sent)
        longest[place] = max((after - before for before, after in zip(ends, ends[1:])), default=0) / 1e6
    return longest


def acknowledged_between(history, begin, end, places=None):
    """How many records were acknowledged in that time (seconds of the monotonic clock), of some partitions or of all."""
    return sum(1 for one in history.acknowledged
               if begin * 1e6 <= one.end <= end * 1e6 and (places is None or one.place in places))
