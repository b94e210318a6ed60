// SPDX-License-Identifier: Apache-2.0
import OpenPGP
import Testing

@Suite(.timeLimit(.minutes(5))) struct TamperingTests {
  private let one = try! OpenPGPKey.generate(userID: "one")
  private let other = try! OpenPGPKey.generate(userID: "other")
  private let plaintext = Array("approve transfer of 10".utf8)

  @Test("No changed bit of the encrypted packet gets through") func noChangedBitOfTheEncryptedPacketGetsThrough() throws
  {
    let sealed = try one.seal(plaintext, to: other.certificate)
    forEachBit(of: sealed, in: sealed[encryptedPacket(sealed)...].indices) { changed, what in
      expectRefusal(of: changed, what)
    }
  }

  /// The packet of the session key is not protected. A few of its bits have no effect (the bit count of a number, the
  /// top bit of a Curve25519 point). A change of any other bit never gives another plaintext.
  @Test("No changed bit of the session key makes another plaintext")
  func noChangedBitOfTheSessionKeyMakesAnotherPlaintext() throws {
    let sealed = try one.seal(plaintext, to: other.certificate)
    var opened = 0
    forEachBit(of: sealed, in: 0..<encryptedPacket(sealed)) { changed, what in
      guard let released = try? other.open(changed, from: one.certificate) else { return }
      #expect(released == plaintext, "\(what)")
      opened += 1
    }
    #expect(opened <= 4)
  }

  /// The position of the second packet: the first has a one-octet length.
  private func encryptedPacket(_ sealed: [UInt8]) -> Int { 2 + Int(sealed[1]) }

  private func forEachBit(of message: [UInt8], in range: Range<Int>, _ body: ([UInt8], String) -> Void) {
    for position in range {
      for bit in 0..<8 {
        var changed = message
        changed[position] ^= 1 << bit
        body(changed, "bit \(bit) of byte \(position)")
      }
    }
  }

  private func expectRefusal(of message: [UInt8], _ what: String) {
    do {
      _ = try other.open(message, from: one.certificate)
      Issue.record("\(what): opened")
    } catch .libraryFailure(let text) {
      Issue.record("\(what): blamed on the library: \(text)")
    } catch {}
  }

  @Test("No shortened or lengthened message gets through") func noShortenedOrLengthenedMessageGetsThrough() throws {
    let sealed = try one.seal(plaintext, to: other.certificate)
    for length in sealed.indices { expectRefusal(of: Array(sealed[..<length]), "first \(length)") }
    for start in sealed.indices.dropFirst() { expectRefusal(of: Array(sealed[start...]), "from \(start)") }
    for tail in [[0], [0xca, 3, 0x50, 0x47, 0x50], sealed] {
      expectRefusal(of: sealed + tail, "with \(tail.count) more")
    }
  }

  /// With librnp 0.18.0 it would (CVE-2025-13470), but sealing fails there before.
  @Test("A message's session key does not open another message") func aMessagesSessionKeyDoesNotOpenAnotherMessage()
    throws
  {
    let first = try one.seal(plaintext, to: other.certificate)
    let second = try one.seal(plaintext, to: other.certificate)
    expectRefusal(of: Array(first[..<encryptedPacket(first)] + second[encryptedPacket(second)...]), "crossed")
  }
}
