// SPDX-License-Identifier: Apache-2.0

/// Functions on accounts with a push token of privacyIDEA or eduMFA.
package enum PrivacyIDEA {
  /// The `kind` of `TokenServerRecord` for these servers.
  package static let kind = "privacyidea"

  /// Whether the text has the scheme and host of an enrollment URL of such a server.
  package static func recognizes(_ text: String) -> Bool {
    do {
      _ = try EnrollmentURI(text)
      return true
    } catch { return error != .notAnEnrollment }
  }
}
