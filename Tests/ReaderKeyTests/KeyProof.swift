// SPDX-License-Identifier: Apache-2.0
import Foundation
import MobileAuth
import Secrets

@testable import AuthenticatorPlugins

/// What `reader-key` gives the server's verifier.
struct KeyProof: Decodable {
  /// In a registration only.
  let publicKey: Data?
  let authenticatorData: Data
  let signature: Data

  enum CodingKeys: String, CodingKey {
    case signature
    case publicKey = "public_key"
    case authenticatorData = "authenticator_data"
  }
}

extension AuthenticatorData {
  func keyProof() throws -> KeyProof {
    try bytes.withExposedSecret { try JSONDecoder().decode(KeyProof.self, from: Data($0)) }
  }
}

extension PluginPatience {
  /// For a program that ends by itself, on a machine that may be busy.
  static let long = PluginPatience(afterAnswer: .seconds(30), beforeKill: .seconds(30))
}

/// A use ended without data.
struct NoDataError: Error {
  let events: [DriverEvent]
}
