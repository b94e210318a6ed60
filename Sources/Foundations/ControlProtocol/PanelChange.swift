// SPDX-License-Identifier: Apache-2.0

/// One line of `approval-token watch`: what is on the panel now, or how that has changed.
package struct PanelChange: Codable, Sendable {
  /// Changes when a member gets another meaning.
  package static let version = 1

  package enum Event: String, Sendable {
    /// No request is on the panel. Only as the first line.
    case idle
    case shown
    /// The request left the panel.
    case ended
  }

  package var version = Self.version
  /// The raw value of an `Event`, or of one that a later release adds.
  package var event: String
  /// With `shown`.
  package var request: PendingSummary?
  /// With `ended`.
  package var transaction: String?
  /// With `ended`: why the request left the panel.
  package var reason: String?

  package static let idle = PanelChange(.idle)

  package init(shown request: PendingSummary) {
    self.init(.shown)
    self.request = request
  }

  package init(ended transaction: String, _ reason: String) {
    self.init(.ended)
    self.transaction = transaction
    self.reason = reason
  }

  private init(_ event: Event) { self.event = event.rawValue }
}
