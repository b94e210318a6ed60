#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that enrolls with approval-token.uri, on directories of this machine, with a scripted command.

usage: enrollment.py

Exit code 1: a check failed.
"""
import hashlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from checks import check, exit_code

PROGRAM = pathlib.Path(__file__).parents[2] / "packaging/image/root/usr/libexec/approval-token/enroll-from-card"
URI = b"approvaltoken://activate?server=https%3A%2F%2Ft.example&code=1234567890128\n"

class Start:
    """One start of a board with a URI on the SD card."""

    def __init__(self, stages=(), result=0, digest=None, uri=URI, answers=True, log="", server=None,
                 is_repeated=False, wifi=None, carrier=None, runs=True):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name in ("boot/firmware", "var/lib/approval-token", "etc/approval-token", "state", "run", "commands"):
                (root / name).mkdir(parents=True)
            file, stored = root / "boot/firmware/approval-token.uri", root / "state/enrollment-uri.sha256"
            if uri is not None:
                file.write_bytes(uri)
            stored_server = root / "etc/approval-token/activation-server"
            if server is not None:
                stored_server.write_text(server)
            if digest is not None:
                stored.write_text(hashlib.sha256(digest).hexdigest() + "  -\n")
            accounts = ",".join(f'{{"account":"a{n}","stage":"{stage}"}}' for n, stage in enumerate(stages))
            # What wpa_supplicant has said, if the Wi-Fi is set.
            if wifi is not None:
                (root / "etc/approval-token/wifi.conf").touch()
            if carrier is not None:
                (root / "sys/class/net/wlan0/wireless").mkdir(parents=True)
                (root / "sys/class/net/wlan0/carrier").write_text(carrier)
            self.write(root, "journalctl", f"""case "$*" in *"--unit=wpa_supplicant@*.service"*) echo '{wifi}' ;; esac""")
            self.write(root, "mount", "")
            self.write(root, "sleep", "")
            self.write(root, "systemctl", f"exit {0 if runs else 3}")
            failure = f"echo no PIN; exit {result}" if result else "exit 0"
            if is_repeated:
                failure = f'if [ "$(wc -l <{root}/run/calls)" = 1 ]; then {failure}; fi'
            # Only a unit gets the device secret, with which the accounts can be read.
            self.write(root, "systemd-run", f"""
case "$*" in
  *LoadCredentialEncrypted=approval-token.device-secret:*approval-token" accounts --json"*)
    {"exit 69" if not answers else ":"}; printf '%s\\n' '[{accounts}]' ;;
  *) exit 64 ;;
esac""")
            self.write(root, "runuser", f"""
while [ "$1" != -- ]; do shift; done
case $3 in
  accounts) exit 65 ;;
  enroll) cat >{root}/run/read; echo "$@" >>{root}/run/calls; {failure} ;;
esac""")
            (root / "boot/firmware/approval-token.log").write_text(log)
            service = socket.socket(socket.AF_UNIX)
            service.bind(str(root / "var/lib/approval-token/control.sock"))
            environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
            self.status = subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL).returncode
            service.close()
            log = root / "boot/firmware/approval-token.log"
            self.log = log.read_text()
            self.is_erased, self.has_digest = not file.exists(), stored.exists()
            self.has_enrolled = (root / "run/calls").exists()
            self.call = (root / "run/calls").read_text() if self.has_enrolled else ""
            self.has_server = stored_server.exists()
            # As the command does.
            self.read = next(iter((root / "run/read").read_bytes().splitlines(True)), b"") if self.has_enrolled else None

    @staticmethod
    def write(root, name, body):
        path = root / "commands" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)


def check_schemes():
    for uri in (b"otpauth://totp/ACME:alice?secret=ONSWG4TFOQ&issuer=ACME\n",
                b"otpauth://pipush/PIPU0001?url=https%3A//p.example/ttype/push&ttl=10&enrollment_credential=aa&v=1\n",
                b"pushauth://push/forgerock:alice?a=aHR0cHM6Ly9h&r=aHR0cHM6Ly9i&s=c2VjcmV0&c=Y2hhbGxlbmdl&m=bWVzc2FnZQ\n",
                b"mfauth://totp/Forgerock:alice?secret=ONSWG4TFOQ\n"):
        board = Start(uri=uri)
        check(f"{uri.split(b':')[0].decode()} is given to the command as it is, and erased",
              board.status == 0 and board.read == uri and board.is_erased and " enroll - " in f" {board.call}")


def check_typed_code():
    pin = "A" * 43 + "="
    done = Start(uri=None, server=f"https://a\n{pin}\n")
    check("without a URI a code is typed for the server", f"enroll --server https://a --pin {pin} --wait-for-network " in done.call)
    check("the server is forgotten then", not done.has_server and done.status == 0 and done.log.endswith("enrolled\n"))
    check("without a pin, too", "--server https://a --wait-for-network " in Start(uri=None, server="https://a\n\n").call)
    for code in (69, 75, 77):
        again = Start(uri=None, server="https://a\n\n", result=code, is_repeated=True)
        check(f"after a failure ({code}) the code is typed again", again.status == 0 and not again.has_server and
              again.call.count("--server") == 2 and "not enrolled: no PIN" in again.log)
    late = Start(uri=None, server="https://a\n\n", stages=["active"])
    check("a token with an account asks for no code", not late.has_enrolled and not late.has_server and late.status == 0 and
          "server in approval-token.toml is not used" in late.log)
    both = Start(server="https://a\n\n")
    check("a URI is taken first, and the server is forgotten", "enroll -" in both.call and both.is_erased and not both.has_server)


def check_fleet_token():
    fleet = b"approvaltoken-fleet://register?server=https%3A%2F%2Ft.example&token=00\n"
    board = Start(uri=fleet)
    check("a board registers with a fleet token, and the log says that it has no user", board.status == 0 and board.read == fleet
          and board.is_erased and not board.has_digest and board.log.endswith("  registered; no user is enrolled yet\n"))
    board = Start(uri=fleet, server="https://a\n\n")
    check("the user's code is typed then", " enroll - " in board.call.splitlines()[0] and
          "enroll --server https://a " in board.call and board.log.endswith("  enrolled\n") and not board.has_server)


def check_wifi():
    wrong = 'wlan0: CTRL-EVENT-SSID-TEMP-DISABLED id=0 ssid="home" auth_failures=1 duration=10 reason=WRONG_KEY'
    for wifi, carrier, reason in (
            (wrong, "0", " (the access point refuses wifi_password)"), (wrong, "", " (the access point refuses wifi_password)"),
            ("", "0", " (no Wi-Fi with this wifi_name is found on the channels of wifi_country)"),
            ("", None, " (this board has no Wi-Fi)"), (wrong, "1", ""), (None, "0", "")):
        failed = Start(result=69, wifi=wifi, carrier=carrier)
        check(f"the log says what is wrong with the Wi-Fi:{reason or ' nothing'}", failed.log.endswith(f"not enrolled: no PIN{reason}\n"))
    typed = Start(uri=None, server="https://a\n\n", result=69, is_repeated=True, wifi=wrong, carrier="0")
    check("also if a code is typed", "no PIN (the access point refuses wifi_password)\n" in typed.log)


def main():
    check_schemes()
    check_typed_code()
    check_fleet_token()
    check_wifi()
    first = Start()
    check("a new board enrolls with the URI", first.status == 0 and first.read == URI and "  enrolled" in first.log)
    check("the URI is erased, and its digest", first.is_erased and not first.has_digest)
    for code in (69, 75):
        failed = Start(result=code)
        check(f"an enrollment that fails ({code}) is tried again",
              failed.status == 1 and not failed.is_erased and failed.has_digest)
    for code in (1, 64, 65, 77):
        refused = Start(result=code)
        check(f"a URI that is refused ({code}) is not tried again before the next start",
              refused.status == 0 and not refused.is_erased and "not enrolled: no PIN" in refused.log)
    long = Start(result=77, log="an old line\n" * 5000)
    check("the log is cut", len(long.log) < 20_000 and long.log.endswith("not enrolled: no PIN\n"))
    check("the log has the reason", "not enrolled: no PIN" in failed.log)
    resumed = Start(stages=["enrolling"], digest=URI)
    check("an interrupted enrollment is resumed", resumed.has_enrolled and resumed.is_erased)
    late = Start(stages=["active"], digest=URI)
    check("a URI that was used before the power failed is erased", late.is_erased and not late.has_enrolled and not late.has_digest)
    for stage in ("active", "must-enroll-again"):
        other = Start(stages=["enrolling", stage], digest=b"another")
        check(f"a token with an account ({stage}) takes no URI", not other.has_enrolled and not other.is_erased
              and "has an account already" in other.log and other.status == 0)
    stopped = Start(runs=False)
    check("without the service it is tried again", stopped.status == 1 and not stopped.has_enrolled and not stopped.is_erased)
    silent = Start(answers=False)
    check("as long as the accounts cannot be read it is tried again", silent.status == 1 and not silent.has_enrolled)
    for text in (b"\xef\xbb\xbf" + URI, b"\n \r\n" + URI + b"more\n"):
        check(f"the URI is found in {text[:6]}…", Start(uri=text).read == URI)
    for text in (b"", b"\n\n"):
        check(f"a file without a line ({text}) is given as a wrong URI", Start(uri=text, result=65).read == b"nothing in approval-token.uri\n")
    empty = Start(uri=b"")
    check("an empty file is erased", empty.is_erased and empty.status == 0)
    sys.exit(exit_code())


if __name__ == "__main__":
    main()
