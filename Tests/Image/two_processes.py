#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two processes of the token under the image's systemd: what each can reach, a keypad that is unplugged while a PIN is
typed, either process killed again and again around an approval, and the package removed and installed again.

usage: two_processes.py IMAGE TOKEN_SERVER SCRATCH COUNT SEED

Each process is killed COUNT times, at moments that SEED chooses. Exit code 1: a step failed.
"""
import json
import pathlib
import random
import sys
import threading
import time

from machine import Timeout, slowness, wait
from package import APT, put_upgrade
from removal import Removal
from scene import PIN, Scene, run
from shell import UNIT, Shell

# Of systemd's DynamicUser.
DYNAMIC_USERS = range(61184, 65520)
DEVICE, NETWORK = "approval-token.service", "approval-token-network.service"
# As a unit, which gets the device secret.
TOKEN = ("systemd-run --quiet --wait --pipe -p User=approval-token -p LoadCredentialEncrypted=approval-token.device-secret:"
         "/etc/approval-token/device-secret.cred approval-token")
STATE = "--state /var/lib/approval-token"


class TwoProcesses:
    def __init__(self, scene, count, seed, later):
        """`later` is the version of the package on the SD card."""
        self.scene, self.count, self.seed, self.later = scene, count, seed, later
        self.machine, self.server, self.shell = scene.machine, scene.server, Shell(scene.machine)

    def kill(self, unit):
        # Ten failures in ten minutes would stop the service.
        self.shell.run(f"systemctl reset-failed {unit}; systemctl kill --signal=KILL {unit}")

    def colors(self, seconds):
        return self.machine.lines.colors(time.monotonic() - seconds)

    # What runs, and what it can reach

    def units_run(self):
        states = self.shell.run(f"systemctl is-active {DEVICE} {NETWORK} approval-token-network.socket")
        if states.split() != ["active"] * 3:
            raise Timeout(f"the units are not all active: {states}")
        status = self.shell.run(f"runuser -u approval-token -- approval-token status --json {STATE}")
        if not json.loads(status)["network_process"]:
            raise Timeout(f"the service does not say that there are two processes: {status}")
        self.scene.step("systemd runs the device process and the network process")

    def processes_are_separate(self):
        device, network = (self.shell.run(f"systemctl show --value -p MainPID {unit}").strip() for unit in (DEVICE, NETWORK))
        interfaces = self.shell.run(f"cut -d : -s -f 1 /proc/{device}/net/dev").split()
        if interfaces != ["lo"]:
            raise Timeout(f"the device process sees network interfaces: {interfaces}")
        owner = int(self.shell.run(f"stat -c %u /proc/{network}"))
        if owner not in DYNAMIC_USERS:
            raise Timeout(f"the network process runs as user {owner}")
        files = self.shell.run(f"readlink /proc/{network}/fd/* || true")
        if "/dev/gpiochip" in files or "/dev/bus" in files or "/var/lib" in files:
            raise Timeout(f"the network process has open files: {files}")
        open_files = self.shell.run(f"readlink /proc/{device}/fd/* || true")
        if "/dev/gpiochip0" not in open_files or "/dev/bus/usb" not in open_files:
            raise Timeout(f"the device process should have the chip and the keypad: {open_files}")
        self.scene.step("the device process sees no network interface but lo; the network process has no devices, no state")

    def main_process(self, unit):
        return self.shell.run(f"systemctl show --value -p MainPID {unit}").strip()

    def journal_has_fields(self):
        settled = self.shell.run("journalctl --quiet --unit approval-token --output cat EVENT=settled")
        if "approved" not in settled:
            raise Timeout(f"the journal has no entry with EVENT=settled: {settled}")
        self.scene.step("the journal finds the approvals by the field EVENT")

    # Forbidden system calls

    def forbid(self, unit, calls):
        """Ends the process; the next one may not use the calls either."""
        self.shell.run(f"mkdir -p /run/systemd/system/{unit}.d && printf '[Service]\\nSystemCallFilter=~{calls}\\n' "
                       f"> /run/systemd/system/{unit}.d/forbidden.conf && systemctl daemon-reload")
        self.kill(unit)

    def permit(self, unit):
        self.shell.run(f"rm -r /run/systemd/system/{unit}.d && systemctl daemon-reload; "
                       f"systemctl reset-failed {unit}; systemctl restart {unit}")

    def was_ended_by_filter(self, unit):
        return "status=31/SYS" in self.shell.run(f"journalctl --quiet --unit {unit} --lines 50 | cat")

    def forbidden_call(self, unit, other, calls):
        self.is_idle()
        process = self.main_process(other)
        self.forbid(unit, calls)
        wait(120, f"{unit} should be ended by its system call filter", lambda: self.was_ended_by_filter(unit))
        if self.main_process(other) != process:
            raise Timeout(f"{other} was ended, too")
        self.permit(unit)
        self.is_idle()
        self.scene.login()
        self.scene.step(f"{unit} calls {calls}, which is forbidden: it is ended, {other} is not; permitted, a login is approved")

    def forbidden_calls(self):
        self.forbidden_call(NETWORK, DEVICE, "connect")
        self.forbidden_call(DEVICE, NETWORK, "accept accept4")

    def keypad_is_replugged(self):
        request = self.scene.half_typed_payment()
        self.machine.unplug()
        time.sleep(5 * slowness())
        if self.server.is_authenticated(request):
            raise Timeout("a payment was approved by a part of the PIN")
        self.machine.plug()
        # libusb opens it again; until then its keys are lost.
        wait(60, "the device process should open the new keypad", self.has_keypad)
        time.sleep(1)
        self.machine.type(PIN)
        wait(60, "the portal should read that the payment is approved", lambda: self.server.is_authenticated(request))
        self.scene.step("the keypad was unplugged after two digits of the PIN, and another one plugged in: approved")

    def has_keypad(self):
        return "/dev/bus/usb" in self.shell.run(
            f"readlink /proc/$(systemctl show --value -p MainPID {DEVICE})/fd/* || true")

    def upgrade_waits_for_answer(self):
        """By apt, from a repository on the SD card."""
        self.is_idle()
        self.shell.run(f"{APT} update")
        processes = [self.main_process(unit) for unit in (DEVICE, NETWORK)]
        said = len(self.machine.text())
        request = self.scene.half_typed_payment()
        self.shell.run("systemd-run --quiet --unit=upgrade --property=RemainAfterExit=yes "
                       f"--setenv=DEBIAN_FRONTEND=noninteractive {APT} upgrade")
        # Before, the other digits would prove nothing.
        self.scene.stop_waits(300, said)
        self.scene.type_rest(request)
        wait(600, "the upgrade should end",
             lambda: self.shell.run("systemctl show --value -p SubState upgrade.service").strip() == "exited")
        version = self.shell.run("dpkg-query --show --showformat='${Version}\\n' approval-token").strip()
        if version != self.later:
            raise Timeout(f"the version is {version}, not {self.later}: {self.shell.run('journalctl --unit upgrade | tail')}")
        for unit, process in zip((DEVICE, NETWORK), processes):
            wait(60, f"{unit} should be restarted", lambda: self.main_process(unit) not in (process, "0"))
        if self.server.answers(request) != 1:
            raise Timeout(f"the token server took {self.server.answers(request)} answers")
        self.scene.login()
        self.scene.step("an upgrade by apt after two digits of the PIN waits for the others and the answer, and restarts both"
                        " processes; then a login is approved")

    def hang_of_network_ends(self):
        process = self.main_process(NETWORK)
        self.shell.run(f"kill -STOP {process}")
        wait(300, "systemd should restart a network process that hangs",
             lambda: self.main_process(NETWORK) not in (process, "0"))
        self.scene.login()
        self.scene.step("a network process that hangs (SIGSTOP) is restarted by systemd, and a login is approved")

    # Kills

    def led_says_so(self):
        self.is_idle()
        killed = time.monotonic()
        self.kill(NETWORK)
        self.machine.lines.shows("red", killed, 20, lasting=0.02)
        states = self.machine.lines.states
        delay = next(moment for moment, color in list(states) if moment > killed and color == "red") - killed
        if delay > 2 * slowness():
            raise Timeout(f"the LED said only after {delay:.1f} s that there is no connection")
        self.scene.step(f"the network process is killed: the LED says after {delay:.2f} s that there is no connection")
        self.scene.login()
        self.scene.step("it was started again, and a login is approved")

    def is_idle(self):
        wait(60, "the LED should show no request", lambda: not {"blue", "amber", "white"} & set(self.colors(3)))

    def trial(self, number):
        chance = random.Random(f"{self.seed}/{number}")
        unit = NETWORK if number % 2 else DEVICE
        kind, is_pressed, delay = chance.choice(["login", "payment"]), chance.random() < 0.75, chance.uniform(0, 4)
        what = f"{unit} {delay:.2f} s after a {kind} that is {'' if is_pressed else 'not '}approved"
        device = self.server.devices()[0]["id"]
        since = time.monotonic()
        request = self.server.ask(kind, device)
        killer = threading.Thread(target=lambda: (time.sleep(delay), self.kill(unit)))
        killer.start()
        try:
            if is_pressed:
                self.answer(kind, since, request)
        finally:
            killer.join()
        if not is_pressed:
            # Until it is shown by what runs again.
            self.machine.lines.shows("amber" if kind == "payment" else "blue", time.monotonic(), 90)
            if self.server.is_authenticated(request):
                raise Timeout(f"{what}: approved")
            self.server.cancel(request)
        self.is_idle()
        if self.server.answers(request) != int(is_pressed):
            raise Timeout(f"{what}: {self.server.answers(request)} answers")
        return what

    def answer(self, kind, since, request):
        """Types the PIN or holds the button, as often as the LED asks for it."""
        end = time.monotonic() + 120 * slowness()
        while not self.server.is_authenticated(request):
            if time.monotonic() > end:
                raise Timeout(f"not approved; the LED was {set(self.machine.lines.colors(since))}")
            if ("amber" if kind == "payment" else "blue") in self.machine.lines.colors(since):
                time.sleep(0.8)
                if kind == "payment":
                    self.machine.type(PIN)
                else:
                    self.machine.lines.press(1.3)
                since = time.monotonic() + 2
            time.sleep(0.2)

    def kills(self):
        for number in range(2 * self.count):
            what = self.trial(number)
            print(f"  ok  kill {number + 1:3}: {what}", flush=True)
        if len(self.server.devices()) != 1:
            raise Timeout("the token server has more than one device")
        verified = self.shell.run(f"{TOKEN} log --verify {STATE}")
        if "intact: " not in verified:
            raise Timeout(f"the audit chain is not intact: {verified}")
        self.scene.step(f"each process was killed {self.count} times: no answer was doubled, none invented; {verified.splitlines()[-1]}")

    def stop_ends_both(self):
        self.shell.run(f"systemctl stop {DEVICE}")
        units = f"{DEVICE} {NETWORK} approval-token-network.socket"
        wait(300, "without a device process the network process and its socket should end",
             lambda: self.shell.run(f"systemctl is-active {units} || true").split() == ["inactive"] * 3)
        self.shell.run(f"systemctl start {DEVICE}")
        self.scene.login()
        self.scene.step("the service is stopped: the network process ends, too; after a start a login is approved")


def main():
    image, program, scratch = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    count, seed = int(sys.argv[4]), sys.argv[5]
    scene = Scene(program, scratch)

    def steps():
        scene.flash(image)
        later = put_upgrade(scene.card, scratch / "package")
        scene.power_on(unit=UNIT)
        scene.enroll()
        scene.login()
        scene.payment()
        scene.step("a login was approved with the button, a payment with the PIN")
        processes = TwoProcesses(scene, count, seed, later)
        processes.units_run()
        processes.processes_are_separate()
        processes.journal_has_fields()
        processes.keypad_is_replugged()
        processes.upgrade_waits_for_answer()
        processes.hang_of_network_ends()
        processes.led_says_so()
        processes.forbidden_calls()
        processes.kills()
        processes.stop_ends_both()
        removal = Removal(scene, processes.shell)
        removal.removed()
        removal.installed_again()
        removal.purged()
        scene.machine.power_off()

    return run(scene, steps)


if __name__ == "__main__":
    sys.exit(main())
