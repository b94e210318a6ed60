// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// The choice of a PIN has ended at the panel after the server has activated the account, which stays in the stage
/// `enrolling`.
package struct UnfinishedEnrollmentError: ReportedError {
  private let ending: PanelDialog.EntryError
  private let remedy: String

  /// - Parameter remedy: what completes the enrollment.
  package init(_ ending: PanelDialog.EntryError, remedy: String) {
    self.ending = ending
    self.remedy = remedy
  }

  package var category: ErrorCategory { ending.number == nil ? .unavailable : .refused }
  package var number: Int? { ending.number }
  package var explanation: String { "\(ending.explanation). The enrollment is not complete: \(remedy)" }
  package var description: String { number.map { "\(explanation) (\($0))" } ?? explanation }
}
