// SPDX-License-Identifier: Apache-2.0
import Glibc
import Secrets
import Testing

/// Serialized: the kernel's description of the process's memory is read line by line.
@Suite("Secret bytes", .serialized, .timeLimit(.minutes(5))) struct SecretBytesTests {
  private struct RollbackError: Error, Equatable {}

  @Test("Have the written contents and length", arguments: [0, 1, 32, 4_095, 4_096, 4_097, 20_000])
  func haveTheWrittenContentsAndLength(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let copied = SecretBytes(copying: bytes)
    let filled = SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) in
      #expect(target.count == count)
      #expect(target.allSatisfy { $0 == 0 })
      for index in bytes.indices { target[index] = bytes[index] }
    }
    for secret in [copied, filled] {
      #expect(secret.count == count)
      #expect(secret.withExposedSecret { Array($0) } == bytes)
    }
  }

  @Test(
    "Are equal only if every byte is equal",
    arguments: [
      ([], [], true), ([1, 2, 3], [1, 2, 3], true), ([1, 2, 3], [1, 2], false), ([1, 2], [1, 2, 3], false),
      ([], [0], false), ([1, 2, 3], [0, 2, 3], false), ([1, 2, 3], [1, 2, 131], false), ([0, 0], [0, 0], true),
    ] as [([UInt8], [UInt8], Bool)])
  func areEqualOnlyIfEveryByteIsEqual(one: [UInt8], other: [UInt8], areEqual: Bool) {
    #expect(SecretBytes.constantTimeEqual(SecretBytes(copying: one), SecretBytes(copying: other)) == areEqual)
  }

  @Test("Rethrow errors of the closures that fill and read them") func rethrowErrorsOfTheClosuresThatFillAndReadThem() {
    #expect(throws: RollbackError()) {
      try SecretBytes(count: 32) { (_: UnsafeMutableRawBufferPointer) throws(RollbackError) in throw RollbackError() }
    }
    let secret = SecretBytes(copying: [1])
    #expect(throws: RollbackError()) {
      try secret.withExposedSecret { (_) throws(RollbackError) in throw RollbackError() }
    }
  }

  @Test("Have no description") func haveNoDescription() {
    let secret = SecretBytes(copying: Array("correct horse".utf8))
    var dumped = ""
    dump(secret, to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), dumped] {
      #expect(!text.contains("correct") && !text.contains("99, 111") && !text.contains("636f"))
    }
  }

  @Test("Are locked in memory and left out of core dumps, every page", arguments: [1, 4_096, 10_000])
  func areLockedInMemoryAndLeftOutOfCoreDumpsEveryPage(count: Int) throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit)
    try #require(limit.rlim_cur >= 1 << 20, "locking needs RLIMIT_MEMLOCK of 1 MiB, here it is \(limit.rlim_cur)")
    let secret = SecretBytes(copying: [UInt8](repeating: 1, count: count))
    let (first, last) = secret.withExposedSecret { (UInt(bitPattern: $0.baseAddress), $0.count - 1) }
    for address in [first, first + UInt(last)] {
      let flags = try #require(memoryFlags(at: address))
      #expect(flags.contains("lo"), "locked: \(flags)")
      #expect(flags.contains("dd"), "not dumped: \(flags)")
    }
  }

  @Test("Share no page with another secret") func shareNoPageWithAnotherSecret() {
    let secrets = (0..<8).map { SecretBytes(copying: [UInt8($0)]) }
    let pages = secrets.map { $0.withExposedSecret { UInt(bitPattern: $0.baseAddress) / UInt(getpagesize()) } }
    #expect(Set(pages).count == 8)
  }

  /// The kernel zeroes a page before it is used again, so the zeroing itself cannot be observed here. The test observes
  /// that the page is unmapped, and so is no longer in this process.
  @Test("Are unmapped with their last reference") func areUnmappedWithTheirLastReference() {
    var secret: SecretBytes? = SecretBytes(copying: [UInt8](repeating: 0x5A, count: 3 << 20))
    let middle = secret!.withExposedSecret { UInt(bitPattern: $0.baseAddress) + 1 << 20 }
    #expect(memoryFlags(at: middle)?.contains("dd") == true)
    secret = nil
    #expect(memoryFlags(at: middle)?.contains("dd") != true)
  }

  @Test("In ordinary memory are zeroed on request") func inOrdinaryMemoryAreZeroedOnRequest() {
    var bytes: [UInt8] = [1, 2, 3]
    cleanse(&bytes)
    #expect(bytes == [0, 0, 0])
    var none: [UInt8] = []
    cleanse(&none)
    #expect(none == [])
  }
}

/// The `VmFlags` of the mapping that contains this address (proc(5), smaps); nil if there is none.
private func memoryFlags(at address: UInt) -> Set<String>? {
  guard let file = fopen("/proc/self/smaps", "r") else { return nil }
  defer { fclose(file) }
  var line = [CChar](repeating: 0, count: 8192)
  var isInside = false
  while fgets(&line, Int32(line.count), file) != nil {
    let text = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    let words = text.split { $0 == " " || $0 == "\n" }
    let range = words[0].split(separator: "-").map { UInt($0, radix: 16) }
    if range.count == 2, let start = range[0], let end = range[1] { isInside = (start..<end).contains(address) }
    if isInside, words[0] == "VmFlags:" { return Set(words.dropFirst().map(String.init)) }
  }
  return nil
}
