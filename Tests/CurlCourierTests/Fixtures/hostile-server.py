"""A TLS server that does to its clients what servers must not do, by path. Prints its port; ends with its stdin.

usage: hostile-server.py CERTIFICATES KEY [old-tls]
"""

import socket
import ssl
import struct
import sys
import threading
import time

MEGABYTE = bytes(1 << 20)
FOREVER = range(1 << 62)


class Events(dict):
    """Things that happen on one connection and another asks for: `GET /await/NAME` answers when NAME has happened."""

    def __missing__(self, name):
        return self.setdefault(name, threading.Event())


events = Events()
values = {"connections": 0}


class Connection:
    def __init__(self, stream):
        self.stream = stream
        self.reader = stream.makefile("rb")

    def serve(self):
        while line := self.reader.readline():
            self.method, self.path, _ = line.decode().split()
            self.fields = {}
            head = line
            while (line := self.reader.readline()) not in (b"\r\n", b""):
                head += line
                name, value = line.decode().split(":", 1)
                self.fields[name.lower()] = value.strip()
            self.received = head + b"\r\n" + self.reader.read(int(self.fields.get("content-length", 0)))
            name, _, self.argument = self.path[1:].partition("/")
            if getattr(self, "do_" + name.replace("-", "_"))() == "hang up":
                return

    def head(self, status="200 OK", **fields):
        lines = ["HTTP/1.1 " + status] + [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode())

    def send(self, data):
        self.stream.sendall(data)

    def answer(self, text, **fields):
        data = text if isinstance(text, bytes) else str(text).encode()
        self.head(Content_Length=len(data), **fields)
        self.send(data)

    def wait_for_the_client_to_go(self):
        try:
            self.reader.read(1)
        except OSError:
            pass
        events["gone"].set()
        return "hang up"

    # Well-behaved paths.

    def do_echo(self):
        self.answer(self.received, X_Twice="first\r\nX-Twice: last", X_Empty="", X_Padded="\t padded \t")

    def do_await(self):
        events[self.argument].wait()
        self.answer(values.get(self.argument, ""))

    def do_connections(self):
        self.answer(values["connections"])

    def do_resumed(self):
        self.answer(self.stream.session_reused, Connection="close")
        return "hang up"

    def do_status(self):
        self.head(self.argument + " As Asked", Content_Length=0)

    def do_events(self):
        self.head(Content_Type="text/event-stream")
        for text in ("\ufeff: beat\n\n", "id: 7\nevent: request\nda", "ta: one\ndata: two\n", "\n: beat\n"):
            self.send(text.encode())
        return self.wait_for_the_client_to_go()

    def do_interim(self):
        for _ in range(3):
            self.head("103 Early Hints", X_Interim="yes")
        self.answer("after three hints")

    def do_trailers(self):
        self.head(Transfer_Encoding="chunked")
        self.send(b"2\r\nok\r\n0\r\nX-Trailer: late\r\n\r\n")

    # Too much.

    def do_big(self):
        self.head(Content_Length=200 << 20)
        for _ in range(200):
            self.send(MEGABYTE)

    def do_big_until_close(self):
        self.head()
        for _ in range(200):
            self.send(MEGABYTE)
        return "hang up"

    def do_big_chunks(self):
        self.head(Transfer_Encoding="chunked")
        for _ in FOREVER:
            self.send(b"100000\r\n" + MEGABYTE + b"\r\n")

    def do_tiny_chunks(self):
        self.head(Transfer_Encoding="chunked")
        for _ in FOREVER:
            self.send(b"1\r\nx\r\n" * 10_000)

    def do_endless_chunk_extension(self):
        self.head(Transfer_Encoding="chunked")
        self.send(b"1;")
        for _ in FOREVER:
            self.send(b"x" * 65536)

    def do_endless_head(self):
        self.send(b"HTTP/1.1 200 OK\r\n")
        for _ in FOREVER:
            self.send(b"X-More: and more\r\n" * 1000)

    def do_endless_head_line(self):
        self.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
        for _ in FOREVER:
            self.send(b"x" * 65536)

    def do_endless_interim(self):
        for _ in FOREVER:
            self.head("103 Early Hints", X_Interim="yes")

    def do_endless_trailers(self):
        self.head(Transfer_Encoding="chunked")
        self.send(b"2\r\nok\r\n0\r\n")
        for _ in FOREVER:
            self.send(b"X-More: and more\r\n" * 1000)

    def do_endless_line(self):
        self.head(Content_Type="text/event-stream")
        self.send(b"data: ")
        for _ in FOREVER:
            self.send(b"x" * 65536)

    def do_firehose(self):
        """Sends until the client stops reading for half a second, says so, and goes on."""
        self.head()
        sent = 0
        self.stream.settimeout(0.5)
        while sent < 64 << 20:
            try:
                self.stream.send(MEGABYTE[:16384])
                sent += 16384
            except TimeoutError:
                self.stream.settimeout(None)
                values["stalled"] = sent
                events["stalled"].set()
        return "hang up"

    # Too little.

    def do_never(self):
        events["arrived"].set()
        return self.wait_for_the_client_to_go()

    def do_half_head(self):
        self.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
        return self.wait_for_the_client_to_go()

    def do_half_body(self):
        self.head(Content_Length=1000)
        self.send(b"the beginning")
        return self.wait_for_the_client_to_go()

    def do_drip(self):
        self.head(Content_Length=1000)
        for _ in range(1000):
            self.send(b".")
            time.sleep(0.02)

    def do_close(self):
        self.head(Content_Length=1000)
        self.send(b"the beginning")
        return "hang up"

    def do_reset(self):
        self.head(Content_Length=1000)
        self.send(b"the beginning")
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.reader.close()
        socket.socket(fileno=self.stream.detach()).close()
        return "hang up"

    def do_nothing(self):
        return "hang up"

    # Something else.

    def do_redirect(self):
        self.head("302 Found", Location="https://elsewhere.example/", Content_Length=0)

    def do_garbage(self):
        self.send(bytes(range(256)) * 8)
        return "hang up"

    def do_bad_status(self):
        self.send(b"HTTP/1.1 huh\r\n\r\n")
        return "hang up"

    def do_bad_chunk(self):
        self.head(Transfer_Encoding="chunked")
        self.send(b"this is no number\r\nok\r\n")
        return "hang up"

    def do_folded(self):
        self.answer("ok", X_Folded="one\r\n two")

    def do_gzip(self):
        self.head(Transfer_Encoding="gzip, chunked")
        self.send(b"0\r\n\r\n")


def serve(raw, context):
    try:
        with context.wrap_socket(raw, server_side=True) as stream:
            Connection(stream).serve()
    except (OSError, ValueError, AttributeError):
        pass  # The client had enough, or did not like the certificate; its own test says which.


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    if "old-tls" in sys.argv:
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)

    def accept():
        while True:
            raw, _ = listener.accept()
            values["connections"] += 1
            threading.Thread(target=serve, args=(raw, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


main()
