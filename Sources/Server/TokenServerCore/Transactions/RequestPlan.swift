// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// How a profile is asked for a request of one type.
package struct RequestPlan: Sendable, Equatable {
  package let method: ApprovalRequest.Method
  /// Set if the method needs one; registered for the profile.
  package var authenticator: String?
  /// Whether the PIN can be used instead.
  package var hasFallback = false

  package init(method: ApprovalRequest.Method, authenticator: String? = nil, hasFallback: Bool = false) {
    self.method = method
    self.authenticator = authenticator
    self.hasFallback = hasFallback
  }
}

extension Profile {
  /// How requests of the type can be sent to the user now. A device without the type's authenticator gets the fallback
  /// as the method, so that a device of an earlier version is never asked for a method that it does not know.
  /// - Returns: nil if they cannot.
  package func plan(
    for type: ServerConfiguration.MobileAuthenticationType, _ configuration: ServerConfiguration
  ) -> RequestPlan? {
    guard isEnrolledForPush, !type.requiresDisplay || (capabilities?.display ?? .none) != .none else { return nil }
    switch type.method {
    case .push: return RequestPlan(method: .push)
    case .pushWithPIN: return hasPIN ? RequestPlan(method: .pushWithPIN) : nil
    case .pushWithFingerprint, .pushWithCustomAuthenticator:
      let canFallBack = type.fallsBackToPIN && hasPIN
      if let id = type.authenticator, isRegistered(id, configuration) {
        return RequestPlan(method: type.method, authenticator: id, hasFallback: canFallBack)
      }
      return canFallBack ? RequestPlan(method: .pushWithPIN) : nil
    case .other: return nil
    }
  }

  /// Whether the authenticator is registered for the profile and offered by the configuration.
  package func isRegistered(_ id: String, _ configuration: ServerConfiguration) -> Bool {
    authenticators.contains { $0.id == id && configuration.offered(id, kind: $0.kind) != nil }
  }
}
