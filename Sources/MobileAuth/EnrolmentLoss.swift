/// What a fault takes away from the token: the whole server, one account, or an account's keys. Whatever the step was in
/// which the server said so, it is carried out once and in the same way.
public struct EnrolmentLoss: Sendable {
  private let fault: TokenServerFault
  private let server: TokenServerID
  private let account: AccountID?
  private let transaction: TransactionID?

  /// - Parameters:
  ///   - account: whom the step was about, if anybody.
  ///   - transaction: what the step was about, if anything.
  /// - Returns: nil for a fault that takes nothing away.
  public init?(
    _ fault: TokenServerFault, at server: TokenServerID, _ account: AccountID?, _ transaction: TransactionID? = nil
  ) {
    switch fault.effect {
    case .wipeServer: break
    case .wipeAccount, .dropKeys: if account == nil { return nil }
    case .retry, .askAgain, .drop, .stop: return nil
    }
    self.fault = fault
    self.server = server
    self.account = account
    self.transaction = transaction
  }

  /// - Parameter moment: on the wall clock, in milliseconds since 1970.
  /// - Returns: what the audit chain says about it, or nil if somebody removed it meanwhile: then it is done already.
  public func carryOut(on custody: any Custody, at moment: Int64) throws(CustodyFault) -> AuditEntry? {
    let entry = AuditEntry(
      fault.effect == .dropKeys ? .disenrolled : .wiped, account: account, transaction: transaction,
      detail: "\(server): \(fault)", wallClockMilliseconds: moment)
    do {
      switch (fault.effect, account) {
      case (.wipeAccount, let account?): try custody.wipe(account: account, entry)
      case (.dropKeys, let account?): try custody.dropKeys(of: account, entry)
      default: try custody.wipe(server: server, entry)
      }
      return entry
    } catch {
      if case .unknown = error { return nil }
      throw error
    }
  }
}
