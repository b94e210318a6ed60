// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import Vault

extension AccountService {
  /// Shows on the LED why an enrollment failed, if there is no account, until the next one: a board may have no other
  /// display.
  func showFailure(_ error: any Error) {
    guard let accounts = try? vault.accounts(), !accounts.contains(where: { $0.stage == .active }) else { return }
    service.note(enrollmentFailure: cause(of: error))
  }

  /// The number of `Indication.enrollmentFailed`; nil if the user ended the enrollment.
  private func cause(of error: any Error) -> Int? {
    if error is PanelDialog.EntryError || error is CancellationError { return nil }
    if case TokenServerError.noNetwork = error { return 1 }
    return switch CommandError(explaining: error)?.code {
    case .unavailable: 2
    case .refused: 3
    case .badData: 4
    default: 5
    }
  }
}
