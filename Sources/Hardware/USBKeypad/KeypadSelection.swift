// SPDX-License-Identifier: Apache-2.0
/// Selects the keypad among the devices on the bus.
package struct KeypadSelection: Sendable, Equatable {
  package struct Identity: Sendable, Equatable, CustomStringConvertible {
    package let vendor: UInt16
    package let product: UInt16

    package init(vendor: UInt16, product: UInt16) {
      self.vendor = vendor
      self.product = product
    }

    /// Parses the form of lsusb, "1a2c:0e24"; nil for other text.
    package init?(_ text: String) {
      let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map { half in
        half.utf8.count == 4 && half.allSatisfy(\.isHexDigit) ? UInt16(half, radix: 16) : nil
      }
      guard numbers.count == 2, let vendor = numbers[0], let product = numbers[1] else { return nil }
      self.init(vendor: vendor, product: product)
    }

    package var description: String { "\(hexadecimal(vendor)):\(hexadecimal(product))" }
  }

  /// The required vendor and product numbers; nil accepts any boot keyboard that is no security key.
  package var identity: Identity?
  /// The required port in the kernel's form: bus, then ports from the root, for example "1-1.2". Nil accepts any port.
  package var port: String?

  package init(identity: Identity? = nil, port: String? = nil) {
    self.identity = identity
    self.port = port
  }

  /// Whether the text has the form of a port, as in `KeypadDescription.port`.
  package static func isPort(_ text: String) -> Bool {
    let halves = text.split(separator: "-", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return false }
    let ports = halves[1].split(separator: ".", omittingEmptySubsequences: false)
    return ports.count <= 7
      && ([halves[0]] + ports).allSatisfy { number in UInt8(number).map { $0 > 0 && "\($0)" == number } ?? false }
  }

  package func matches(_ keypad: KeypadDescription) -> Bool {
    (identity == nil || identity == keypad.identity) && (port == nil || port == keypad.port)
      // A device with the configured numbers is selected even if it is not a keyboard. The error then says so.
      && (identity != nil || keypad.isKeypad)
  }
}

private func hexadecimal(_ number: UInt16) -> String {
  let digits = String(number, radix: 16)
  return String(repeating: "0", count: 4 - digits.count) + digits
}
