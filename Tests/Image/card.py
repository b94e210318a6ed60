# SPDX-License-Identifier: Apache-2.0
"""The image, on an SD card that had other contents, and its partitions as another computer sees them."""
import hashlib
import re
import struct
import subprocess
import zlib


EXTENDED = 0x0F
# The two copies of the state of the slots, before the first partition.
COPIES, COPY_SIZE = (1 << 20, 2 << 20), 4096


class Partition:
    def __init__(self, entry, base):
        self.is_bootable, self.kind = entry[0] == 0x80, entry[4]
        self.offset, self.size = (512 * number for number in struct.unpack("<II", entry[8:16]))
        self.offset += base


class Slot:
    def __init__(self, root, kernel):
        self.root, self.kernel = root, kernel


def states_of(copies):
    """The variables of each valid copy of the state of the slots, the one that counts last."""
    valid = []
    for copy in copies:
        if struct.unpack_from("<I", copy)[0] == zlib.crc32(copy[4:]):
            lines = copy[4:].split(b"\0\0")[0].decode().split("\0")
            valid.append(dict(line.split("=", 1) for line in lines))
    return sorted(valid, key=lambda state: int(state["BOOT_SEQUENCE"], 16))


def mapped_blocks(block_map):
    """(first, last) of the blocks that a block map lists, and the size of a block."""
    text = block_map.read_text()
    size = int(re.search(r"<BlockSize> (\d+) ", text)[1])
    return [(int(first), int(last)) for first, last in re.findall(r"> (\d+)-(\d+) </Range>", text)], size


class Card:
    def __init__(self, path):
        self.path = path
        record = self.record(0)
        (self.signature,) = struct.unpack_from("<I", record, 440)
        self.fat, root_a, root_b, extended = [Partition(record[446 + 16 * n : 462 + 16 * n], 0) for n in range(4)]
        if extended.kind != EXTENDED:
            raise RuntimeError("the fourth partition is not an extended one")
        inner, place = [], extended.offset
        for _ in range(3):
            record = self.record(place)
            inner.append(Partition(record[446:462], place))
            place = Partition(record[462:478], extended.offset).offset
        self.slots = {"A": Slot(root_a, inner[0]), "B": Slot(root_b, inner[1])}
        self.state = inner[2]

    def record(self, offset):
        record = self.read(offset, 512)
        if record[510:] != b"\x55\xaa":
            raise RuntimeError("the SD card has no master boot record, or no record of an extended partition")
        return record

    def read(self, offset, size):
        with open(self.path, "rb") as card:
            card.seek(offset)
            return card.read(size)

    def copy(self, part, path):
        """Copies a partition to a file."""
        path.write_bytes(self.read(part.offset, part.size))

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

    def mtools(self, command, *arguments, text=None, part=None):
        return subprocess.run(
            [command, "-i", f"{self.path}@@{(part or self.fat).offset}", *arguments], check=True, capture_output=True, input=text
        ).stdout

    def names(self):
        """The names in the FAT partition."""
        return [name.removeprefix("::/") for name in self.mtools("mdir", "-b", "::").decode().split()]

    def put(self, name, text):
        self.mtools("mcopy", "-o", "-", f"::{name}", text=text.encode())

    def get(self, name):
        return self.mtools("mcopy", f"::{name}", "-")

    def put_file(self, name, path):
        self.mtools("mcopy", "-o", path, f"::{name}")

    def fat_bytes(self):
        return self.read(self.fat.offset, self.fat.size)

    def slot_file(self, name, slot="A"):
        """A file that U-Boot reads from a slot."""
        return self.mtools("mcopy", f"::{name}", "-", part=self.slots[slot].kernel)

    def slots_state(self):
        """The valid copies of the state of the slots, the one that counts last."""
        return states_of(self.read(place, COPY_SIZE) for place in COPIES)

    def root_hash(self, slot="A"):
        """SHA-256 of the file system of a root."""
        root, digest = self.slots[slot].root, hashlib.sha256()
        (size,) = struct.unpack_from("<Q", self.read(root.offset, 64), 40)
        with open(self.path, "rb") as card:
            card.seek(root.offset)
            while size > 0:
                digest.update(card.read(min(size, 1 << 20)))
                size -= 1 << 20
        return digest.hexdigest()

    def root_names(self, slot="A"):
        return subprocess.run(
            ["unsquashfs", "-offset", str(self.slots[slot].root.offset), "-lls", self.path], check=True, capture_output=True,
            text=True).stdout

    def root_file(self, path, slot="A"):
        return subprocess.run(
            ["unsquashfs", "-offset", str(self.slots[slot].root.offset), "-cat", self.path, path.lstrip("/")], check=True,
            capture_output=True).stdout
