// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import MobileAuth
import ServerBackends
import Vault

extension AccountService {
  /// How long the token servers have to confirm the removal of the accounts.
  private static let patience = Duration.seconds(30)

  /// Begins a factory reset after a very long hold of the button: notifies the token servers and removes the accounts.
  /// From the hold on the reset is durable, and nothing stops it; the caller must end the service, and the next start
  /// removes what is left.
  /// - Throws: only if the reset has not begun.
  func factoryReset(_ progress: @escaping Progress) async throws -> FactoryResetResponse {
    try await service.panelTasks.perform { panel in
      progress("hold the button for \(veryLongHold.inSeconds) to remove all accounts and keys of this token")
      try await PanelDialog(panel, in: environment).veryLongHold()
      try FactoryReset(directory: vault.directory).begin()
      // In a task of its own: the end of the command does not cancel it.
      let work = Task {
        await panel.show(.talkingToServer)
        let response = await removeAll(progress)
        await panel.show(.confirmed)
        return response
      }
      return await work.value
    }
  }

  private func removeAll(_ progress: @escaping Progress) async -> FactoryResetResponse {
    let accounts: [AccountRecord]
    do { accounts = try vault.accounts() } catch {
      accounts = []
      progress("the accounts cannot be read, so that no token server is notified: \(error)")
    }
    let damaged = ((try? vault.damagedAccounts()) ?? []).filter { id in !accounts.contains { $0.id == id } }
    let notified = await withTaskGroup(of: AccountID?.self) { group in
      group.addTask {
        try? await environment.sleep(for: Self.patience)
        return nil
      }
      for account in accounts {
        group.addTask { await remove(account, progress) ? account.id : AccountID("") }
      }
      var notified: Set<AccountID> = []
      for _ in accounts {
        guard let next = await group.next(), let account = next else { break }
        notified.insert(account)
      }
      group.cancelAll()
      return notified
    }
    return FactoryResetResponse(
      removed: (accounts.map(\.id) + damaged).map(\.text),
      notNotified: (accounts.map(\.id).filter { !notified.contains($0) } + damaged).map(\.text))
  }

  /// - Returns: whether no token server lists the account any more.
  private func remove(_ account: AccountRecord, _ progress: Progress) async -> Bool {
    guard
      let notification = try? await operations.remove(
        account, through: service.server(of: account), noting: { _ in "factory reset" })
    else { return false }
    guard let warning = notification.warning(about: account) else { return true }
    progress(warning)
    return false
  }
}
