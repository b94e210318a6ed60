#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what each board needs to boot from the image, as its documentation says it: no board is here.

usage: boards.py IMAGE

Exit code 1: something is missing.
"""
import lzma
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import tomllib
import zlib

from card import Card
from checks import check, exit_code

PAGES = pathlib.Path(__file__).parents[2] / "boards"
# What the firmware of the board reads from the first partition (U-Boot passes the device tree on), the device trees of
# its models, the drivers of its card, its network, its USB port, its watchdog and its GPIO chip, and the files of its
# Wi-Fi chip.
SMALL = ["bootcode.bin", "start.elf", "fixup.dat"]
COMMON = ["pinctrl-bcm2835", "bcm2835", "sdhci-iproc", "brcmfmac", "bcm2835_wdt"]
BOARDS = {
    "raspberry-pi-3": (
        SMALL, ["bcm2837-rpi-3-b.dtb", "bcm2837-rpi-3-b-plus.dtb", "bcm2837-rpi-3-a-plus.dtb"],
        COMMON + ["dwc2", "phy-generic", "smsc95xx", "lan78xx"],
        ["43430-sdio.bin", "43430-sdio.raspberrypi,3-model-b.txt", "43455-sdio.bin",
         "43455-sdio.raspberrypi,3-model-b-plus.txt", "43455-sdio.raspberrypi,3-model-a-plus.txt"]),
    "raspberry-pi-zero-2w": (
        SMALL, ["bcm2837-rpi-zero-2-w.dtb"], COMMON + ["dwc2", "phy-generic"],
        ["43430-sdio.bin", "43430-sdio.raspberrypi,model-zero-2-w.txt"]),
    "raspberry-pi-4": (
        ["start4.elf", "fixup4.dat"], ["bcm2711-rpi-4-b.dtb", "bcm2711-rpi-400.dtb", "bcm2711-rpi-cm4-io.dtb"],
        COMMON + ["xhci-pci", "pcie-brcmstb", "reset-raspberrypi", "genet"],
        ["43455-sdio.bin", "43455-sdio.raspberrypi,4-model-b.txt"]),
}
# Needed before the root is mounted: built into the kernel, or in the initramfs. On a Raspberry Pi 4 the voltage of the
# SD card is a line that the firmware sets, over its mailbox.
EARLY = ["bcm2835", "sdhci-iproc", "gpio-raspberrypi-exp", "raspberrypi", "bcm2835-mailbox", "squashfs", "overlay", "ext4"]
# The controllers of SD cards; that of the Wi-Fi is brcm,bcm2835-sdhci or brcm,bcm2835-mmc.
CARDS = {"brcm,bcm2711-emmc2", "brcm,bcm2835-sdhost"}


def settings(text):
    """The lines of config.txt: `key=value`, and `initramfs NAME`."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return dict(re.split(r"[= ]", line, maxsplit=1) for line in lines if line and not line.startswith("["))


def levels(text):
    """What the lines `gpio=LINES=OPTIONS` of config.txt set: the options of each line."""
    lines = re.findall(r"^gpio=([0-9,]+)=([a-z,]+)$", text, re.M)
    return {int(number): set(options.split(",")) for numbers, options in lines for number in numbers.split(",")}


def wanted_levels(profile):
    """The same for the lines of a board profile: the pull-ups of buttons, and LEDs that are dark."""
    buttons = [profile[name] for name in ("button", "deny_button") if name in profile]
    if any(button["bias"] != "pull-up" for button in buttons):
        raise RuntimeError("a button without a pull-up")
    lights = [light for light in profile["led"].values() if isinstance(light, dict)]
    return {button["line"]: {"ip", "pu"} for button in buttons} | {
        light["line"]: {"op", "dh" if light.get("active_low") else "dl"} for light in lights}


def property_of(tree, node, name):
    """The strings of a property in a device tree; none if it has no such property."""
    done = subprocess.run(["fdtget", tree, node, name], capture_output=True, text=True)
    return done.stdout.split() if done.returncode == 0 else []


def check_number_of_card(name, data):
    """U-Boot reads its environment from the device `mmc 0`."""
    with tempfile.NamedTemporaryFile() as tree:
        tree.write(data)
        tree.flush()
        path = "".join(property_of(tree.name, "/aliases", "mmc0"))
        check(f"{name}: the SD card has the number 0", path and CARDS & set(property_of(tree.name, path, "compatible")) and
              property_of(tree.name, path, "status") in ([], ["okay"]))


def drivers_in(text):
    """The names in lines that begin with a path `….ko`, or `….ko.xz`."""
    return set(re.findall(r"^(?:[^:\n]*/)?([^/:\n]+)\.ko(?:\.\w+)?(?::|$)", text, re.M))


def initramfs_names(data):
    """The names in the archives of an initramfs: one uncompressed with the drivers, then the others."""
    while data:
        if data.startswith(b"\x28\xb5\x2f\xfd"):
            data = subprocess.run(["zstd", "-dc"], input=data, check=True, capture_output=True).stdout
        # The format "newc": a header of 110 characters, the name, the content, each padded to four bytes.
        position, name = 0, ""
        while name != "TRAILER!!!":
            if data[position : position + 6] != b"070701":
                raise RuntimeError("the initramfs has an unknown format")
            size, length = (int(data[position + at : position + at + 8], 16) for at in (54, 94))
            name = data[position + 110 : position + 110 + length - 1].decode()
            position = (position + 110 + length + 3) // 4 * 4
            position = (position + size + 3) // 4 * 4
            yield name
        data = data[position:].lstrip(b"\0")


def check_boot_loader(card, names):
    configuration = settings(card.get("config.txt").decode())
    check("config.txt: arm_64bit=1", configuration.get("arm_64bit") == "1")
    check("config.txt: the firmware starts U-Boot, which is on the SD card",
          configuration.get("kernel") == "u-boot.bin" and "u-boot.bin" in names)
    check("config.txt: the firmware loads no initramfs", "initramfs" not in configuration)
    check("U-Boot is that of Debian's package", card.get("u-boot.bin") == card.root_file("/usr/lib/u-boot/rpi_arm64/u-boot.bin"))
    environment = card.get("uboot.env")
    variables = dict(line.split("=", 1) for line in environment[4:].split(b"\0\0")[0].decode().split("\0"))
    check("its environment has the size that it wants, and a right checksum",
          len(environment) == 0x4000 and struct.unpack_from("<I", environment)[0] == zlib.crc32(environment[4:]))
    check("no key on a keypad stops it", variables["bootdelay"] == "-2" and variables["stdin"] == "serial")
    check("it does not wait for USB, and starts from no network", "preboot" not in variables and
          not re.search("bootflow|dhcp|pxe|usb", variables["bootcmd"]))
    script = card.get("boot.scr")
    magic, checksum, _, size, _, _, own = struct.unpack_from(">7I", script)
    check("its script is on the SD card", magic == 0x27051956 and size == len(script) - 64 and own == zlib.crc32(script[64:]) and
          checksum == zlib.crc32(script[:4] + bytes(4) + script[8:64]) and b"booti" in script)
    states = card.slots_state()
    check("both copies of the state of the slots are the same: slot A is good, slot B is empty",
          len(states) == 2 and states[0] == states[1] and states[0]["BOOT_ORDER"] == "A" and states[0]["BOOT_A_GOOD"] == "1" and
          states[0]["BOOT_B_GOOD"] == states[0]["BOOT_B_LEFT"] == "0")


def check_slot(card):
    """The version of the kernel in the slot."""
    kernel, options = card.slot_file("vmlinuz"), card.slot_file("options.txt").decode()
    size = struct.unpack_from("<Q", kernel, 16)[0]
    check("the kernel is one that U-Boot starts (booti)", kernel[56:60] == b"ARM\x64")
    # As in boot.cmd. 512 MiB of memory, less 76 for graphics, and U-Boot at its end.
    check("kernel and initramfs have space in the memory of a Zero 2 W",
          size <= 0x6000000 and 0xA000000 + len(card.slot_file("initrd.img")) <= 416 << 20)
    words = options.removeprefix("options=").split()
    check("options.txt: one line for U-Boot, without a root, which U-Boot adds",
          options.startswith("options=") and options.count("\n") == 1 and not re.search(r"\broot=|\brw\b", options))
    check("options.txt: a restart after a panic, and no rootwait, with which a kernel without a readable initramfs would wait for ever",
          "panic=10" in words and "rootwait" not in words)
    check("options.txt: no cma=, with which a Raspberry Pi 4 does not boot", not any(w.startswith("cma=") for w in words))
    check("options.txt: no huge pages, for which the kernel would keep memory free", "transparent_hugepage=never" in words)
    version = re.search(rb"Linux version (\S+) ", kernel)[1].decode()
    check("the modules of this kernel are in the root", bool(card.root_file(f"/usr/lib/modules/{version}/modules.dep")))
    return version


def features_of_wifi(module):
    """The names of the features of brcmfmac, in the order of their bits: from the module's type information (BTF)."""
    names = [name.decode() for name in re.findall(rb"\0BRCMF_FEAT_(\w+)(?=\0)", module)]
    return names[: names.index("LAST")]


def check_wifi_options(card, version):
    options = card.root_file("/etc/modprobe.d/approval-token-image.conf").decode()
    mask = int(re.search(r"^options brcmfmac .*\bfeature_disable=(\w+)$", options, re.M)[1], 0)
    module = card.root_file(
        f"/usr/lib/modules/{version}/kernel/drivers/net/wireless/broadcom/brcm80211/brcmfmac/brcmfmac.ko.xz")
    features = features_of_wifi(lzma.decompress(module))
    check("the Wi-Fi driver leaves the handshakes of WPA to wpa_supplicant",
          {features[bit] for bit in range(len(features)) if mask >> bit & 1} == {"FWSUP", "SAE", "DUMP_OBSS"})


def check_updates(card):
    configuration = card.root_file("/etc/rauc/system.conf").decode()
    devices = re.findall(r"^device=/dev/disk/by-partuuid/(\w+)-0(\d)$", configuration, re.M)
    check("RAUC has the partitions of both slots", devices == [(f"{card.signature:08x}", number) for number in "2536"])
    check("and the certificate of the updates", b"BEGIN CERTIFICATE" in card.root_file("/etc/rauc/keyring.pem"))
    check("only root may install", b"<deny send_destination" in card.root_file("/etc/dbus-1/system.d/approval-token-rauc.conf"))


def main():
    card = Card(sys.argv[1])
    names = set(card.names())
    print("the SD card")
    check("the first partition is FAT, at the start of an MBR, as the boot ROM of Raspberry Pi 3 wants it",
          card.fat.kind == 0x0C and card.fat.offset < card.slots["A"].root.offset < card.state.offset)
    check("its partitions are found by the signature of the image",
          f"PARTUUID={card.signature:08x}-01 " in card.root_file("/etc/fstab").decode())
    check_boot_loader(card, names)
    configuration = card.get("config.txt").decode()
    version = check_slot(card)
    check_updates(card)
    check_wifi_options(card, version)
    modules = f"/usr/lib/modules/{version}/modules"
    built_in = drivers_in(card.root_file(f"{modules}.builtin").decode())
    loadable = drivers_in(card.root_file(f"{modules}.dep").decode())
    early = built_in | drivers_in("\n".join(initramfs_names(card.slot_file("initrd.img"))))
    check("there are drivers in the lists", min(map(len, (built_in, loadable, early - built_in))) > 50)
    check("a driver that does not exist is not found", not {"pinctrl-bcm9999"} & (built_in | loadable | early))
    for driver in ("loop", "dm-verity"):
        check(f"the kernel has {driver}, for updates", driver in built_in | loadable)
    for driver in EARLY:
        check(f"{driver} is there before the root is mounted", driver in early)
    files = card.root_names()
    check("the rules of radio bands of each country are in the root", "/usr/lib/firmware/regulatory.db" in files)
    for board, (firmware, trees, drivers, wifi) in BOARDS.items():
        print(board)
        for name in firmware + trees:
            check(f"{name} is on the SD card", name in names)
        for name in names.intersection(trees):
            check_number_of_card(name, card.get(name))
        for driver in drivers:
            check(f"the kernel has {driver}", driver in built_in | loadable)
        for name in wifi:
            check(f"the root has brcmfmac{name}", f"/usr/lib/firmware/brcm/brcmfmac{name}" in files)
        profile = card.root_file(f"/usr/share/approval-token/boards/{board}/board.toml").decode()
        wanted = wanted_levels(tomllib.loads(profile))
        check("config.txt: the lines of the board's profile have defined levels from power-on", len(wanted) > 3 and
              all(levels(configuration).get(line) == options for line, options in wanted.items()))
        check("config.txt: as the board's page says it",
              levels(configuration) == levels((PAGES / board / "README.md").read_text()))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
