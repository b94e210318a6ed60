// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import ServerBackends
import Vault

extension AccountService {
  /// Shows on the LED where the enrollment stands, if there is no account: a board may have no other display.
  /// - Parameter indication: nil for "must be enrolled".
  func show(enrollment indication: Indication?) {
    guard let accounts = try? vault.accounts(), !accounts.contains(where: { $0.stage == .active }) else { return }
    service.note(enrollment: indication)
  }

  /// Why an enrollment failed; nil if the user ended it.
  func indication(ofFailure error: any Error) -> Indication? {
    if error is PanelDialog.EntryError || error is UnfinishedEnrollmentError { return nil }
    if error is CancellationError { return nil }
    if case TokenServerError.noNetwork = error { return .enrollmentFailed(cause: 1) }
    // Neither the server nor the URI is at fault.
    if error is StateStoreError { return .enrollmentFailed(cause: 5) }
    return switch CommandError(explaining: error)?.code {
    case .unavailable where error is TokenServerError: .enrollmentFailed(cause: 2)
    case .refused: .enrollmentFailed(cause: 3)
    case .badData: .enrollmentFailed(cause: 4)
    default: .enrollmentFailed(cause: 5)
    }
  }
}
