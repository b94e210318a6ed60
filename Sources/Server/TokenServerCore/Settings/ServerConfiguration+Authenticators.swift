// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

extension ServerConfiguration {
  /// An authenticator that users can register in addition to the PIN.
  package struct Authenticator: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable { case biometric, custom }

    /// How the built-in verifier checks the data of a custom authenticator.
    package enum SignatureScheme: String, Sendable, CaseIterable {
      /// A FIDO2 key.
      case securityKey = "security_key"
      /// A smart card that signs the challenge itself.
      case badge
    }

    package var id: String
    /// For display.
    package var name: String
    package var kind: Kind
    /// For a custom authenticator: the folder with the executables `register` and `authenticate`, which is their
    /// working folder; relative to the server's directory, or absolute.
    package var scripts = ""
    /// For a custom authenticator without scripts: its built-in verifier.
    package var signature: SignatureScheme?
    /// How long a script may run, in seconds.
    package var timeLimitSeconds = 10
    /// The number of consecutive failures of a custom authenticator at which it is deregistered. A biometric
    /// authenticator is deregistered at the first.
    package var maxFailures = 3
    /// The user that runs the scripts; nil for the server's own.
    package var user: String?

    package init(id: String, name: String, kind: Kind) {
      self.id = id
      self.name = name
      self.kind = kind
    }

    package var entryKind: AuthenticatorKind { kind == .biometric ? .biometric : .custom }
  }

  package func authenticator(_ id: String) -> Authenticator? { authenticators.first { $0.id == id } }

  package func isEnabled(_ kind: Authenticator.Kind) -> Bool {
    application.pin && (kind == .biometric ? application.biometric : application.customAuthenticators)
  }

  /// The authenticator, if it can be used now.
  package func offered(_ id: String, kind: Authenticator.Kind) -> Authenticator? {
    authenticator(id).flatMap { $0.kind == kind && isEnabled(kind) ? $0 : nil }
  }
}

extension ApprovalCapabilities {
  /// Whether the device has announced the authenticator.
  package func includes(_ authenticator: ServerConfiguration.Authenticator) -> Bool {
    (authenticator.kind == .biometric ? biometric : custom).contains(authenticator.id)
  }
}
