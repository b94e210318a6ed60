// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
package import TestBadge

/// A security key over NFC (CTAP 2.1, section 11.3): a card in a slot of a virtual reader. It takes commands of at most
/// 255 bytes, and answers with at most 256.
package final class TestKeyCard: Sendable {
  /// What is wrong with this card; what is wrong with its key is `TestSecurityKey.Behavior`.
  package enum Behavior: Sendable {
    case right
    case isNoSecurityKey
    /// Knows U2F only: it refuses the messages of CTAP2.
    case isU2FOnly
    /// Refuses a message in several commands.
    case refusesChains
    /// Says that there is more, and gives nothing.
    case hasMoreOfNothing
    /// Its reply is longer than any that is right.
    case neverEnds
    /// Its reply is no CBOR.
    case talksNonsense
    /// Is pulled out while it signs.
    case isPulledOut
    /// Never answers a message to sign.
    case hangs
  }

  private struct Progress {
    /// The parts of a message so far.
    var message: [UInt8] = []
    /// The parts of the reply that were not sent yet.
    var rest: [UInt8] = []
    /// The commands that were parts of a message, and those that asked for the rest of a reply.
    var chained = 0
    var continued = 0
  }

  private let key: TestSecurityKey
  private let behavior: Behavior
  private let card = VirtualCard()
  private let progress = Mutex(Progress())

  package init(_ behavior: Behavior = .right, of key: TestSecurityKey) {
    self.key = key
    self.behavior = behavior
  }

  package var chained: Int { progress.withLock { $0.chained } }
  package var continued: Int { progress.withLock { $0.continued } }

  /// Has no effect while it is inserted.
  /// - Parameter slot: 0 or 1.
  package func insert(into reader: TestPCSC, slot: UInt16 = 0) {
    guard !card.isInserted else { return }
    progress.withLock { ($0.message, $0.rest) = ([], []) }
    card.insert(into: reader, slot: slot) { [self] in perform($0, $1) }
  }

  package func remove() { card.remove() }

  /// Waits until pcscd counts the inserted card, at most 60 s.
  package func untilCounted() async throws { try await card.untilCounted() }

  /// - Returns: nil for no answer.
  private func perform(_ command: [UInt8], _ reader: VirtualCard.Reader) -> [UInt8]? {
    guard command.count >= 5 else { return [0x67, 0x00] }
    let data = command.dropFirst(5).prefix(Int(command[4]))
    switch (command[0], command[1]) {
    case (0x00, 0xA4):
      if case .isNoSecurityKey = behavior { return [0x6A, 0x82] }
      let isFIDO = Array(data) == [0xA0, 0x00, 0x00, 0x06, 0x47, 0x2F, 0x00, 0x01]
      return isFIDO ? Array("U2F_V2".utf8) + [0x90, 0x00] : [0x6A, 0x82]
    case (0x90, 0x10):
      if case .refusesChains = behavior { return [0x68, 0x84] }
      progress.withLock { progress in
        progress.message += data
        progress.chained += 1
      }
      return [0x90, 0x00]
    case (0x80, 0x10): return answer(data, reader)
    case (0x80, 0xC0):
      progress.withLock { $0.continued += 1 }
      return nextPart()
    default: return [0x6D, 0x00]
    }
  }

  private func answer(_ last: ArraySlice<UInt8>, _ reader: VirtualCard.Reader) -> [UInt8]? {
    let message = progress.withLock { progress in
      defer { progress.message = [] }
      return progress.message + last
    }
    if case .isU2FOnly = behavior { return [0x6D, 0x00] }
    if message.first != 0x04 {
      switch behavior {
      case .hangs: return nil
      case .isPulledOut:
        remove()
        return nil
      case .hasMoreOfNothing: return [0x61, 0x00]
      case .neverEnds: return put([UInt8](repeating: 0, count: 60_000))
      case .talksNonsense: return [0x00, 0xFF, 0xFF, 0x90, 0x00]
      default: break
      }
    }
    guard let reply = key.perform(message, { wait($0, reader) }) else {
      remove()
      return nil
    }
    return put(reply)
  }

  private func put(_ reply: [UInt8]) -> [UInt8] {
    progress.withLock { $0.rest = reply }
    return nextPart()
  }

  private func nextPart() -> [UInt8] {
    if case .hasMoreOfNothing = behavior, progress.withLock({ $0.rest.isEmpty }) { return [0x61, 0x00] }
    return progress.withLock { progress in
      let part = progress.rest.prefix(256)
      progress.rest = Array(progress.rest.dropFirst(256))
      return part
        + (progress.rest.isEmpty ? [0x90, 0x00] : [0x61, UInt8(progress.rest.count > 255 ? 0 : progress.rest.count)])
    }
  }

  /// Says that it waits for a touch, as long as it is asked.
  /// - Returns: false if the call was canceled, or the key was removed.
  private func wait(_ pause: Duration, _ reader: VirtualCard.Reader) -> Bool {
    let end = ContinuousClock.now + pause
    while ContinuousClock.now < end {
      guard let command = reader.exchange([2, 0x91, 0x00]), command.starts(with: [0x80, 0x11]) else { return false }
      guard command[2] != 0x11 else {
        key.noteCancellation()
        return false
      }
    }
    return true
  }
}
