// SPDX-License-Identifier: Apache-2.0

/// Orders of the device process without a result.
extension Relay {
  /// Waits until the network process has ended.
  /// - Parameter isUp: called when it has accepted the order.
  /// - Returns: why it does not attend any longer; nil if the task was canceled.
  package func attend(isUp: @Sendable () -> Void) async -> RelayError? {
    await follow(.attend, isUp: isUp) { false }
  }

  /// Receives login hints of the push listener at `address`, in the network process.
  /// - Parameter onHint: called for each.
  /// - Returns: why hints are not received any longer; nil if the task was canceled.
  package func listen(
    at address: String, isUp: @Sendable () -> Void, onHint: @Sendable () -> Void
  ) async -> RelayError? {
    await follow(.listen(address), isUp: isUp) {
      onHint()
      return true
    }
  }

  /// - Parameter take: called for each hint; returns whether one may come.
  private func follow(
    _ order: RelayOrder, isUp: @Sendable () -> Void, _ take: @Sendable () -> Bool
  ) async -> RelayError? {
    do throws(RelayError) {
      let socket = try await open(order)
      switch try await socket.reply(until: .now + patience) {
      case .up: isUp()
      case .refused(let reason): throw .refused(reason)
      case let other: throw .malformed("\(other.name) in place of a connection")
      }
      var pace = RelayPace()
      while case .hint = try await socket.reply(), take() { try await pace.wait() }
      throw .malformed("an unexpected reply")
    } catch {
      return error == .canceled ? nil : error
    }
  }
}
