# SPDX-License-Identifier: Apache-2.0
"""A token server on this machine, and a portal that uses it."""
import base64
import json
import socket
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request


class Server:
    """The token server over TLS, and a portal. The user is alice."""

    def __init__(self, program, directory):
        """In `directory`, where an earlier one may have been."""
        self.program, self.directory = program, directory / "server"
        if not self.directory.exists():
            self.install()
        self.path_of_log = directory / "server.log"
        self.log = open(self.path_of_log, "ab")
        self.process = subprocess.Popen(
            [program, "serve", "--directory", self.directory], stdout=subprocess.PIPE, stderr=self.log)
        if not self.process.stdout.readline().startswith(b"listening on "):
            raise RuntimeError("the token server does not start")
        self.address, self.credentials = json.loads(self.client.read_text())
        self.trust = ssl.create_default_context(cafile=self.directory / "ca.pem")

    @property
    def client(self):
        return self.directory.with_name("client.json")

    def install(self):
        self.admin("init", "--pin", "--host", "10.0.2.2")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        settings = self.directory / "config.toml"
        # A request of a test waits for the board to start.
        lines = [
            "request_expires_in = 900" if line.startswith("request_expires_in") else line
            for line in settings.read_text().splitlines() if not line.startswith(("port =", "issuer ="))]
        # 10.0.2.2 is this machine, seen from the guest.
        settings.write_text("\n".join([f"port = {port}", f'issuer = "https://10.0.2.2:{port}"'] + lines) + "\n")
        self.admin("user", "add", "alice")
        secret = json.loads(self.admin("api-client", "add", "portal", "--json"))["client_secret"]
        credentials = base64.b64encode(f"portal:{secret}".encode()).decode()
        self.client.write_text(json.dumps([f"https://localhost:{port}", credentials]))

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)

    def admin(self, *arguments):
        command = [self.program, *arguments, "--directory", self.directory]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def activation(self):
        return json.loads(self.admin("activation-code", "alice", "--json"))["uri"]

    def typed_activation(self):
        """An activation code, and the lines of approval-token.toml with which it can be typed."""
        form = urllib.parse.parse_qs(urllib.parse.urlsplit(self.activation()).query)
        (code,), (address,), (pin,) = (form[name] for name in ("code", "server", "pin_sha256"))
        return code, f'server = "{address}"\nserver_pin = "{pin}"\n'

    def portal(self, path, method=None, **form):
        request = urllib.request.Request(f"{self.address}/oauth/api/v4/{path}", method=method)
        request.add_header("Authorization", f"Basic {self.credentials}")
        if form:
            request.data = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(request, context=self.trust, timeout=20) as answer:
            return json.loads(answer.read() or "null")

    def found(self, path, **form):
        """As `portal`; nothing if the server answers that there is no such thing (404)."""
        try:
            return self.portal(path, **form)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return None

    def devices(self):
        """The devices of the user; the server answers 404 if there is none."""
        return (self.found("users/alice/devices") or {"devices": []})["devices"]

    def ask(self, kind, device):
        """The identifier of a request; nothing while the device is not enrolled."""
        answer = self.found(
            "authenticate/user", type=kind, user_id="alice", device_id=device, message=f"a {kind}?",
            callback_uri="http://127.0.0.1:1/")
        return answer and answer["transaction_id"]

    def is_authenticated(self, transaction):
        return self.portal(f"authenticate/transaction/{transaction}").get("is_authenticated")

    def cancel(self, transaction):
        self.portal(f"authenticate/transaction/{transaction}", method="DELETE")

    def answers(self, transaction):
        """How often the server took an approval of the request."""
        return self.path_of_log.read_text().count(f"transaction {transaction}: authenticated")
