// SPDX-License-Identifier: Apache-2.0

/// How an access token was obtained.
package enum AccessTokenOrigin: Sendable, Equatable {
  /// With the device's key alone.
  case device
  /// With an activation code.
  case activation
  case pin
  /// - Parameter authenticator: the identifier of a fingerprint authenticator.
  case biometric(authenticator: String)
  /// - Parameter authenticator: the identifier of a custom authenticator.
  case custom(authenticator: String)

  /// The form in the database.
  package var text: String {
    switch self {
    case .device: "device"
    case .activation: "activation"
    case .pin: "pin"
    case .biometric(let authenticator): "biometric:" + authenticator
    case .custom(let authenticator): "custom:" + authenticator
    }
  }

  /// - Returns: nil for text of another form, such as that of a token of an earlier version of the server.
  package init?(_ text: String) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    switch (parts[0], parts.count) {
    case ("device", 1): self = .device
    case ("activation", 1): self = .activation
    case ("pin", 1): self = .pin
    case ("biometric", 2): self = .biometric(authenticator: parts[1])
    case ("custom", 2): self = .custom(authenticator: parts[1])
    default: return nil
    }
  }

  /// The authentication methods (`amr`): the values of RFC 8176 where it has one, and `custom`. The device proves
  /// possession of its key for every token (`pop`).
  package var methods: [String] {
    switch self {
    case .device: ["pop"]
    case .activation: ["otp", "pop"]
    case .pin: ["pin", "pop"]
    case .biometric: ["fpt", "pop"]
    case .custom: ["custom", "pop"]
    }
  }

  /// The identifier of the authenticator; nil without one.
  package var authenticator: String? {
    switch self {
    case .device, .activation, .pin: nil
    case .biometric(let authenticator), .custom(let authenticator): authenticator
    }
  }
}
