#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the files that belong to the image, and what must not be in it.

usage: properties.py IMAGE SCRATCH

Exit code 1: a check failed.
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys

from boards import initramfs_names
from card import Card, mapped_blocks
from checks import check, exit_code
from scene import MESSAGE_OF_LIBRNP

LARGEST = 700_000_000
REPOSITORY = pathlib.Path(__file__).parents[2]

def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def beside(image, ending):
    return image.with_name(image.stem + ending)


def succeeds(*command):
    return subprocess.run(command, capture_output=True).returncode == 0


def check_files(image, compressed):
    for path in (image, compressed):
        found = path.with_name(path.name + ".sha256").read_text().split()
        check(f"{path.name}.sha256 is right", found == [sha256(path), path.name])
    entry = json.loads(beside(image, ".imager.json").read_text())["os_list"][0]
    expected = (image.stat().st_size, sha256(image), compressed.stat().st_size, sha256(compressed))
    names = ("extract_size", "extract_sha256", "image_download_size", "image_download_sha256")
    check("the entry for Raspberry Pi Imager has the sizes and hashes", tuple(entry[name] for name in names) == expected)
    check("and the name, address, date and devices", entry["url"].endswith(compressed.name) and entry["name"] and
          re.fullmatch(r"\d{4}-\d\d-\d\d", entry["release_date"]) and entry["devices"] == ["pi3-64bit", "pi4-64bit"])


def check_block_map(image, compressed, scratch):
    block_map, copy = image.with_name(image.name + ".bmap"), scratch / "copy.img"
    blocks, size = mapped_blocks(block_map)
    data = sum(last - first + 1 for first, last in blocks) * size
    print(f"      {data / 1e6:.0f} MB are written to a card, {compressed.stat().st_size / 1e6:.0f} MB compressed")
    check("at most 700 MB are written to a card", data <= LARGEST)
    check("bmaptool writes the same image", succeeds("bmaptool", "copy", "--bmap", block_map, compressed, copy) and
          sha256(copy) == sha256(image))
    with open(copy, "r+b") as file:
        file.seek(blocks[-1][0] * size)
        file.write(b"x")
    check("bmaptool refuses an image with another byte",
          not succeeds("bmaptool", "copy", "--bmap", block_map, copy, scratch / "2.img"))
    card = Card.flashed(image, scratch / "used-card.img")
    check("slot B is empty there", not any(
        card.read(part.offset, 4096).strip(b"\0") for part in (card.slots["B"].root, card.slots["B"].kernel)))
    check("the state of the slots is there", card.slots_state() == Card(image).slots_state())
    check("on an SD card that had other contents, the root is the same", card.root_hash() == Card(image).root_hash())
    parts = [("FAT", card.fat, ["fsck.vfat", "-n"]), ("kernel", card.slots["A"].kernel, ["fsck.vfat", "-n"]),
             ("state", card.state, ["e2fsck", "-fn"])]
    for name, part, command in parts:
        card.copy(part, copy)
        check(f"and the file system of the {name} has no errors", succeeds(*command, copy))


def check_packages(image, card):
    listed = [tuple(line.split()) for line in beside(image, ".packages").read_text().splitlines()]
    status = card.root_file("/var/lib/dpkg/status").decode()
    installed = {
        tuple(re.search(rf"^{field}: (.*)$", entry, re.M)[1] for field in ("Package", "Version"))
        for entry in status.strip().split("\n\n") if "Status: install ok installed" in entry}
    check("the list has each installed package, with its version", {entry[:2] for entry in listed} == installed)
    check("and the hashes of their files", all(re.fullmatch(r"[0-9a-f]{64}", entry[2]) for entry in listed))
    document = json.loads(beside(image, ".spdx.json").read_text())
    packages = {package["SPDXID"]: package for package in document["packages"]}
    check("the SPDX document is of version 2.3, and its identifiers are unique",
          document["spdxVersion"] == "SPDX-2.3" and len(packages) == len(document["packages"]))
    found = {
        (package["name"], package["versionInfo"], package["checksums"][0]["checksumValue"])
        for package in packages.values() if "checksums" in package}
    check("it has the same packages and hashes", found == set(listed))
    related = {kind: {relation["relatedSpdxElement"] for relation in document["relationships"]
                      if relation["relationshipType"] == kind} for kind in ("DESCRIBES", "CONTAINS", "STATIC_LINK")}
    contained = {name for name, package in packages.items() if "checksums" in package}
    check("each is contained in the image", related["CONTAINS"] == contained and
          related["STATIC_LINK"] == set(packages) - contained - related["DESCRIBES"])
    linked = {packages[name]["name"]: packages[name] for name in related["STATIC_LINK"]}
    check("the Swift packages of the token's programs are there, with their revisions",
          "swift-argument-parser" in linked and "swift-nio" not in linked and
          all(re.fullmatch(r"git\+https://[^@ ]+\.git@[0-9a-f]{40}", package["downloadLocation"]) for package in linked.values()))


def check_absences(card):
    names = card.root_names()
    check("the list of the root's files is complete", "squashfs-root/usr/bin/approval-token\n" in names)
    for secret in ("credential.secret", "device-secret", "vault.sqlite3", "random-seed", "ssh_host_"):
        check(f"there is no {secret}", not re.search(rf"/{secret}[^/]*$", names, re.M))
    check("the machine id is empty", card.root_file("/etc/machine-id") == b"")
    passwords = [line.split(":")[1] for line in card.root_file("/etc/shadow").decode().splitlines()]
    check("no user has a password", all(re.fullmatch(r"[!*]+", password) for password in passwords))
    check("there is no path of the machine that made the image", "copy:" not in card.root_file("/etc/apt/sources.list").decode())


def check_devices(card):
    names = card.root_names()
    modules = card.root_file("/etc/modprobe.d/approval-token-image.conf").decode().splitlines()
    check("no keyboard reaches a console", "blacklist usbhid" in modules)
    check("no storage on USB is taken for the SD card",
          {f"install {name} /bin/false" for name in ("usb-storage", "rtsx_usb", "ushc", "vub300")} <= set(modules))
    # Where usbhid is loaded all the same: also from the initramfs, which has it.
    quirks = "/usr/lib/modprobe.d/approval-token.conf"
    early = set(initramfs_names(card.slot_file("initrd.img")))
    check("the keyboard driver has the options of the package",
          card.root_file(quirks) == (REPOSITORY / "udev/approval-token.conf").read_bytes())
    check("also in the initramfs", {quirks.lstrip("/"), "etc/modprobe.d/approval-token-image.conf"} <= early and
          any(name.endswith("/usbhid.ko.xz") for name in early))
    check("nothing swaps", " swap " not in card.root_file("/etc/fstab").decode() and
          not re.search(r"\.swap$|/(systemd-zram-generator|zram-generator\.conf|zramswap|dphys-swapfile)", names, re.M))
    check("there is no SSH server", "/usr/sbin/sshd\n" not in names)


def check_clock(card):
    names, settings = card.root_names(), card.root_file("/etc/chrony/chrony.conf").decode().splitlines()
    check("chrony starts with the system", "/multi-user.target.wants/chrony.service" in names)
    authenticated = [line for line in settings if line.startswith("server ") and {"nts", "trust", "prefer"} <= set(line.split())]
    check("it prefers three servers with NTS", len(authenticated) == 3)
    check("it keeps the time of the last start", "-s" in card.root_file("/etc/default/chrony").decode().split('"')[1].split())


def check_wording(card):
    (library,) = re.findall(r"squashfs-root(/\S*/librnp\.so\.\d+\.\d+\S*)$", card.root_names(), re.M)
    check("librnp has the message that the boots look for", MESSAGE_OF_LIBRNP.encode() in card.root_file(library))


def main():
    image, scratch = map(pathlib.Path, sys.argv[1:])
    compressed, card = image.with_name(image.name + ".xz"), Card(image)
    print("the image")
    check_files(image, compressed)
    check_block_map(image, compressed, scratch)
    check_packages(image, card)
    check_absences(card)
    check_devices(card)
    check_clock(card)
    check_wording(card)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
