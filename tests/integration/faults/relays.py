"""TCP ports in front of brokers and of ZooKeeper servers that understand enough of the protocol to lose single answers: what was asked for
is done, and the one who asked never learns it."""

import contextlib
import random
import socket
import struct
import threading

PRODUCE = 4
ZOOKEEPER_WRITES = {1, 2, 5, 13, 14}  # create, delete, set, check, multi


class Closed(Exception):
    pass


def exactly(stream, count):
    data = b""
    while len(data) < count:
        piece = stream.recv(count - len(data))
        if not piece:
            raise Closed
        data += piece
    return data


class Link:
    """One connection through a relay."""

    def __init__(self, client, server):
        self.client, self.server = client, server
        self.asked = {}
        self.first = True

    def reset(self):
        """Both ends learn at once that it is over."""
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Relay:
    """`share`: of the chosen answers, how many are lost. The connection ends with the answer."""

    def __init__(self, target, share=0.0, seed=1):
        self.target = target
        self.share = share
        self.random = random.Random(seed)
        self.lost = 0
        self.links = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, timeout=10)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for one in (client, server):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(client, server)
            self.links.append(link)
            for carry in (self.requests, self.answers):
                threading.Thread(target=self.run, args=(carry, link), daemon=True).start()

    def run(self, carry, link):
        with contextlib.suppress(OSError, Closed):
            while True:
                carry(link)
        link.reset()

    def loses(self):
        if self.random.random() >= self.share:
            return False
        self.lost += 1
        return True

    def end(self):
        self.listener.close()
        for link in self.links:
            link.reset()


class BrokerRelay(Relay):
    """Loses answers to Produce, and breaks some Produce requests off in their middle; replication and everything else passes."""

    def requests(self, link):
        if link.first:
            link.first = False
            link.server.sendall(exactly(link.client, 4))
        head = exactly(link.client, 6)
        size, api = struct.unpack("<IH", head)
        body = exactly(link.client, size - 2)
        if api == PRODUCE and self.random.random() < self.share / 4:
            self.lost += 1
            link.server.sendall(head + body[:len(body) // 2])
            raise Closed
        link.server.sendall(head + body)

    def answers(self, link):
        head = exactly(link.server, 6)
        size, api = struct.unpack("<IH", head)
        body = exactly(link.server, size - 2)
        if api == PRODUCE and self.loses():
            raise Closed
        link.client.sendall(head + body)


class ZooKeeperRelay(Relay):
    """Loses answers to writes; `about`: only to those that name a path with one of these in it."""

    about = ()

    def requests(self, link):
        size = exactly(link.client, 4)
        body = exactly(link.client, struct.unpack(">i", size)[0])
        if not link.first:
            number, kind = struct.unpack(">ii", body[:8])
            link.asked[number] = kind in ZOOKEEPER_WRITES and self.is_about(body)
        link.first = False
        link.server.sendall(size + body)

    def answers(self, link):
        size = exactly(link.server, 4)
        body = exactly(link.server, struct.unpack(">i", size)[0])
        if link.asked.pop(struct.unpack(">i", body[:4])[0], False) and self.loses():
            raise Closed
        link.client.sendall(size + body)

    def is_about(self, body):
        """Heartbeats name the registration, which they do not change."""
        return not self.about or any(path in body for path in self.about) and b"/brokers/hb/" not in body
