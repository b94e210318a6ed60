#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the image's program that takes approval-token.toml from the SD card, on directories of this machine.

usage: settings.py

Exit code 1: a check failed.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

from checks import check, exit_code

PROGRAM = pathlib.Path(__file__).parents[2] / "packaging/image/root/usr/libexec/approval-token/take-settings"
SERVICE = PROGRAM.parents[3] / "etc/systemd/system/approval-token.service.d/image.conf"
# In /run: the service does not start.
REFUSED = "approval-token-settings-refused"
WIFI = 'wifi_name = "home of alice"\nwifi_password = "correct horse"\nwifi_country = "DE"\n'

class Board:
    """The root directory of a board after one start with `text` on the SD card."""

    def __init__(self, text, is_provisioned=False, is_resetting=False, board='board = "old"', mount=0):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            for name in ("boot/firmware", "etc/approval-token", "var/lib/approval-token", "state", "run", "commands",
                         "usr/share/approval-token/boards/raspberry-pi-4", "sys/class/net/wlan0/wireless", "proc/sys/kernel"):
                (root / name).mkdir(parents=True)
            (root / "usr/share/approval-token/boards/raspberry-pi-4/board.toml").touch()
            (root / "etc/approval-token/config.toml").write_text(f'# board = "x"\n{board}\nstate = "/s"\n')
            if is_provisioned:
                (root / "var/lib/approval-token/vault.sqlite3").touch()
            if is_resetting:
                (root / "boot/firmware/approval-token.reset").touch()
            file = root / "boot/firmware/approval-token.toml"
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
            for command in ("mount", "systemctl", "systemd-run"):
                (root / "commands" / command).write_text(
                    f'#!/bin/sh\necho {command} "$@" >>{root}/commands.log\n' + f"exit {mount}\n" * (command == "mount"))
                (root / "commands" / command).chmod(0o755)
            # The locale of services, unless one is configured.
            environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root), "LANG": "C.UTF-8"}
            self.status = subprocess.run([PROGRAM], env=environment, stdout=subprocess.DEVNULL).returncode
            read = lambda name: (root / name).read_text() if (root / name).exists() else ""
            self.is_erased = not file.exists()
            self.asks_for_reset = (root / "boot/firmware/approval-token.reset").exists()
            self.log = read("boot/firmware/approval-token.log")
            self.configuration = read("etc/approval-token/config.toml")
            self.host, self.kernel_host = read("state/hostname").strip(), read("proc/sys/kernel/hostname")
            self.server = read("etc/approval-token/activation-server")
            self.wifi, self.commands = read("etc/approval-token/wifi.conf"), read("commands.log")
            wifi = root / "etc/approval-token/wifi.conf"
            self.mode = wifi.stat().st_mode & 0o777 if wifi.exists() else None
            self.blinks = self.commands.strip()[-1] if "/blink " in self.commands else None
            self.is_refused = (root / "run" / REFUSED).exists()
            self.is_clean = {file.name for file in (root / "run").iterdir()} <= {"approval-token-card.lock", REFUSED}


def is_rejected(text, because, blinks, is_provisioned=False):
    board = Board(text, is_provisioned)
    return (board.blinks == blinks and board.status == 0 and because in board.log and "not taken" in board.log and not board.is_erased
            and board.wifi == "" and board.host == "" and 'board = "old"' in board.configuration and board.is_clean
            and board.is_refused != is_provisioned)


def check_latin():
    text = 'board = "raspberry-pi-4" # für Alice\nhost = "token" # Küche\nwifi_name = "Café" # für\n' + WIFI.split("\n", 1)[1]
    board = Board(text.encode("latin-1"))
    check("a file in Latin-1 is taken as it is", board.host == "token" and "ssid=436166e9\n" in board.wifi and
          'board = "raspberry-pi-4"' in board.configuration and board.is_erased)


def check_new_board():
    board = Board('# mine\nboard = "raspberry-pi-4" # the large one\n\nhost = "token-of-alice"\n' + WIFI)
    check("all settings are taken", board.status == 0 and board.log.endswith("approval-token.toml was taken\n"))
    check("the file is erased, and no copy is left", board.is_erased and board.is_clean)
    check("the board replaces the old one", board.configuration.splitlines() ==
          ['board = "raspberry-pi-4"', '# board = "x"', 'state = "/s"'])
    check("the host name is set", (board.host, board.kernel_host) == ("token-of-alice", "token-of-alice"))
    check("the Wi-Fi is set, readable by root only", 'psk="correct horse"' in board.wifi and "country=DE" in board.wifi and
          f"ssid={b'home of alice'.hex()}\n" in board.wifi and board.mode == 0o600)
    check("its service is started", "systemctl --no-block restart wpa_supplicant@wlan0.service" in board.commands)
    check("the log has no password", "horse" not in board.log)
    check("nothing blinks, and the service starts", board.blinks is None and not board.is_refused)
    board = Board(WIFI, board="")
    check("without a board, the log and the blinks say it", board.is_erased and board.blinks == "2" and
          board.log.endswith("approval-token.toml was taken; the token does not start, because it has no board\n"))


def check_texts():
    text = '\ufeffboard = "raspberry-pi-4"\r\nhost = "a"\r\n'
    board = Board(text)
    check("a byte order mark and carriage returns do no harm", board.is_erased and board.host == "a")
    board = Board("wifi_name = 'a\"b\\c'\nwifi_password = 'pass\"word\\'\nwifi_country = 'DE'\n")
    check("single quotes hold every other character", 'psk="pass"word\\"' in board.wifi and b'a"b\\c'.hex() in board.wifi)
    board = Board('wifi_name = "Büro"\nwifi_password = "correct horse"\nwifi_country = "DE"')
    check("a name can have letters that are not ASCII", "Büro".encode().hex() in board.wifi)
    board = Board(WIFI.replace("home of alice", "x" * 32))
    check("a name can have 32 equal bytes", f"ssid={'78' * 32}\n" in board.wifi)


def check_server():
    board = Board('server = "https://auth.example.org:8443"\n')
    check("the server of a typed code is taken", board.server == "https://auth.example.org:8443\n\n" and board.is_erased)
    for address in ("https://[2001:db8::1]:8443", "https://192.0.2.1"):
        check(f"also {address}", Board(f'server = "{address}"\n').server == f"{address}\n\n")
    pin = "A" * 43 + "="
    board = Board(f'server = "https://auth.example.org"\nserver_pin = "{pin}"\n')
    check("and its pin", board.server == f"https://auth.example.org\n{pin}\n")
    board = Board('server = "https://auth.example.org"\n', is_provisioned=True)
    check("a board with a vault, too: its account decides", board.server == "https://auth.example.org\n\n" and
          "set up already" not in board.log)


def check_refusals():
    signs = {"line": "1", "there": "2", "wifi": "3", "server": "4"}
    for text, because in [
        ('borad = "raspberry-pi-4"\n', "line 1 is not"),
        ('host = "a"\nboard = "../../etc"\n', "line 2 is not"),
        ('host = "a"\nhost = "A b"\n', "line 2 is not"),
        ('board = "raspberry-pi-9"\n', "there is no board raspberry-pi-9"),
        ('wifi_name = "a" "b"\n', "line 1 is not"),
        ('wifi_name = "a\\"b"\n', "line 1 is not"),
        ('host = "a"\nwifi_name = "a"\nwifi_country = "DE"\n', "wifi_password has"),
        (WIFI.replace("correct horse", "x" * 64), "wifi_password has"),
        (WIFI.replace("correct horse", "geheime Wörter"), "wifi_password has"),
        (WIFI.replace("DE", "de"), "wifi_country is"),
        (WIFI.replace("home of alice", "x" * 33), "wifi_name has"),
        (WIFI.replace("home of alice", ""), "wifi_name has"),
        ('server = "http://auth.example.org"\n', "server is https://"),
        ('server = "https://auth.example.org/path"\n', "server is https://"),
        ('server = "https://a:b:c"\n', "server is https://"),
        ('server = "https://2001:db8::1"\n', "server is https://"),
        ('server = "https://a"\nserver_pin = "x"\n', "server_pin is 44"),
        (f'server_pin = "{"A" * 43}="\n', "server is https://"),
        ('host = "a"\0\n', "line 1 is not"),
        ('board = "raspberry-pi-4"'.encode("utf-16"), "line 1 is not"),
    ]:
        sign = next(blinks for start, blinks in signs.items() if because.startswith(start))
        check(f"nothing is taken from {text!r:.60}: {because}, {sign} blinks", is_rejected(text, because, sign))
    check("a board without a vault does not start its service then, which would make one",
          f"ConditionPathExists=!/run/{REFUSED}" in SERVICE.read_text().splitlines())
    check("one with a vault does", is_rejected("x", "line 1 is not", "1", is_provisioned=True))


def check_provisioned_board():
    board = Board('board = "raspberry-pi-4"\nhost = "mallory"\n', is_provisioned=True)
    check("a board with a vault keeps its board and host name", 'board = "old"' in board.configuration and
          board.host == board.kernel_host == "" and "set up already" in board.log and board.is_erased)
    board = Board('host = "mallory"\n' + WIFI, is_provisioned=True)
    check("it takes the Wi-Fi", 'psk="correct horse"' in board.wifi and board.host == "" and board.is_erased)


def check_reset():
    board = Board('board = "raspberry-pi-4"\n' + WIFI, is_provisioned=True, is_resetting=True)
    check("before a factory reset nothing is taken", board.status == 0 and not board.is_erased and board.wifi == "" and
          'board = "old"' in board.configuration and board.log == "" and board.asks_for_reset)
    board = Board('board = "raspberry-pi-4"\n', is_resetting=True)
    check("a board without a vault has nothing to reset first", 'board = "raspberry-pi-4"' in board.configuration)
    check("nor later, when its settings would be removed again", board.is_erased and not board.asks_for_reset)
    board = Board('board = "raspberry-pi-4"\n', is_resetting=True, mount=32)
    check("while the reset file cannot be removed, nothing is taken", board.asks_for_reset and not board.is_erased and
          board.status != 0 and 'board = "old"' in board.configuration)
    unit = (SERVICE.parents[1] / "approval-token-card-reset.service").read_text()
    check("the unit looks for the reset file after the settings were taken", "\nAfter=approval-token.service\n" in unit and
          "\nBefore=approval-token-secret.service approval-token.service\n" in
          (SERVICE.parents[1] / "approval-token-settings.service").read_text())


def check_blinks():
    for name in ("ACT", "led0"):
        with tempfile.TemporaryDirectory() as directory:
            root = pathlib.Path(directory)
            led = root / "sys/class/leds" / name
            for path in (led, root / "commands"):
                path.mkdir(parents=True)
            # What the LED shows, and for how long; the seventh time ends the program.
            sleep = root / "commands/sleep"
            sleep.write_text(f'#!/bin/sh\necho "$(cat {led}/brightness) $1" >>{root}/seen\n[ "$(wc -l <{root}/seen)" -lt 7 ]\n')
            sleep.chmod(0o755)
            environment = {"PATH": f"{root}/commands:{os.environ['PATH']}", "APPROVAL_TOKEN_ROOT": str(root)}
            subprocess.run([PROGRAM.parent / "blink", "2"], env=environment)
            seen = (root / "seen").read_text().splitlines()
            check(f"the activity LED {name} blinks twice, and again after a pause", (led / "trigger").read_text() == "none\n" and
                  seen == ["1 0.3", "0 0.3", "1 0.3", "0 0.3", "0 2", "1 0.3", "0 0.3"])
            led.rename(root / "none")
            check("a board without this LED does nothing",
                  subprocess.run([PROGRAM.parent / "blink", "2"], env=environment).returncode == 0 and
                  len((root / "seen").read_text().splitlines()) == 7)


if __name__ == "__main__":
    print("settings from the SD card")
    check_new_board()
    check_latin()
    check_texts()
    check_server()
    check_refusals()
    check_provisioned_board()
    check_reset()
    check_blinks()
    sys.exit(exit_code())
