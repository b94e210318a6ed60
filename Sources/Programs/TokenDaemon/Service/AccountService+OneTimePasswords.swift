// SPDX-License-Identifier: Apache-2.0
package import ControlProtocol
package import MobileAuth
import Secrets
import ServerBackends
package import Vault

/// Display of one-time passwords. The secret can be encrypted with a PIN-derived key; the user types that PIN at the
/// panel.
extension AccountService {
  func oneTimePassword(_ name: String?, _ progress: @escaping Progress) async throws -> CodeResponse {
    let account = try operations.accountWithOneTimePasswords(name)
    let result = try vault.nextOneTimePassword(of: account.id, in: environment, notBefore: releaseTime)
    guard result == .pinWanted else { return try CodeResponse(result, of: account.id) }
    guard let pin = account.pin, pin.verifier == .token, hasKeypad else {
      throw CommandError(.usage, "the PIN of \(account.id) requires a keypad, and this board has none")
    }
    return try await service.panelTasks.perform(at: account.server) { panel in
      progress("type the PIN of \(account.id) on the keypad, then Enter")
      let secret = try await pins.unlock(account.id, for: .oneTimePassword, length: pin.length, on: panel, progress)
        .keys
      // The account may have been locked while the user typed the PIN.
      try operations.requireUnlocked(try vault.account(account.id))
      let result = try vault.nextOneTimePassword(
        of: account.id, unlocked: secret, in: environment, notBefore: releaseTime)
      let response = try CodeResponse(result, of: account.id)
      await panel.show(.confirmed)
      return response
    }
  }
}

extension CodeResponse {
  package init(_ result: OneTimePasswordResult, of account: AccountID) throws(CommandError) {
    switch result {
    case .code(let code):
      self.init(
        account: account.text, code: code.digits, counter: code.validity == nil ? code.factor : nil,
        validity: code.validity)
    case .pinWanted:
      throw CommandError(
        .unavailable, "account \(account) requires a PIN, typed on the token: start `approval-token serve`")
    case .locked: throw CommandError(.refused, "account \(account) is not active")
    case .clockBehind:
      throw CommandError(
        .unavailable, "this board's clock is behind a time that is known to have passed; set the clock and retry")
    case .noCode:
      throw CommandError(.unavailable, "MD5 gives no code for this counter value; retry to get the next code")
    case .usedUp:
      throw CommandError(
        .refused, "the counter of account \(account) has reached its maximum; enroll the account again")
    }
  }
}
