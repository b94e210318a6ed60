// SPDX-License-Identifier: Apache-2.0
/// An error of a backend with a message for the user. Errors of any other type, except those of `MobileAuth`, are
/// programming errors.
package protocol ReportedError: Error, CustomStringConvertible {
  var category: ErrorCategory { get }
  /// Error number for programs, of the server's vendor; nil for errors without a number. `description` may end with it
  /// in parentheses.
  var number: Int? { get }
  /// The description without the number.
  var explanation: String { get }
}

extension ReportedError {
  /// Default: none.
  package var number: Int? { nil }
  /// Default: the description.
  package var explanation: String { description }
}

/// Why a command failed; it determines the exit code.
package enum ErrorCategory: Sendable, Equatable {
  /// The command was used in a wrong way.
  case usage
  /// The input has a wrong format.
  case badData
  /// Something is missing or not reachable: retry later.
  case unavailable
  case refused
}

/// A `ReportedError` for backends without a type of their own.
package struct BackendError: ReportedError, Equatable {
  package let category: ErrorCategory
  package let description: String
  package let number: Int?

  package init(_ category: ErrorCategory, _ description: String, number: Int? = nil) {
    self.category = category
    self.description = description
    self.number = number
  }
}
