"""As much of a ZooKeeper client as it takes to damage what brokers keep there, as a person with a shell can."""

import socket
import struct


class ZooKeeperClient:
    def __init__(self, port, host="127.0.0.1"):
        self.stream = socket.create_connection((host, port), timeout=10)
        self.number = 0
        try:
            self.send(struct.pack(">iqiqi", 0, 0, 10000, 0, 16) + bytes(16))
            self.receive()
        except (OSError, EOFError):
            self.close()
            raise

    def close(self):
        self.stream.close()

    def send(self, message):
        self.stream.sendall(struct.pack(">i", len(message)) + message)

    def exactly(self, size):
        data = b""
        while len(data) < size:
            more = self.stream.recv(size - len(data))
            if not more:
                raise EOFError("ZooKeeper closed the connection")
            data += more
        return data

    def receive(self):
        return self.exactly(struct.unpack(">i", self.exactly(4))[0])

    def call(self, operation, body):
        self.number += 1
        self.send(struct.pack(">ii", self.number, operation) + body)
        while True:
            answer = self.receive()
            number, _, error = struct.unpack(">iqi", answer[:16])
            if number == self.number:
                break
        if error:
            raise KeyError(error)
        return answer[16:]

    @staticmethod
    def text(value):
        data = value if isinstance(value, bytes) else value.encode()
        return struct.pack(">i", len(data)) + data

    def get(self, path):
        return self.read(path)[0]

    def read(self, path):
        """Value, version, and whether it goes with a session."""
        answer = self.call(4, self.text(path) + b"\0")
        end = 4 + max(0, struct.unpack(">i", answer[:4])[0])
        _, _, _, _, version, _, _, owner = struct.unpack(">qqqqiiiq", answer[end:end + 52])
        return answer[4:end], version, owner != 0

    def children(self, path):
        answer = self.call(8, self.text(path) + b"\0")
        count, at, names = struct.unpack(">i", answer[:4])[0], 4, []
        for _ in range(count):
            size = struct.unpack(">i", answer[at:at + 4])[0]
            names.append(answer[at + 4:at + 4 + size].decode())
            at += 4 + size
        return sorted(names)

    def set(self, path, value):
        self.call(5, self.text(path) + self.text(value) + struct.pack(">i", -1))

    def remove(self, path):
        self.call(2, self.text(path) + struct.pack(">i", -1))
