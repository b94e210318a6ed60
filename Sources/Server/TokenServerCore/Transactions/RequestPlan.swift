// SPDX-License-Identifier: Apache-2.0
package import ReferenceProtocol

/// How a profile is asked for a request of one type.
package struct RequestPlan: Sendable, Equatable {
  package let method: ApprovalRequest.Method
  /// Set if the method needs one; registered for the profile.
  package var authenticator: String?
  /// Other authenticators that are registered for the profile and can be used instead.
  package var alternatives: [ApprovalRequest.Alternative] = []
  /// Whether the PIN can be used instead.
  package var hasFallback = false

  package init(method: ApprovalRequest.Method, authenticator: String? = nil, hasFallback: Bool = false) {
    self.method = method
    self.authenticator = authenticator
    self.hasFallback = hasFallback
  }
}

extension Profile {
  /// How requests of the type can be sent to the user now, with a configuration of `usable(with:)`. A device without
  /// the type's authenticator gets the fallback as the method, so that a device of an earlier version is never asked
  /// for a method that it does not know.
  /// - Returns: nil if they cannot.
  package func plan(
    for type: ServerConfiguration.MobileAuthenticationType, _ configuration: ServerConfiguration
  ) -> RequestPlan? {
    guard isEnrolledForPush, !type.requiresDisplay || (capabilities?.display ?? .none) != .none,
      !type.readsBack || capabilities?.readBack == true
    else { return nil }
    switch type.method {
    case .push: return RequestPlan(method: .push)
    case .pushWithPIN: return hasPIN ? RequestPlan(method: .pushWithPIN) : nil
    case .pushWithFingerprint, .pushWithCustomAuthenticator:
      let canFallBack = type.fallsBackToPIN && hasPIN
      let usable = ([type.authenticator].compactMap(\.self) + type.alternatives).compactMap { id in
        method(of: id, configuration).map { ApprovalRequest.Alternative(authenticator: id, method: $0) }
      }
      guard let first = usable.first else { return canFallBack ? RequestPlan(method: .pushWithPIN) : nil }
      var plan = RequestPlan(method: first.method, authenticator: first.authenticator, hasFallback: canFallBack)
      plan.alternatives = Array(usable.dropFirst())
      return plan
    case .other: return nil
    }
  }

  /// - Returns: nil for an authenticator that is not registered for the profile, or not offered.
  private func method(of id: String, _ configuration: ServerConfiguration) -> ApprovalRequest.Method? {
    authenticators.first { $0.id == id && configuration.offered(id, kind: $0.kind) != nil }.map {
      $0.kind == .biometric ? .pushWithFingerprint : .pushWithCustomAuthenticator
    }
  }
}
