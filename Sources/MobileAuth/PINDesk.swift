public import Secrets

/// Where the PIN comes from that a person types before an accept although no token server judges it, and who keeps it.
public struct PINDesk: Sendable {
  public let choose: @Sendable () async throws -> PIN
  public let keep: @Sendable (AccountID, PIN) throws(CustodyFault) -> Void

  /// - Parameters:
  ///   - choose: asks the person.
  ///   - keep: durable when it returns. The account is in the vault already.
  public init(
    choose: @escaping @Sendable () async throws -> PIN,
    keep: @escaping @Sendable (AccountID, PIN) throws(CustodyFault) -> Void
  ) {
    self.choose = choose
    self.keep = keep
  }
}
