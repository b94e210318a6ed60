# SPDX-License-Identifier: Apache-2.0
"""The image, on an SD card that had other contents, and its partitions as another computer sees them."""
import hashlib
import re
import struct
import subprocess


class Partition:
    def __init__(self, entry):
        self.is_bootable, self.kind = entry[0] == 0x80, entry[4]
        self.offset, self.size = (512 * number for number in struct.unpack("<II", entry[8:16]))


def mapped_blocks(block_map):
    """(first, last) of the blocks that a block map lists, and the size of a block."""
    text = block_map.read_text()
    size = int(re.search(r"<BlockSize> (\d+) ", text)[1])
    return [(int(first), int(last)) for first, last in re.findall(r"> (\d+)-(\d+) </Range>", text)], size


class Card:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as card:
            record = card.read(512)
        if record[510:] != b"\x55\xaa":
            raise RuntimeError("the SD card has no master boot record")
        (self.signature,) = struct.unpack_from("<I", record, 440)
        self.fat, self.root, self.state = [Partition(record[446 + 16 * n : 462 + 16 * n]) for n in range(3)]

    @classmethod
    def flashed(cls, image, path):
        """Writes the blocks of the image's block map, and no others."""
        blocks, size = mapped_blocks(image.with_name(image.name + ".bmap"))
        # A card is larger than the image, and QEMU wants a power of two.
        space = 1 << (image.stat().st_size - 1).bit_length()
        with open(image, "rb") as source, open(path, "wb") as card:
            for _ in range(space // (1 << 20)):
                card.write(b"\xff" * (1 << 20))
            for first, last in blocks:
                source.seek(first * size)
                card.seek(first * size)
                for _ in range(first, last + 1):
                    card.write(source.read(size))
        return cls(path)

    def mtools(self, command, *arguments, text=None):
        return subprocess.run(
            [command, "-i", f"{self.path}@@{self.fat.offset}", *arguments], check=True, capture_output=True, input=text
        ).stdout

    def names(self):
        """The names in the FAT partition."""
        return [name.removeprefix("::/") for name in self.mtools("mdir", "-b", "::").decode().split()]

    def put(self, name, text):
        self.mtools("mcopy", "-o", "-", f"::{name}", text=text.encode())

    def get(self, name):
        return self.mtools("mcopy", f"::{name}", "-")

    def fat_bytes(self):
        with open(self.path, "rb") as card:
            card.seek(self.fat.offset)
            return card.read(self.fat.size)

    def boot_files(self, boot):
        """Copies what a board's boot loader would take."""
        boot.mkdir()
        for prefix, target in (("vmlinuz", "kernel"), ("initrd", "initrd"), ("cmdline.txt", "cmdline.txt")):
            (name,) = [name for name in self.names() if name.startswith(prefix)]
            (boot / target).write_bytes(self.get(name))
        return boot

    def root_hash(self):
        """SHA-256 of the root partition."""
        digest = hashlib.sha256()
        with open(self.path, "rb") as card:
            card.seek(self.root.offset)
            for _ in range(self.root.size // (1 << 20)):
                digest.update(card.read(1 << 20))
        return digest.hexdigest()

    def root_names(self):
        return subprocess.run(
            ["unsquashfs", "-offset", str(self.root.offset), "-lls", self.path], check=True, capture_output=True, text=True
        ).stdout

    def root_file(self, path):
        return subprocess.run(
            ["unsquashfs", "-offset", str(self.root.offset), "-cat", self.path, path.lstrip("/")], check=True,
            capture_output=True).stdout
