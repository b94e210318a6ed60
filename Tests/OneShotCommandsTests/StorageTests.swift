// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Glibc
import Testing

@testable import OneShotCommands

/// The reports of `doctor` about a state directory that is not writable.
@Suite(.timeLimit(.minutes(5))) struct StorageTests {
  /// The statistics of a file system with enough free space.
  private static var roomy: statvfs {
    var space = statvfs()
    space.f_frsize = 4096
    space.f_bavail = 1 << 20
    space.f_files = 1000
    space.f_favail = 1000
    return space
  }

  @Test("Storage is good with 32 MiB and 16 files free, and bad with less or if read-only")
  func space() {
    #expect(Doctor.check(Self.roomy, in: "/d").verdict == .good)
    var space = Self.roomy
    space.f_bavail = (32 << 20) >> 12
    #expect(Doctor.check(space, in: "/d").verdict == .good)
    space.f_bavail -= 1
    let little = Doctor.check(space, in: "/d")
    #expect(little.verdict == .bad && little.text.contains("31 MiB free") && little.text.contains("free space in /d"))
    space = Self.roomy
    space.f_favail = 15
    #expect(Doctor.check(space, in: "/d").verdict == .bad)
    // No file count, as on btrfs, and a size that overflows.
    space.f_files = 0
    space.f_favail = 0
    space.f_bavail = .max
    space.f_frsize = .max
    #expect(Doctor.check(space, in: "/d").verdict == .good)
    space = Self.roomy
    space.f_flag = UInt(ST_RDONLY)
    let readOnly = Doctor.check(space, in: "/d")
    #expect(readOnly.verdict == .bad && readOnly.text.contains("/d is mounted read-only"))
  }
}
