# SPDX-License-Identifier: Apache-2.0
"""The end of the bench: it comes within seconds, whatever browsers and programs do, and leaves nothing."""
import contextlib
import glob
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from page import check, folder, program, until

token = os.path.join(os.path.dirname(program), "approval-token")


class Bench:
    """A bench with a folder of its own; killed at the end of a `with`."""

    def __init__(self, *options):
        self.options = options

    def __enter__(self):
        before = set(glob.glob("/tmp/approval-bench-*"))
        self.child = subprocess.Popen(
            [program, "--page", folder, *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.folder = until(lambda: next(iter(set(glob.glob("/tmp/approval-bench-*")) - before), None), 20)
        return self

    def __exit__(self, *_):
        for process in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.child.kill()
        self.child.wait(20)

    def address(self):
        """The address, after the start."""
        return self.child.stdout.readline().split()[-1]

    def processes(self, words=""):
        """What the bench has started, with these words in the command."""
        listed = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
        return [int(line.split()[0]) for line in listed.splitlines() if f"{self.folder}/" in line and words in line]

    def ends(self, what, after=signal.SIGINT):
        began = time.monotonic()
        self.child.send_signal(after)
        try:
            note = "".join(self.child.communicate(timeout=10))
        except subprocess.TimeoutExpired:
            note = "it still runs after 10 s"
        has_ended = self.child.poll() is not None
        left = until(lambda: not self.processes(), 3) is None
        check(f"the bench ends in time {what}", has_ended and time.monotonic() - began < 14, note)
        check(f"it says nothing {what}", not note, note)
        check(f"it leaves nothing {what}", self.folder and not os.path.exists(self.folder) and not left)


class Client:
    """A program with the session of a page."""

    def __init__(self, address):
        self.origin, secret = address.split("/#")
        self.host = self.origin.split("//")[1]
        self.headers = {"Origin": self.origin}
        with self.post("/session", {"token": secret}) as answer:
            cookie = answer.headers["Set-Cookie"].split(";")[0]
            self.headers |= {"Cookie": cookie, "Bench-Key": json.load(answer)["key"]}

    def post(self, path, body):
        return urllib.request.urlopen(
            urllib.request.Request(self.origin + path, data=json.dumps(body).encode(), headers=self.headers), timeout=20)

    def send(self, method, path, more=""):
        """A connection with the head of a request, and a small buffer for the answer."""
        address, port = self.host.split(":")
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((address, int(port)))
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", *(f"{n}: {v}" for n, v in self.headers.items())]
        connection.sendall(("\r\n".join(lines) + "\r\n" + more).encode())
        return connection


def play():
    enrollment()
    slow_body()
    unread_feeds()
    stopped_program()
    silent_token()
    script()


def enrollment():
    with Bench() as bench:
        command = [token, "status", "--json", "--state", f"{bench.folder}/token-0"]
        check("the token asks for a new PIN while the bench starts", until(
            lambda: "new PIN wanted" in subprocess.run(command, capture_output=True, text=True).stdout, 30) is not None)
        bench.ends("while it enrolls")


def slow_body():
    with Bench() as bench:
        client = Client(bench.address())
        connection = client.send("POST", "/session", "Content-Length: 1000\r\n\r\n{")

        def trickle():
            try:
                while True:
                    connection.sendall(b" ")
                    time.sleep(1)
            except OSError:
                pass
        threading.Thread(target=trickle, daemon=True).start()
        time.sleep(1)
        bench.ends("while a body arrives slowly")
        connection.close()


def unread_feeds():
    with Bench() as bench:
        client = Client(bench.address())
        client.post("/portal/start", {"type": "login", "message": "Log in?"}).close()
        feed = http.client.HTTPConnection(client.host, timeout=20)
        feed.request("GET", "/feed", headers=client.headers)
        answer, callback = feed.getresponse(), None
        while not callback:
            callback = re.search(rb"callback\\?/([\w-]{32})", answer.readline())
        feed.close()
        for number in range(20):
            client.post(f"/callback/{callback[1].decode()}", {"transaction_id": str(number), "more": "x" * 200_000}).close()
        feeds = [client.send("GET", "/feed", "\r\n") for _ in range(4)]
        time.sleep(1)
        bench.ends("while feeds are not read")
        for connection in feeds:
            connection.close()


def stopped_program():
    with Bench() as bench:
        client = Client(bench.address())
        for process in bench.processes(" device "):
            os.kill(process, signal.SIGSTOP)
        body = b'{"keys":["1"]}'
        connection = client.send("POST", "/keypad", f"Content-Length: {len(body)}\r\n\r\n{body.decode()}")
        time.sleep(1)
        bench.ends("while a program is stopped")
        connection.close()


def silent_token():
    with tempfile.TemporaryDirectory(prefix="bench-") as state, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(state, "control.sock"))
        listener.listen()
        with Bench("--state", state) as bench:
            listener.settimeout(20)
            connection, _ = listener.accept()
            bench.ends("while a token does not answer")
            connection.close()


def script():
    """The end of scripts/bench-page as on a desktop: what follows after the build."""
    repository = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
    with open(os.path.join(repository, "scripts/bench-page")) as file:
        rest = file.read().partition("\nopener=")
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        browser = os.path.join(directory, "xdg-open")
        with open(browser, "w") as file:
            file.write("#!/bin/sh\n")
        os.chmod(browser, 0o700)
        runtime = os.path.join(directory, "runtime")
        os.mkdir(runtime)
        child = subprocess.Popen(
            ["bash", "-c", "set -euo pipefail; bench=$1 repository=$2 options=()" + "".join(rest[1:]), "bench-page", program, repository],
            stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "XDG_RUNTIME_DIR": runtime, "PATH": f"{directory}:{os.environ['PATH']}"})
        try:
            check("the script prints the address", "the bench is at http://127.0.0.1:" in child.stdout.readline())
            child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.communicate(timeout=10)
            check("a signal to the script ends the bench", child.returncode == 0, str(child.returncode))
            check("the script leaves no file for the browser", until(lambda: not os.listdir(runtime), 3) is not None)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait(20)
