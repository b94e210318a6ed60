// SPDX-License-Identifier: Apache-2.0
import CCards
import CReaderKey
import Testing

/// CTAP2 over NFC, in C, with a card that answers as the test says.
@Suite("Messages to a security key over NFC", .timeLimit(.minutes(1))) struct CTAPNFCTests {
  private final class Card {
    var commands: [[UInt8]] = []
    /// The last answer is repeated.
    var answers: [[UInt8]]
    var isCanceled = false
    init(_ answers: [[UInt8]]) { self.answers = answers }
  }

  /// - Returns: the reply; nil for an error.
  private func call(_ message: [UInt8], _ card: Card, capacity: Int = 2048) -> [UInt8]? {
    var key = ctap_nfc()
    key.link.context = Unmanaged.passUnretained(card).toOpaque()
    key.link.transmit = { context, command, size, answer, capacity in
      guard let context, let answer else { return -1 }
      let card = Unmanaged<Card>.fromOpaque(context).takeUnretainedValue()
      card.commands.append(Array(UnsafeBufferPointer(start: command, count: size)))
      let bytes = card.answers.count > 1 ? card.answers.removeFirst() : card.answers[0]
      for (index, byte) in bytes.prefix(capacity).enumerated() { answer[index] = byte }
      return Int32(bytes.count)
    }
    key.context = key.link.context
    key.wait = { context in context.map { Unmanaged<Card>.fromOpaque($0).takeUnretainedValue().isCanceled } ?? true }
    var reply = [UInt8](repeating: 0xEE, count: capacity)
    let size = ctap_nfc_call(&key, message, message.count, &reply, capacity)
    return size < 0 ? nil : Array(reply.prefix(Int(size)))
  }

  @Test("A message of more than 255 bytes is sent in parts", arguments: [1, 255, 256, 510, 700]) func parts(size: Int) {
    let message = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
    let number = (size + 254) / 255
    let card = Card([[UInt8]](repeating: [0x90, 0x00], count: number - 1) + [[7, 0x90, 0x00]])
    #expect(call(message, card) == [7])
    #expect(card.commands.count == number)
    #expect(card.commands.map { $0[0] } == [UInt8](repeating: 0x90, count: number - 1) + [0x80])
    #expect(card.commands.allSatisfy { $0[1...3] == [0x10, 0x80, 0x00] })
    #expect(card.commands.flatMap { $0.dropFirst(5).prefix(Int($0[4])) } == message)
    #expect(card.commands.last?.count == 6 + (size - 1) % 255 + 1)
  }

  @Test("The rest of a reply is fetched; a key that asks for time is asked again") func restOfReply() {
    let card = Card([[2, 0x91, 0x00], [1, 2, 0x61, 0x02], [3, 4, 0x61, 0x01], [5, 0x90, 0x00]])
    #expect(call([4], card) == [1, 2, 3, 4, 5])
    #expect(
      card.commands == [
        [0x80, 0x10, 0x80, 0, 1, 4, 0], [0x80, 0x11, 0, 0, 0], [0x80, 0xC0, 0, 0, 2], [0x80, 0xC0, 0, 0, 1],
      ])
  }

  @Test("A cancellation is sent to a key that asks for time") func cancellation() {
    let card = Card([[2, 0x91, 0x00], [0x2D, 0x90, 0x00]])
    card.isCanceled = true
    #expect(call([1], card) == [0x2D])
    #expect(card.commands.last == [0x80, 0x11, 0x11, 0, 0])
  }

  @Test(
    "A card that never ends, or answers with what is no reply, gives an error",
    arguments: [
      [[2, 0x91, 0x00]], [[0x61, 0x00]], [[UInt8](repeating: 1, count: 256) + [0x61, 0x00]], [[]], [[0x90]],
      [[0x90, 0x00]], [[0x6D, 0x00]], [[1, 0x00, 0x00]], [[UInt8](repeating: 1, count: 70_000)],
    ] as [[[UInt8]]])
  func wrong(answers: [[UInt8]]) {
    let card = Card(answers)
    #expect(call([1], card) == nil)
    #expect(card.commands.count <= Int(ctap_nfc_most_waits) + 1)
  }

  @Test("A reply may fill the buffer, and not more") func fills() {
    let parts: [[UInt8]] = [[UInt8](repeating: 1, count: 10) + [0x61, 1], [2, 0x90, 0x00]]
    #expect(call([1], Card(parts), capacity: 11)?.count == 11)
    #expect(call([1], Card(parts), capacity: 10) == nil)
  }

  @Test("A key that does not take the parts of a message gets no more of them") func refusesParts() {
    for status: [UInt8] in [[0x68, 0x84], [1, 0x90, 0x00]] {
      let card = Card([status])
      #expect(call([UInt8](repeating: 1, count: 600), card) == nil)
      #expect(card.commands.count == 1)
    }
  }
}
