// SPDX-License-Identifier: Apache-2.0
package import ControlProtocol
import HTTP
package import ServerBackends

/// What can be said of an enrollment URI before storage is opened.
extension Backends {
  /// Parses the URI and returns which options its enrollment accepts.
  static func form(
    of uri: String, among kinds: [any ServerBackend.Type] = Self.kinds
  ) throws -> EnrollmentForm {
    guard let kind = kinds.first(where: { $0.recognizes(uri) }) else {
      throw CommandError(.badData, notAnEnrollmentURI(kinds))
    }
    return try kind.form(of: uri)
  }

  /// Rejects options that the URI's kind of server does not accept.
  package static func check(_ options: EnrollmentOptions, among kinds: [any ServerBackend.Type] = Self.kinds) throws {
    let form = try form(of: options.uri, among: kinds)
    for option in EnrollmentOption.allCases where options.has(option) && !form.options.contains(option) {
      let able = kinds.filter { $0.enrollmentOptions.contains(option) }
      let uris = able.flatMap { $0.uriPrefixes }.map { "\($0)…" }.enumerated(with: "or")
      let hint = option == .pin ? "; here \(form.pinDecision)" : ""
      throw CommandError(.usage, "\(option.argument) is for accounts of \(able.names { _ in true }): \(uris)\(hint)")
    }
    for text in options.allowedOrigins { _ = try HTTPOrigin(argument: text) }
  }

  /// Whether the URI contains a secret that stays valid after the enrollment. Other URIs carry a one-time code only.
  package static func carriesLastingSecret(_ uri: String) -> Bool {
    let scheme = uri.drop { $0.isWhitespace }.prefix { $0 != ":" }.lowercased()
    return kinds.contains { $0.lastingSecretSchemes.contains(scheme) }
  }

  /// Returns the rule that the text violates; nil if it can be a mailbox of some kind of server.
  package static func rule(brokenByMailbox text: String) -> String? {
    let rules = kinds.compactMap { $0 as? any MailboxAddressing.Type }.map { $0.rule(brokenByMailbox: text) }
    return rules.contains(nil) ? nil : rules.compactMap(\.self).first
  }

  static func notAnEnrollmentURI(_ kinds: [any ServerBackend.Type]) -> String {
    let registering = kinds.compactMap { $0 as? any FleetRegistration.Type }.map { $0.registrationPrefix }
    let prefixes = kinds.flatMap { $0.uriPrefixes } + registering
    return "not an enrollment URI: one begins with \(prefixes.enumerated(with: "or"))"
  }
}

extension EnrollmentOptions {
  fileprivate func has(_ option: EnrollmentOption) -> Bool {
    switch option {
    case .pin: asksPIN
    case .mailbox: mailbox != nil
    case .origins: !allowedOrigins.isEmpty
    }
  }
}
