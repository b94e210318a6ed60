// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import ServerBackends

/// What programs that follow the token are notified of.
extension AccountService {
  /// Runs `body`, and reports its start, and its end or its failure.
  /// - Parameters:
  ///   - authenticator: the identifier; nil if it is not known yet.
  ///   - body: returns a result, and the step that succeeded.
  func reporting<Result>(
    _ purpose: AuthenticationStep.Purpose, of account: AccountID, with authenticator: String?,
    _ body: () async throws -> (Result, AuthenticationStep)
  ) async throws -> Result {
    report(AuthenticationStep(.started(purpose), of: account, authenticator: authenticator))
    do {
      let (result, step) = try await body()
      report(step)
      return result
    } catch {
      report(AuthenticationStep(.failed(purpose, .init(explaining: error)), of: account, authenticator: authenticator))
      throw error
    }
  }

  func report(_ step: AuthenticationStep) { environment.report(.step(step)) }
}

extension AuthenticationStep.Failure {
  /// - Parameter error: also one that is not reported to the user.
  fileprivate init(explaining error: any Error) {
    if let error = error as? TokenServerError {
      self.init(error)
    } else if let error = CommandError(explaining: error) {
      self.init(number: error.number, reason: error.description, underlyingError: error.underlyingError)
    } else {
      self.init(number: PanelDialog.canceledNumber, reason: "the command ended")
    }
  }
}
