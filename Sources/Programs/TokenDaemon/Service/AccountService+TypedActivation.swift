// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import Secrets
import ServerBackends

extension AccountService {
  /// Asks at the panel for the activation code of a server, until one without a typing error is typed.
  /// - Returns: the enrollment URI.
  func typedActivation(
    at server: String, pins: [String], _ progress: @escaping Progress
  ) async throws -> String {
    guard let kind = operations.kinds.lazy.compactMap({ $0 as? any TypedActivation.Type }).first else {
      throw CommandError(.usage, "no kind of server has activation codes that can be typed")
    }
    guard hasKeypad else {
      throw CommandError(.refused, "the activation code is typed on the token's keypad, and this board has none")
    }
    try kind.check(server: server, pins: pins)
    return try await service.panelTasks.perform { panel in
      let dialog = PanelDialog(panel, in: environment)
      while true {
        progress("type the activation code for \(server) on the keypad, then Enter")
        let code = try await dialog.code().bytes.withExposedSecret { String(decoding: $0, as: UTF8.self) }
        if let uri = kind.enrollmentURI(server: server, code: code, pins: pins) { return uri }
        progress("the code has a typing error")
        await dialog.show(.noSuchChoice)
      }
    }
  }
}
