#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots the image for SD cards on an emulated board, and approves with it.

usage: boot.py IMAGE TOKEN_SERVER SCRATCH

A token server runs on this machine, over TLS. The SD card gets the board's name and an enrollment URI, as from
a user. A PIN is typed on the USB keyboard, the button is pressed on its GPIO line, the LED is read from its lines, and
the portal is asked for the results. Prints each step with the seconds since power-on. Exit code 1: a step failed.
"""
import datetime
import hashlib
import pathlib
import re
import sys
import time

from lasting import Lasting, give_files_to_others
from machine import Timeout, wait
from scene import Scene, run
from shell import UNIT, Shell

SERVICE = "approval-token.service"
# The clock of a board that was without power since, and has none that runs without it. The certificate of the token
# server, and its keys, are of today.
LONG_AGO = datetime.datetime.now(datetime.UTC).replace(microsecond=0) - datetime.timedelta(days=212)

SSID, PASSWORD = "home of alice", "correct horse"
WIFI = f'host = "mallory"\nwifi_name = "{SSID}"\nwifi_password = "{PASSWORD}"\nwifi_country = "DE"\n'
# Two emulated radios of the kernel: the second one is the access point.
ACCESS_POINT = f"""[Service]
ExecStartPre=/bin/systemctl mask --runtime wpa_supplicant@wlan1.service
ExecStartPre=/usr/sbin/modprobe mac80211_hwsim
ExecStartPre=/bin/sh -c "echo 'country=DE\\nnetwork={{\\nmode=2\\nfrequency=2412\\nkey_mgmt=WPA-PSK\\nssid={SSID.encode().hex()}\\n\
psk={hashlib.pbkdf2_hmac("sha1", PASSWORD.encode(), SSID.encode(), 4096, 32).hex()}\\n}}' >/run/access-point.conf"
ExecStart=/usr/sbin/wpa_supplicant -iwlan1 -c/run/access-point.conf
"""


def enroll_and_approve(scene):
    scene.power_on(clock=LONG_AGO)
    scene.enroll()
    scene.login()
    scene.step("a login: the LED was blue, the button was pressed, the portal reads that alice is authenticated")
    scene.payment()
    scene.step("a payment: the LED was amber, the PIN was typed, the portal reads that alice is authenticated")
    scene.machine.power_off()
    scene.step("the power button shuts the board down")
    clock_is_behind(scene.card, "enrolled")


def clock_is_behind(card, text):
    """The log on the SD card has the times of the board."""
    line = next(line for line in card.get("approval-token.log").decode().splitlines() if text in line)
    if datetime.datetime.fromisoformat(line.split()[0]) - LONG_AGO > datetime.timedelta(days=1):
        raise Timeout(f"the clock of the board should be behind, at {LONG_AGO}: {line}")
    print(f"  ok           the clock of the board was behind: {line}", flush=True)


def files_are_erased(scene):
    card, uri = scene.card, scene.uri.encode()
    if {"approval-token.uri", "approval-token.toml"} & set(card.names()):
        raise Timeout("the files that were taken are still on the SD card")
    if uri in card.path.read_bytes():
        raise Timeout("the URI can still be read from the SD card's blocks")
    if b"enrolled" not in card.get("approval-token.log") or uri in card.get("approval-token.log"):
        raise Timeout("the log on the SD card does not say that the token is enrolled")
    print("  ok           the URI was erased from the SD card, whose log says: enrolled", flush=True)


def state_survives(scene, lasting):
    scene.card.put("approval-token.toml", WIFI)
    # Before the end of the first start, however long this start takes.
    scene.power_on(unit=ACCESS_POINT, clock=LONG_AGO - datetime.timedelta(days=1))
    scene.login(540)
    scene.step("after a restart: a login is approved with the button")
    scene.says("System time restored from driftfile", 60)
    scene.step("the board's clock has continued from its last time")
    scene.says("self-test passed", 240)
    scene.step("the self-test has passed")
    scene.says("wlan0: WPA: Key negotiation completed", 240)
    scene.step("the Wi-Fi from the SD card is connected, with WPA2")
    scene.machine.cut_power()
    settings_are_taken(scene.card)
    clock_is_behind(scene.card, "not taken")
    lasting.check(was_shut_down=False)
    scene.power_on()
    scene.login(540)
    scene.payment()
    scene.step("after a power loss: a login is approved with the button, a payment with the PIN")
    scene.machine.power_off()
    lasting.check()


def settings_are_taken(card):
    if "approval-token.toml" in card.names() or PASSWORD.encode() in card.fat_bytes():
        raise Timeout("the password of the Wi-Fi can still be read from the FAT partition")
    if b"board and host in approval-token.toml were not taken" not in card.get("approval-token.log"):
        raise Timeout("the log on the SD card does not say that the host name was not taken")
    print("  ok           the password was erased from the FAT partition; the host name was not changed", flush=True)


def hang_ends(scene, lasting):
    give_files_to_others(scene.card)
    scene.power_on(unit=UNIT)
    scene.login(540)
    scene.step("after a third restart: a login is approved with the button")
    shell = Shell(scene.machine)
    # DHCP listens at the address of one interface.
    shell.run(r"! ss --no-header --listening --numeric --tcp --udp | grep --extended-regexp '(0\.0\.0\.0|\*|\[::\]):[0-9]+ '")
    scene.step("nothing listens at all addresses")
    shell.run(f"systemctl kill --signal=STOP --kill-whom=main {SERVICE}")
    scene.step("the process of the service is stopped (SIGSTOP)")
    scene.says("Watchdog timeout", 240)
    scene.step("systemd finds the hang")
    scene.login(240)
    scene.step("after the restart of the service: a login is approved with the button")
    failures_stop_it(scene, shell)
    scene.machine.power_off()
    lasting.check()


def failures_stop_it(scene, shell):
    def has_stopped():
        """Otherwise kills it, if it runs."""
        state = shell.run(f"systemctl is-active {SERVICE} || true").strip()
        if state == "active":
            shell.run(f"systemctl kill --signal=KILL --kill-whom=main {SERVICE}")
        return state == "failed"

    wait(300, "after ten failures the service should stay stopped", has_stopped)
    wait(60, "the log on the SD card should say that the service has stopped",
         lambda: re.search(rb"  the service has stopped: .+ \(signal\)$", scene.card.get("approval-token.log"), re.M))
    starts = len(re.findall(r"systemd\[1\]: Started approval-token.service", scene.machine.text()))
    scene.step(f"the service is killed again and again: after {starts} starts it stays stopped, as the log on the SD card says")


def owner_changes(scene):
    former, card = scene.server.devices()[0]["id"], scene.card
    card.put("approval-token.reset", "")
    _, lines = scene.server.typed_activation()
    card.put("approval-token.toml", 'board = "qemu-virt"\nhost = "token-of-bob"\n' + lines)
    scene.power_on()
    scene.machine.lines.stays("red", scene.machine.began, 540)
    time.sleep(1)
    scene.machine.lines.press(6.5)
    scene.machine.ends(300)
    scene.step("after approval-token.reset and a very long hold, the board restarts")
    if scene.server.devices():
        raise Timeout("the token server still lists the device")
    scene.power_on()
    type_code(scene)
    scene.login()
    scene.step("it takes approval-token.toml as a new board: enrolled again, a login is approved")
    if [device["id"] for device in scene.server.devices()] == [former]:
        raise Timeout("the token is the former one")
    scene.machine.power_off()
    if b"reset: removed all accounts" not in card.get("approval-token.log"):
        raise Timeout("the log on the SD card does not say that the token was reset")


def type_code(scene):
    """The activation code, first with a wrong digit, which is refused."""
    machine = scene.machine
    machine.lines.keeps_blinking("violet", 3, machine.began, 540)
    scene.step("the LED asks for an activation code: the server came from the SD card")
    code, _ = scene.server.typed_activation()
    time.sleep(1)
    machine.type(code[:-1] + str((int(code[-1]) + 1) % 10))
    # While digits are typed, the LED is amber.
    machine.lines.keeps_blinking("violet", 3, time.monotonic(), 60)
    since = time.monotonic()
    machine.type(code)
    machine.lines.shows("white", since)
    scene.enroll(time.monotonic(), "the code was typed on the USB keyboard, at first with a wrong digit")


def failed_start_is_repeated(scene):
    scene.power_on(options="systemd.unit=emergency.target")
    scene.says("not started: restarting in a minute", 300)
    scene.machine.ends(240)
    scene.step("a start that fails is repeated: the board restarts")


def root_is_unchanged(scene):
    if scene.card.root_hash() != scene.root:
        raise Timeout("the root partition has changed")
    print("  ok           no byte of the root partition has changed", flush=True)


def main():
    image, program, scratch = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    scene = Scene(program, scratch)

    def steps():
        scene.flash(image)
        lasting = Lasting(scene)
        enroll_and_approve(scene)
        files_are_erased(scene)
        lasting.check()
        state_survives(scene, lasting)
        hang_ends(scene, lasting)
        owner_changes(scene)
        failed_start_is_repeated(scene)
        root_is_unchanged(scene)

    return run(scene, steps)


if __name__ == "__main__":
    sys.exit(main())
