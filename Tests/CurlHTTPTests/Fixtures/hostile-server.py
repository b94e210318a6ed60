# SPDX-License-Identifier: Apache-2.0
"""TLS servers that violate the protocol in different ways, selected by path.

Every line on stdin starts a server and prints its port to stdout: "CERTIFICATES KEY", "CERTIFICATES KEY old-tls", or
"proxy PORT" for a proxy that connects every tunnel to the server at PORT. All end when stdin is closed.
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
    """Events of one connection that another can await: `GET /await/NAME` responds after the event NAME."""

    def __missing__(self, name):
        return self.setdefault(name, threading.Event())


class Connection:
    def __init__(self, stream, server):
        self.stream = stream
        self.server = server
        self.reader = stream.makefile("rb")
        self.requests = 0

    def serve(self):
        while line := self.reader.readline():
            self.requests += 1
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
        self.server.events["gone"].set()
        return "hang up"

    # Paths with valid responses.

    def do_echo(self):
        self.answer(self.received, X_Twice="first\r\nX-Twice: last", X_Empty="", X_Padded="\t padded \t")

    def do_await(self):
        self.server.events[self.argument].wait()
        self.answer(self.server.values.get(self.argument, ""))

    def do_connections(self):
        self.answer(self.server.values["connections"])

    def do_count(self):
        self.answer(self.server.values.get(self.argument, 0))

    def do_last(self):
        """Closes the connection without announcing it, and then raises the event."""
        self.answer("ok")
        return "hang up"

    def do_lost(self):
        """The first request of a connection has a response, a later one has none."""
        self.server.values["lost"] = self.server.values.get("lost", 0) + 1
        if self.requests > 1:
            return "hang up"
        self.answer("ok")

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

    def do_switching(self):
        """Another protocol, which begins at once, later, or never."""
        self.head("101 Switching Protocols", Upgrade="other", Connection="Upgrade")
        if self.argument != "silent":
            self.send(b"x" * int(self.argument))
        return self.wait_for_the_client_to_go()

    def do_trailers(self):
        self.head(Transfer_Encoding="chunked")
        self.send(b"2\r\nok\r\n0\r\nX-Trailer: late\r\n\r\n")

    # Responses that are too long.

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
        """Sends until the client stops reading for half a second, raises the event, and continues."""
        self.head(Transfer_Encoding="chunked")
        block = b"3ff8\r\n" + bytes(0x3FF8) + b"\r\n"  # fits one TLS record, so it is sent completely or not at all
        sent = 0
        self.stream.settimeout(0.5)
        while sent < 4096:
            try:
                self.stream.send(block)
                sent += 1
            except TimeoutError:
                self.stream.settimeout(None)
                self.server.values["stalled"] = sent * len(block)
                self.server.events["stalled"].set()
        self.send(b"0\r\n\r\n")

    # Incomplete responses.

    def do_never(self):
        self.server.events["arrived"].set()
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

    def do_cut_short(self):
        """A possibly complete response without close_notify."""
        self.head()
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

    # Other invalid responses.

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


class Server:
    def __init__(self, certificates, key, old_tls=""):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificates, key)
        if old_tls:
            self.context.set_ciphers("ALL:@SECLEVEL=0")
            self.context.minimum_version = ssl.TLSVersion.TLSv1
            self.context.maximum_version = ssl.TLSVersion.TLSv1_1
        self.events = Events()
        self.values = {"connections": 0}
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            raw, _ = self.listener.accept()
            self.values["connections"] += 1
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        try:
            with self.context.wrap_socket(raw, server_side=True) as stream:
                Connection(stream, self).serve()
        except (OSError, ValueError):
            pass  # The client closed the connection or rejected the certificate, as its test expects.
        self.events["closed"].set()


class Proxy:
    def __init__(self, target):
        self.target = int(target)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            while not (head := client.recv(65536, socket.MSG_PEEK)).endswith(b"\r\n\r\n"):
                pass
            client.recv(len(head))
            client.sendall(b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n")
            server = socket.create_connection(("127.0.0.1", self.target))
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

    def pump(self, source, target):
        while data := source.recv(65536):
            target.sendall(data)


for line in sys.stdin:
    first, *rest = line.split()
    print((Proxy(*rest) if first == "proxy" else Server(first, *rest)).port, flush=True)
