# SPDX-License-Identifier: Apache-2.0
"""Writes the block map of an image: which blocks of a card are to be written (bmaptool's format, version 2.0).

usage: block_map.py IMAGE

All blocks are, except those in no partition, the free clusters of FAT partitions, and in the slots what follows the root or is
empty. It does not matter what these contain. Other blocks of zeros are listed: otherwise the former contents of the SD card
would stay there.
"""
import hashlib
import os
import struct
import sys

BLOCK = 4096
FAT32_LBA, EXTENDED = 0x0C, (0x05, 0x0F)
# An empty partition begins with zeros, so that a former file system is not found there.
BEGINNING = 64 * 1024


def entries(image, offset):
    """(type, offset, size) of the four entries in the master boot record, or in one of an extended partition, in bytes."""
    image.seek(offset)
    record = image.read(512)
    for number in range(4):
        entry = record[446 + 16 * number : 462 + 16 * number]
        start, sectors = struct.unpack("<II", entry[8:])
        if entry[4]:
            yield entry[4], 512 * start, 512 * sectors


def partitions(image):
    """(type, offset, size) of each partition, and of the records of the extended one, whose type is None."""
    for kind, offset, size in entries(image, 0):
        if kind not in EXTENDED:
            yield kind, offset, size
            continue
        record = offset
        while record is not None:
            yield None, record, 512
            following = None
            for inner, start, length in entries(image, record):
                if inner in EXTENDED:
                    following = offset + start
                else:
                    yield inner, record + start, length
            record = following


def used_in_fat(image, offset):
    """(begin, end) of the parts in use of a FAT32 file system: its tables, and the clusters that are not free."""
    image.seek(offset)
    sector = image.read(512)
    (sector_size, per_cluster, reserved, copies) = struct.unpack_from("<HBHB", sector, 11)
    (table_sectors,) = struct.unpack_from("<I", sector, 36)
    table, data = offset + reserved * sector_size, offset + (reserved + copies * table_sectors) * sector_size
    yield offset, data
    image.seek(table)
    entries = struct.unpack(f"<{table_sectors * sector_size // 4}I", image.read(table_sectors * sector_size))
    size = per_cluster * sector_size
    for number, value in enumerate(entries):
        # The first two entries have no clusters.
        if number >= 2 and value & 0x0FFFFFFF:
            yield data + (number - 2) * size, data + (number - 1) * size


def used(image, kind, offset, size):
    """(begin, end) of the parts in use of a partition."""
    image.seek(offset)
    beginning = image.read(BEGINNING)
    if not beginning.strip(b"\0"):
        yield offset, offset + min(size, BEGINNING)
    elif kind == FAT32_LBA:
        yield from used_in_fat(image, offset)
    elif beginning.startswith(b"hsqs"):
        yield offset, offset + struct.unpack_from("<Q", beginning, 40)[0]
    else:
        yield offset, offset + size


def ranges(image):
    """(first, last) of the blocks to be written, in order, the last included."""
    table = list(partitions(image))
    # Before the first partition, there is the state of the slots.
    parts = [(0, min(offset for _, offset, _ in table))]
    for kind, offset, size in table:
        parts += used(image, kind, offset, size)
    found = []
    for begin, end in sorted(parts):
        first, last = begin // BLOCK, (end - 1) // BLOCK
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(last, found[-1][1])
        else:
            found.append([first, last])
    return found


def checksum(image, first, last):
    image.seek(first * BLOCK)
    digest = hashlib.sha256()
    for _ in range(first, last + 1):
        digest.update(image.read(BLOCK))
    return digest.hexdigest()


def block_map(path):
    size = os.path.getsize(path)
    with open(path, "rb") as image:
        found = ranges(image)
        lines = [
            f'    <Range chksum="{checksum(image, first, last)}"> {first}-{last} </Range>' for first, last in found]
    mapped = sum(last - first + 1 for first, last in found)
    own = "0" * 64
    text = "\n".join([
        '<?xml version="1.0" ?>', '<bmap version="2.0">', f"  <ImageSize> {size} </ImageSize>",
        f"  <BlockSize> {BLOCK} </BlockSize>", f"  <BlocksCount> {-(-size // BLOCK)} </BlocksCount>",
        f"  <MappedBlocksCount> {mapped} </MappedBlocksCount>", "  <ChecksumType> sha256 </ChecksumType>",
        f"  <BmapFileChecksum> {own} </BmapFileChecksum>", "  <BlockMap>", *lines, "  </BlockMap>", "</bmap>", ""])
    # The checksum of this file with zeros in its place.
    return text.replace(own, hashlib.sha256(text.encode()).hexdigest(), 1)


if __name__ == "__main__":
    sys.stdout.write(block_map(sys.argv[1]))
