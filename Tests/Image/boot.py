#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots the image for SD cards on an emulated board, and approves with it.

usage: boot.py IMAGE TOKEN_SERVER SCRATCH

A token server runs on this machine, over TLS. The SD card gets the board's name and an enrollment URI, as from
a user. A PIN is typed on the USB keyboard, the button is pressed on its GPIO line, the LED is read from its lines, and
the portal is asked for the results. Prints each step with the seconds since power-on. Exit code 1: a step failed.
"""
import pathlib
import sys

from machine import Timeout
from scene import Scene, run

# Stops the process of the service once.
HANG = """[Unit]
After=approval-token.service
[Service]
Type=oneshot
ExecStart=/bin/sleep 60
ExecStart=/bin/systemctl kill --signal=STOP --kill-whom=main approval-token.service
ExecStart=/bin/echo the service is stopped
"""


def enroll_and_approve(scene):
    scene.power_on()
    scene.enroll()
    scene.login()
    scene.step("a login: the LED was blue, the button was pressed, the portal reads that alice is authenticated")
    scene.payment()
    scene.step("a payment: the LED was amber, the PIN was typed, the portal reads that alice is authenticated")
    scene.machine.power_off()
    scene.step("the power button shuts the board down")


def files_are_erased(scene):
    card, uri = scene.card, scene.uri.encode()
    if {"approval-token.uri", "approval-token.toml"} & set(card.names()):
        raise Timeout("the files that were taken are still on the card")
    if uri in card.path.read_bytes():
        raise Timeout("the URI can still be read from the card's blocks")
    if b"enrolled" not in card.get("approval-token.log") or uri in card.get("approval-token.log"):
        raise Timeout("the log on the card does not say that the token is enrolled")
    print("  ok           the URI was erased from the card, whose log says: enrolled", flush=True)


def state_survives(scene):
    scene.power_on()
    scene.login(540)
    scene.step("after a restart: a login is approved with the button")
    scene.machine.cut_power()
    scene.power_on()
    scene.login(540)
    scene.payment()
    scene.step("after a power loss: a login is approved with the button, a payment with the PIN")
    scene.machine.power_off()


def hang_ends(scene):
    scene.power_on(unit=HANG)
    scene.login(540)
    scene.step("after a third restart: a login is approved with the button")
    scene.says("the service is stopped", 300)
    scene.step("the process of the service is stopped (SIGSTOP)")
    scene.says("Watchdog timeout", 240)
    scene.step("systemd finds the hang")
    scene.login(240)
    scene.step("after the restart of the service: a login is approved with the button")
    scene.machine.power_off()


def root_is_unchanged(scene):
    if scene.card.root_hash() != scene.root:
        raise Timeout("the root partition has changed")
    print("  ok           no byte of the root partition has changed", flush=True)


def main():
    image, program, scratch = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    scene = Scene(program, scratch)

    def steps():
        scene.flash(image)
        for part in (enroll_and_approve, files_are_erased, state_survives, hang_ends, root_is_unchanged):
            part(scene)

    return run(scene, steps)


if __name__ == "__main__":
    sys.exit(main())
