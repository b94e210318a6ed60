#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Updates the system of an emulated board: a good one, one whose service does not start, others that are refused; with power
losses while U-Boot starts, while an update is installed, and while it is on trial.

usage: update.py IMAGE TOKEN_SERVER SCRATCH CERTIFICATE KEY

CERTIFICATE and KEY are those of the image. Exit code 1: a step failed.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time

from card import COPIES, Card
from machine import Timeout, wait
from scene import Scene, run
from shell import UNIT, Shell

PACKAGING = pathlib.Path(__file__).parents[2] / "packaging/image"
SLOTS = PACKAGING / "root/usr/libexec/approval-token/slots"
NEW, BROKEN = "100.1", "100.2"
BUNDLE = "approval-token.raucb"


class Bundles:
    """Updates that are made from the image."""

    def __init__(self, image, directory, certificate, key):
        self.card, self.directory, self.certificate, self.key = Card(image), directory, certificate, key
        directory.mkdir()
        slot = self.card.slots["A"]
        self.kernel = self.copy(slot.kernel.offset, slot.kernel.size, "kernel")
        self.root = directory / "root"
        subprocess.run(
            ["unsquashfs", "-quiet", "-no-progress", "-offset", str(slot.root.offset), "-d", self.root, image], check=True,
            stdout=subprocess.DEVNULL)

    def copy(self, offset, size, name):
        path = self.directory / name
        path.write_bytes(self.card.read(offset, size))
        return path

    def small(self, name):
        """A file in place of a root or a kernel, for bundles that are refused."""
        path = self.directory / name
        path.write_bytes(os.urandom(1 << 16))
        return path

    def sign(self, name, version, root, kernel, certificate=None, key=None, product=None):
        environment = os.environ | ({"COMPATIBLE": product} if product else {})
        bundle = self.directory / name
        subprocess.run(
            [PACKAGING / "make-bundle", root, kernel, version, certificate or self.certificate, key or self.key, bundle],
            check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return bundle

    def of_another_key(self):
        key, certificate = self.directory / "other.key", self.directory / "other.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=another", "-keyout", key, "-out",
             certificate], check=True, stderr=subprocess.DEVNULL)
        return self.sign("other-key.raucb", NEW, self.small("r1"), self.small("k1"), certificate, key)

    def of_another_product(self):
        return self.sign("other-product.raucb", NEW, self.small("r2"), self.small("k2"), product="another")

    def of_version(self, version):
        """The system of the image, with another version."""
        (self.root / "usr/share/approval-token/image-version").write_text(version + "\n")
        image = self.directory / "root.img"
        subprocess.run(
            ["mksquashfs", self.root, image, "-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "1",
             "-b", "256K"], check=True, stdout=subprocess.DEVNULL)
        return self.sign(f"{version}.raucb", version, image, self.kernel)

    def broken(self):
        """Its service does not start."""
        program = self.root / "usr/libexec/approval-token/approval-tokend"
        program.unlink()
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
        return self.of_version(BROKEN)


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
            self.card.put_file(bundle.name, bundle)
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

    def power_loss_in_installation(self, bundle):
        scene = self.scene
        self.card.put_file(BUNDLE, bundle)
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
        scene.says("update: installed, restarting", 600)
        scene.step("installed")
        scene.machine.ends(300)
        scene.step("the board restarts")
        if BUNDLE in self.card.names():
            raise Timeout("the update is still on the SD card")
        self.loses_power_in_start("B")
        self.check("a power loss in a trial should count as an attempt", self.state()["BOOT_B_LEFT"] == "2")
        print("  ok          slot B starts on trial; the power is cut: two attempts are left", flush=True)

    def trial_passes(self):
        scene = self.scene
        scene.power_on()
        scene.machine.qmp.do("set_link", name="net", up=False)
        self.starts("B")
        scene.says(f"update: version {NEW} is in use", 600)
        wait(30, "slot B should be marked good", lambda: self.state()["BOOT_B_GOOD"] == "1")
        scene.step("slot B, without a network: its self-test has passed, and it is marked good")
        scene.machine.qmp.do("set_link", name="net", up=True)
        scene.login(300)
        scene.payment()
        scene.step("with a network: a login is approved with the button, a payment with the PIN")
        scene.machine.power_off()

    def trial_fails(self, bundle):
        scene = self.scene
        self.card.put_file(BUNDLE, bundle)
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
        scene.power_on()
        self.starts("B")
        scene.login(540)
        scene.payment()
        scene.step("slot B again: a login and a payment are approved")
        scene.machine.power_off()
        log = self.card.get("approval-token.log").decode()
        for text in (f"version {NEW} is in use", "self-test failed", f"version {BROKEN} is not used"):
            if text not in log:
                raise Timeout(f"the log on the SD card does not say: {text}")
        print("  ok          the log on the SD card says so", flush=True)

    def attempts_end(self):
        """As after a reset by the watchdog, or a hang that a user ends by unplugging."""
        self.slots("set-primary", "A")
        for left in "210":
            self.loses_power_in_start("A")
            self.check("each start should count", self.state()["BOOT_A_LEFT"] == left)
        self.loses_power_in_start("B")
        self.scene.step("after three starts of slot A that ended early, slot B starts")


def main():
    image, program, scratch = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    scene = Scene(program, scratch)

    def steps():
        bundles = Bundles(image, scratch / "bundles", *sys.argv[4:6])
        new, broken = bundles.of_version(NEW), bundles.broken()
        shutil.rmtree(bundles.root)
        print(f"  two updates were made, of {new.stat().st_size / 1e6:.0f} MB", flush=True)
        scene.flash(image)
        updates = Updates(scene)
        updates.raspberry_pi()
        updates.boot_loader()
        updates.refusals(bundles)
        updates.power_loss_in_installation(new)
        updates.installation()
        updates.trial_passes()
        updates.trial_fails(broken)
        updates.attempts_end()

    return run(scene, steps)


if __name__ == "__main__":
    sys.exit(main())
