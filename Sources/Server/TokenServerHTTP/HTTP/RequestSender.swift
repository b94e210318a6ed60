// SPDX-License-Identifier: Apache-2.0
import Synchronization
import TokenServerCore

/// The sender of a request, for the limits of log lines.
final class RequestSender: Sendable {
  /// Of the request that the present task handles.
  @TaskLocal static var current: RequestSender?

  private let device = Mutex<ClientID?>(nil)

  /// Nil while the request is not that of an authenticated device.
  var clientID: ClientID? { device.withLock { $0 } }

  /// Notes that a device has authenticated the request that the present task handles.
  static func authenticated(as clientID: ClientID) {
    guard let current else { return }
    current.device.withLock { $0 = clientID }
  }
}
