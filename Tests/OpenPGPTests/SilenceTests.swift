// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Testing

@testable import OpenPGP

/// librnp's own messages, which an attacker could cause without end.
@Suite(.timeLimit(.minutes(1)), .serialized) struct SilenceTests {
  /// The stream `stderr`, which Swift does not let tasks read as a variable.
  private var stream: UnsafeMutablePointer<FILE>? {
    dlsym(nil, "stderr")?.assumingMemoryBound(to: UnsafeMutablePointer<FILE>?.self).pointee
  }

  /// What is written to standard error meanwhile, by all threads.
  private func written(_ body: () throws -> Void) throws -> String {
    let file = NSTemporaryDirectory() + "stderr-\(UUID().uuidString)"
    defer { unlink(file) }
    let target = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    let former = dup(STDERR_FILENO)
    defer {
      close(target)
      close(former)
    }
    fflush(stream)
    dup2(target, STDERR_FILENO)
    defer { dup2(former, STDERR_FILENO) }
    try body()
    fflush(stream)
    return try String(contentsOfFile: file, encoding: .utf8)
  }

  private static func isMessage(_ line: Substring) -> Bool {
    line.contains(/^\[[A-Za-z_0-9:~]+\(\) \S+:[0-9]+\]/)
  }

  /// Fails without the replaced stream, and with a stream that drops everything.
  @Test("Nothing of librnp's is written to standard error, and all that others print is") func silence() throws {
    let key = try OpenPGPKey.generate(userID: "ann")
    let other = try OpenPGPKey.generate(userID: "bob")
    let message = try key.seal([1, 2, 3], to: other.certificate)
    let text = try written {
      fputs("before\n[not a message] of librnp\n", stream)
      #expect(throws: OpenPGPError.notForUs) { try key.open(message, from: other.certificate) }
      var damaged = message
      damaged[damaged.count - 30] ^= 1
      #expect(throws: OpenPGPError.self) { try other.open(damaged, from: key.certificate) }
      var certificate = key.certificate.bytes
      certificate[20] ^= 1
      #expect(throws: OpenPGPError.self) { try OpenPGPCertificate(parsing: certificate) }
      // Other tests print to the same stream.
      flockfile(stream)
      defer { funlockfile(stream) }
      fputs("[parse() ./src/lib/x.cpp:7] a message of ", stream)
      fputs("librnp in two parts\n", stream)
      fputs("after, ", stream)
      fputs("in two parts\n", stream)
    }
    let lines = text.split(separator: "\n")
    #expect(!lines.contains(where: Self.isMessage), "\(text)")
    for line in ["before", "[not a message] of librnp", "after, in two parts"] {
      #expect(lines.contains { $0 == line }, "\(text)")
    }
    #expect(!text.contains("a message of") && !text.contains("librnp in two parts"))
  }
}
