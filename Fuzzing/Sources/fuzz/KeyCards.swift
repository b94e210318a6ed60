// SPDX-License-Identifier: Apache-2.0
import CCards
import CReaderKey

/// What a security key in a card reader answers to CTAP2 over NFC, in C: for each answer, its size in two bytes.
func readKeyCard(_ bytes: [UInt8]) {
  var rest = bytes[...]
  withUnsafeMutablePointer(to: &rest) { rest in
    var key = ctap_nfc()
    key.link.context = UnsafeMutableRawPointer(rest)
    key.link.transmit = { context, _, _, answer, capacity in
      guard let rest = context?.assumingMemoryBound(to: ArraySlice<UInt8>.self), let answer,
        let high = rest.pointee.popFirst(), let low = rest.pointee.popFirst()
      else { return 0 }
      let part = rest.pointee.prefix(min(Int(high) << 8 | Int(low), capacity))
      rest.pointee = rest.pointee.dropFirst(part.count)
      for (index, byte) in part.enumerated() { answer[index] = byte }
      return Int32(part.count)
    }
    key.wait = { _ in false }
    guard ctap_nfc_select(&key) else { return }
    // Two commands. A reply of exactly the largest size, so that a write behind it is found.
    let message = [UInt8](repeating: 1, count: 300)
    let reply = UnsafeMutablePointer<UInt8>.allocate(capacity: 2048)
    defer { reply.deallocate() }
    let size = ctap_nfc_call(&key, message, message.count, reply, 2048)
    require(size == -1 || (1...2048).contains(size), "a reply has a size")
  }
}
