# SPDX-License-Identifier: Apache-2.0
"""Updates of the system, which are made from the image."""
import collections
import os
import pathlib
import re
import shutil
import subprocess

from card import Card

MAKE_BUNDLE = pathlib.Path(__file__).parents[2] / "packaging/image/make-bundle"
NEW, BROKEN, PANICKING = "100.1", "100.2", "100.3"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
# `kernel` is the version of its kernel.
Update = collections.namedtuple("Update", "path version kernel")


def zstd(option, data):
    return subprocess.run(["zstd", "-c", option], input=data, check=True, capture_output=True).stdout


def version_of(kernel):
    return re.search(rb"Linux version (\S+) ", kernel)[1].decode()


class Bundles:
    def __init__(self, image, directory, certificate, key):
        self.card, self.directory, self.certificate, self.key = Card(image), directory, certificate, key
        directory.mkdir()
        slot = self.card.slots["A"]
        self.kernel = self.write("kernel", self.card.read(slot.kernel.offset, slot.kernel.size))
        self.version = version_of(self.card.slot_file("vmlinuz"))
        self.root = directory / "root"
        subprocess.run(
            ["unsquashfs", "-quiet", "-no-progress", "-offset", str(slot.root.offset), "-d", self.root, image], check=True,
            stdout=subprocess.DEVNULL)

    def write(self, name, data):
        path = self.directory / name
        path.write_bytes(data)
        return path

    def small(self, name):
        """A file in place of a root or a kernel, for bundles that are refused, or whose root is not read."""
        return self.write(name, os.urandom(1 << 16))

    def put(self, name, data):
        """Replaces a file beside the kernel."""
        subprocess.run(["mcopy", "-o", "-i", self.kernel, "-", f"::{name}"], input=data, check=True)

    def remove_root(self):
        shutil.rmtree(self.root)

    def sign(self, version, root, kernel, name=None, certificate=None, key=None, product=None):
        environment = os.environ | ({"COMPATIBLE": product} if product else {})
        bundle = self.directory / f"{name or version}.raucb"
        subprocess.run(
            [MAKE_BUNDLE, root, kernel, version, certificate or self.certificate, key or self.key, bundle],
            check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return Update(bundle, version, self.version)

    def of_another_key(self):
        key, certificate = self.directory / "other.key", self.directory / "other.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=another", "-keyout", key, "-out",
             certificate], check=True, stderr=subprocess.DEVNULL)
        return self.sign(NEW, self.small("r1"), self.small("k1"), "other-key", certificate, key)

    def of_another_product(self):
        return self.sign(NEW, self.small("r2"), self.small("k2"), "other-product", product="another")

    def of_version(self, version):
        """The system of the image, with another version."""
        (self.root / "usr/share/approval-token/image-version").write_text(version + "\n")
        image = self.directory / "root.img"
        subprocess.run(
            ["mksquashfs", self.root, image, "-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "1",
             "-b", "256K"], check=True, stdout=subprocess.DEVNULL)
        return self.sign(version, image, self.kernel)

    def rename_kernel(self):
        """Gives the kernel another version, of the same length. It finds its modules by it, in the initramfs and in the root."""
        kernel, initramfs = self.card.slot_file("vmlinuz"), self.card.slot_file("initrd.img")
        former, self.version = self.version, self.version[:-2] + "99"
        names = former.encode(), self.version.encode()
        # One archive with modules, which is not compressed, and one that is.
        end = initramfs.index(ZSTANDARD, initramfs.index(b"TRAILER!!!"))
        second = zstd("-9", zstd("-d", initramfs[end:]).replace(*names))
        self.put("vmlinuz", kernel.replace(*names))
        self.put("initrd.img", initramfs[:end].replace(*names) + second)
        modules = self.root / "usr/lib/modules"
        (modules / former).rename(modules / self.version)

    def good(self):
        self.rename_kernel()
        return self.of_version(NEW)

    def given(self, bundle):
        """A bundle that scripts/image has made."""
        done = subprocess.run(
            ["rauc", "--keyring", self.certificate, "info", "--output-format=shell", bundle], check=True, capture_output=True,
            text=True)
        extracted = self.directory / "given"
        subprocess.run(["rauc", "--keyring", self.certificate, "extract", bundle, extracted], check=True, capture_output=True)
        kernel = subprocess.run(
            ["mcopy", "-i", extracted / "kernel.img", "::vmlinuz", "-"], check=True, capture_output=True).stdout
        shutil.rmtree(extracted)
        return Update(bundle, re.search(r"^RAUC_MF_VERSION='?([^'\n]*)", done.stdout, re.M)[1], version_of(kernel))

    def broken(self):
        """Its service does not start."""
        program = self.root / "usr/libexec/approval-token/approval-tokend"
        program.unlink()
        program.write_text("#!/bin/sh\nexit 1\n")
        program.chmod(0o755)
        return self.of_version(BROKEN)

    def panicking(self):
        """Its kernel cannot read the initramfs, and so finds no root."""
        self.put("initrd.img", os.urandom(1 << 20))
        return self.sign(PANICKING, self.small("no-root"), self.kernel)
