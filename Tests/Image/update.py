#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Updates the system of an emulated board: a good one with another kernel, one whose service does not start, one whose kernel
panics, others that are refused; with power losses while U-Boot starts, while an update is installed, and while it is on
trial, and with a kernel that hangs then.

usage: update.py IMAGE TOKEN_SERVER SCRATCH CERTIFICATE KEY [BUNDLE]

CERTIFICATE and KEY are those of the image. BUNDLE is the good update, in place of one that is made from the image. Exit code
1: a step failed.
"""
import os
import pathlib
import subprocess
import sys
import time

from bundles import BROKEN, Bundles
from card import COPIES
from machine import Timeout, wait
from scene import Scene, run
from shell import UNIT, Shell

SLOTS = pathlib.Path(__file__).parents[2] / "packaging/image/root/usr/libexec/approval-token/slots"
BUNDLE = "approval-token.raucb"
# Without a timeout after a panic, the kernel does nothing any more, and only the watchdog restarts the board.
HANG = """[Unit]
Before=approval-token-self-test.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c "until grep -qx active /sys/class/watchdog/watchdog0/state; do sleep 1; done; \
echo 0 >/proc/sys/kernel/panic; echo c >/proc/sysrq-trigger"
"""


class Updates:
    def __init__(self, scene):
        self.scene, self.card = scene, scene.card

    def state(self):
        return self.card.slots_state()[-1]

    def slots(self, *arguments):
        """Changes the state of the slots while the board has no power."""
        environment = os.environ | {
            "APPROVAL_TOKEN_DISK": str(self.card.path), "APPROVAL_TOKEN_RUN": str(self.scene.directory)}
        subprocess.run([SLOTS, *arguments], check=True, env=environment)

    def starts(self, slot, seconds=120):
        self.scene.says(f"Starting slot {slot}.", seconds)

    def loses_power_in_start(self, slot):
        self.scene.power_on()
        self.starts(slot)
        self.scene.machine.cut_power()

    def check(self, what, holds):
        if not holds:
            raise Timeout(f"{what}: the state of the slots is {self.card.slots_state()}")

    # Without Linux

    def raspberry_pi(self):
        """The boot loader of a Raspberry Pi, on QEMU's model of one, in place of the firmware, which QEMU does not have."""
        directory, began = self.scene.directory, time.monotonic()
        console = directory / "raspberry-pi.log"
        for name in ("u-boot.bin", "bcm2837-rpi-3-b.dtb"):
            (directory / f"pi-{name}").write_bytes(self.card.get(name))
        command = ["qemu-system-aarch64", "-M", "raspi3b", "-display", "none", "-monitor", "none", "-no-reboot", "-snapshot",
                   "-serial", "null", "-serial", f"file:{console}", "-kernel", directory / "pi-u-boot.bin",
                   "-dtb", directory / "pi-bcm2837-rpi-3-b.dtb", "-drive", f"if=sd,file={self.card.path},format=raw"]
        board = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait(300, "U-Boot of a Raspberry Pi 3 should start the kernel",
                 lambda: console.exists() and "Starting kernel" in console.read_text(errors="replace"))
        finally:
            board.kill()
            board.wait()
        text = console.read_text(errors="replace")
        if "Loading Environment from FAT... OK" not in text or "Starting slot A." not in text or "autoboot" in text:
            raise Timeout(f"U-Boot of a Raspberry Pi 3 does not do what it should: {text}")
        print(f"  ok  {time.monotonic() - began:5.0f} s  U-Boot of an emulated Raspberry Pi 3 starts the kernel of slot A", flush=True)

    def boot_loader(self):
        card = open(self.card.path, "r+b")
        beginning = self.card.read(0, self.card.fat.offset)
        before = self.card.slots_state()
        self.loses_power_in_start("A")
        self.check("a good slot should be started without writing", self.card.slots_state() == before)
        self.slots("set-primary", "B")
        self.loses_power_in_start("A")
        state = self.state()
        self.check("an empty slot should be left", state["BOOT_B_LEFT"] == "0" and state["BOOT_A_GOOD"] == "1")
        self.scene.step("U-Boot starts slot A, which is good; slot B, which is empty, is tried once if it is first")
        for place in COPIES:
            card.seek(place)
            card.write(b"xxxx")
        card.flush()
        self.loses_power_in_start("A")
        self.check("without a state, a slot should be on trial", self.state()["BOOT_A_LEFT"] == "2")
        self.scene.step("without a valid copy of the state of the slots, slot A is on trial")
        card.seek(0)
        card.write(beginning)
        card.close()

    # An update

    def refusals(self, bundles):
        scene = self.scene
        for bundle in (bundles.of_another_key(), bundles.of_another_product()):
            self.card.put_file(bundle.path.name, bundle.path)
        scene.power_on(unit=UNIT)
        scene.enroll()
        scene.login()
        scene.step("slot A: a login is approved with the button")
        shell = Shell(scene.machine)
        for name, reason in (("other-key", "signature"), ("other-product", "ompatible")):
            output = shell.run(f"rauc install /boot/firmware/{name}.raucb 2>&1; true", 300)
            if reason not in output or "succeeded" in output:
                raise Timeout(f"{name}.raucb should be refused: {output}")
            last = [line for line in output.splitlines() if line.startswith("LastError:")][-1]
            scene.step(f"{name}.raucb is refused: {last}")
        output = shell.run("runuser -u nobody -- rauc status mark-bad 2>&1; true")
        if "Rejected send message" not in output:
            raise Timeout(f"another user than root should not be able to use RAUC: {output}")
        self.check("nothing should be installed", self.state()["BOOT_ORDER"] == "A")
        scene.step("another user than root cannot use RAUC; nothing was installed")
        scene.machine.power_off()
        for name in ("other-key.raucb", "other-product.raucb"):
            self.card.mtools("mdel", f"::{name}")

    def is_written(self):
        """Whether a part of slot B was written."""
        return self.card.read(self.card.slots["B"].root.offset, 4096).strip(b"\0\xff")

    def power_loss_in_installation(self, update):
        scene = self.scene
        self.card.put_file(BUNDLE, update.path)
        scene.power_on()
        scene.says("update: installing", 540)
        scene.step("an update on the SD card is being installed")
        wait(300, "slot B should be written", self.is_written)
        time.sleep(1)
        scene.machine.cut_power()
        self.check("a half written slot should be bad", self.state()["BOOT_B_LEFT"] == self.state()["BOOT_B_GOOD"] == "0")
        print("  ok          the power is cut while slot B is written", flush=True)

    def installation(self):
        scene = self.scene
        scene.power_on()
        self.starts("A")
        scene.login(540)
        scene.step("slot A starts, and a login is approved; the update is installed again")
        scene.says("update: installing", 300)
        request = scene.half_typed_payment()
        scene.step("meanwhile, two digits of the PIN for a payment are typed")
        scene.stop_waits(600, 0)
        if "update: installed, restarting" not in scene.machine.text():
            raise Timeout("the service stops before the update is installed")
        scene.type_rest(request)
        scene.step("installed; the restart waits for the other digits: the portal reads that alice is authenticated")
        scene.machine.ends(300)
        scene.step("the board restarts")
        if BUNDLE in self.card.names():
            raise Timeout("the update is still on the SD card")
        self.loses_power_in_start("B")
        self.check("a power loss in a trial should count as an attempt", self.state()["BOOT_B_LEFT"] == "2")
        print("  ok          slot B starts on trial; the power is cut: two attempts are left", flush=True)

    def hangs_in_trial(self):
        scene = self.scene
        scene.power_on(unit=HANG, has_watchdog=True)
        self.starts("B")
        scene.says("end Kernel panic", 300)
        scene.machine.ends(120)
        if '"WATCHDOG"' not in scene.machine.qmp.stream.read():
            raise Timeout("the board was not restarted by its watchdog")
        self.check("a hang in a trial should count as an attempt", self.state()["BOOT_B_LEFT"] == "1")
        scene.step("slot B, on trial: its kernel hangs, and the watchdog restarts the board; one attempt is left")

    def trial_passes(self, update):
        scene = self.scene
        scene.power_on(unit=UNIT)
        scene.machine.qmp.do("set_link", name="net", up=False)
        self.starts("B")
        scene.says(f"update: version {update.version} is in use", 600)
        wait(30, "slot B should be marked good", lambda: self.state()["BOOT_B_GOOD"] == "1")
        scene.step("slot B, without a network: its self-test has passed, and it is marked good")
        scene.machine.qmp.do("set_link", name="net", up=True)
        scene.login(300)
        scene.payment()
        scene.step("with a network: a login is approved with the button, a payment with the PIN")
        kernel = Shell(scene.machine).run("uname -r")
        if kernel != update.kernel:
            raise Timeout(f"the kernel should be {update.kernel}, not {kernel}")
        scene.step(f"its kernel is {kernel}")
        scene.machine.power_off()

    def trial_fails(self, update, panicking):
        scene = self.scene
        self.card.put_file(BUNDLE, update.path)
        scene.power_on()
        self.starts("B")
        scene.says("update: installed, restarting", 900)
        scene.step("slot B: an update whose service does not start is installed into slot A")
        scene.machine.ends(300)
        scene.power_on()
        self.starts("A")
        scene.says(f"update: version {BROKEN} is not used", 600)
        scene.step("slot A: its self-test fails")
        scene.machine.ends(300)
        scene.step("the board restarts")
        self.check("a slot whose self-test failed should be bad", self.state()["BOOT_A_LEFT"] == "0")
        self.card.put_file(panicking.path.name, panicking.path)
        scene.power_on(unit=UNIT)
        self.starts("B")
        scene.login(540)
        scene.payment()
        scene.step("slot B again: a login and a payment are approved")
        Shell(scene.machine).run(f"rauc install /boot/firmware/{panicking.path.name}", 300)
        scene.step("an update whose initramfs is damaged is installed into slot A")
        scene.machine.power_off()
        log = self.card.get("approval-token.log").decode()
        for text in ("is in use", "self-test failed", f"version {BROKEN} is not used"):
            if text not in log:
                raise Timeout(f"the log on the SD card does not say: {text}")
        print("  ok          the log on the SD card says so", flush=True)

    def panics(self):
        for left in "210":
            self.scene.power_on()
            self.starts("A")
            self.scene.says("Kernel panic", 120)
            self.scene.machine.ends(120)
            self.check("each start should count", self.state()["BOOT_A_LEFT"] == left)
        self.loses_power_in_start("B")
        self.scene.step("slot A panics, and the board restarts; after the third time, slot B starts")


def main():
    image, program, scratch = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    scene = Scene(program, scratch)

    def steps():
        bundles = Bundles(image, scratch / "bundles", *sys.argv[4:6])
        new = bundles.given(pathlib.Path(sys.argv[6])) if len(sys.argv) > 6 else bundles.good()
        broken, panicking = bundles.broken(), bundles.panicking()
        bundles.remove_root()
        print(f"  updates were made; the good one has {new.path.stat().st_size / 1e6:.0f} MB", flush=True)
        scene.flash(image)
        updates = Updates(scene)
        updates.raspberry_pi()
        updates.boot_loader()
        updates.refusals(bundles)
        updates.power_loss_in_installation(new)
        updates.installation()
        updates.hangs_in_trial()
        updates.trial_passes(new)
        updates.trial_fails(broken, panicking)
        updates.panics()

    return run(scene, steps)


if __name__ == "__main__":
    sys.exit(main())
