// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import JSONValues
import Secrets

@testable import PrivacyIDEAAdapter

/// Requests and responses of privacyIDEA 3.14 and eduMFA 2.9.5, with keys made for this purpose.
enum WorkedExamples {
  private static let texts: [String: String] = {
    let url = Bundle.module.url(forResource: "worked-examples", withExtension: "json", subdirectory: "Fixtures")!
    return try! JSONDecoder().decode([String: String].self, from: Data(contentsOf: url))
  }()

  static subscript(name: String) -> String { texts[name]! }

  static let key = try! DeviceKey(secret: SecretBytes(copying: bytes(base64: WorkedExamples["deviceKey"])!))
  static let serverKey = try! RSAPublicKey(onTheWire: WorkedExamples["serverKey"])
  static let serial = "PIPU00006D26"

  static let ellipticKey = try! DeviceKey(secret: SecretBytes(copying: bytes(base64: WorkedExamples["ecKey"])!))
  static let ellipticServerKey = try! RSAPublicKey(onTheWire: WorkedExamples["ecServerKey"])

  static func json(_ name: String) -> JSONValue { JSONValue(parsing: Array(self[name].utf8))! }

  /// The names and values of a query or a form.
  static func form(_ name: String) -> [String: String] {
    let items = URLComponents(string: "https://x/?" + self[name])!.queryItems!
    return Dictionary(uniqueKeysWithValues: items.map { ($0.name, $0.value!) })
  }
}
