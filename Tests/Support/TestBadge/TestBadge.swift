// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Synchronization

/// A PIV card with a P-256 key in slot 9E, in a slot of a virtual reader. It is inserted as long as it is connected.
package final class TestBadge: Sendable {
  /// What is wrong with it.
  package enum Behavior: Sendable {
    case right
    /// Signs with another key than that of its certificate.
    case signsWithAnotherKey
    case isNoPIVCard, hasNoCertificate
    /// Its certificate is compressed (GZIP).
    case hasCompressedCertificate
    /// Its reply ends early.
    case endsEarly
    /// Its reply is longer than any that is right.
    case neverEnds
    /// Refuses to sign.
    case refuses
    /// Is pulled out while it signs.
    case isPulledOut
    /// Never answers the command to sign.
    case hangs
  }

  package let key: P256PrivateKey
  private let otherKey: P256PrivateKey
  private let behavior: Behavior
  private let card = VirtualCard()
  /// The parts of a reply that were not sent yet.
  private let rest = Mutex<[UInt8]>([])
  private let performed = Mutex(0)

  /// The number of commands so far. What pcscd itself asks is none.
  package var commands: Int { performed.withLock { $0 } }

  package init(_ behavior: Behavior = .right, key: P256PrivateKey? = nil) throws {
    self.behavior = behavior
    self.key = try key ?? P256PrivateKey()
    otherKey = try P256PrivateKey()
  }

  /// Has no effect while it is inserted.
  /// - Parameter slot: 0 or 1.
  package func insert(into reader: TestPCSC, slot: UInt16 = 0) {
    guard !card.isInserted else { return }
    rest.withLock { $0 = [] }
    card.insert(into: reader, slot: slot) { [self] command, _ in perform(command) }
  }

  package func remove() { card.remove() }

  /// Waits until pcscd counts the inserted badge, at most 60 s.
  package func untilCounted() async throws { try await card.untilCounted() }

  // MARK: PIV (NIST SP 800-73-4)

  /// - Returns: nil for no answer.
  private func perform(_ command: [UInt8]) -> [UInt8]? {
    performed.withLock { $0 += 1 }
    switch command.count > 4 ? command[1] : 0 {
    case 0xA4: return behavior.isPIV ? [0x90, 0x00] : [0x6A, 0x82]
    case 0xC0: break
    case 0xCB:
      guard let certificate = certificate() else { return [0x6A, 0x82] }
      rest.withLock { $0 = certificate }
    case 0x87:
      guard let signature = signature(over: Array(command.suffix(33).prefix(32))) else { return nil }
      if signature.isEmpty { return [0x69, 0x82] }
      rest.withLock { $0 = signature }
    default: return [0x6D, 0x00]
    }
    return rest.withLock { rest in
      let part = rest.prefix(256)
      rest = Array(rest.dropFirst(256))
      return part + (rest.isEmpty ? [0x90, 0x00] : [0x61, UInt8(min(255, rest.count))])
    }
  }

  private func certificate() -> [UInt8]? {
    if case .hasNoCertificate = behavior { return nil }
    var isCompressed = false
    if case .hasCompressedCertificate = behavior { isCompressed = true }
    let inner = DER.object(0x70, DER.certificate(of: key.publicKey)) + [0x71, 1, isCompressed ? 1 : 0, 0xFE, 0]
    return DER.object(0x53, inner)
  }

  /// - Returns: nil for no answer; empty for a refusal.
  private func signature(over digest: [UInt8]) -> [UInt8]? {
    var signer = key
    switch behavior {
    case .hangs: return nil
    case .isPulledOut:
      remove()
      return nil
    case .refuses: return []
    case .neverEnds: return [UInt8](repeating: 0x7C, count: 20_000)
    case .signsWithAnotherKey: signer = otherKey
    default: break
    }
    guard let signature = try? signer.derSignature(ofDigest: digest) else { return [] }
    let reply = DER.object(0x7C, DER.object(0x82, signature))
    if case .endsEarly = behavior { return Array(reply.prefix(10)) }
    return reply
  }
}

extension TestBadge.Behavior {
  fileprivate var isPIV: Bool { if case .isNoPIVCard = self { false } else { true } }
}

/// The part of DER that a certificate needs.
enum DER {
  static func object(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
    switch content.count {
    case ..<128: [tag, UInt8(content.count)] + content
    case ..<256: [tag, 0x81, UInt8(content.count)] + content
    default: [tag, 0x82, UInt8(content.count >> 8), UInt8(content.count & 255)] + content
    }
  }

  /// A certificate of X.509 whose signature is not one: it is not verified.
  static func certificate(of key: P256PublicKey) -> [UInt8] {
    // ecdsa-with-SHA256
    let algorithm = object(0x30, [0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02])
    let name = object(0x30, [])
    let validity = object(
      0x30, object(0x17, Array("200101000000Z".utf8)) + object(0x17, Array("400101000000Z".utf8)))
    let contents =
      object(0xA0, [0x02, 1, 2]) + [0x02, 1, 5] + algorithm + name + validity + name + key.subjectPublicKeyInfo
    return object(0x30, object(0x30, contents) + algorithm + object(0x03, [0, 0x30, 6, 2, 1, 1, 2, 1, 1]))
  }
}
