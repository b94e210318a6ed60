public import Secrets

/// Judges the PINs of accounts whose token server only asks that one be typed. It counts an attempt durably before it
/// looks at the PIN, and wipes the account after the last.
public protocol PINJudge: Sendable {
  /// Nil if the account has no PIN.
  func counts(of account: AccountID) throws(CustodyFault) -> FailureCounts?
  func judge(_ pin: PIN, of account: AccountID) throws(CustodyFault) -> PINJudgement
}

extension PINJudge {
  /// Returns if the PIN is right. Sits out the wait after a wrong one.
  public func approve(
    _ pin: PIN, of account: AccountID, timekeeper: any Timekeeper
  ) async throws(TokenServerFault) {
    while true {
      let judgement: PINJudgement
      do { judgement = try judge(pin, of: account) } catch { throw .notHandleable("\(error)") }
      switch judgement {
      case .right: return
      case .wrong(let counts): throw .pinIncorrect(counts)
      case .wiped: throw .pinsUsedUp
      case .mustWait(let wait):
        do { try await timekeeper.sleep(until: timekeeper.now + wait) } catch { throw .unreachable("cancelled") }
      }
    }
  }
}

public enum PINJudgement: Sendable, Equatable {
  case right
  case wrong(FailureCounts)
  /// It was the last that was allowed.
  case wiped
  /// Too soon after a wrong one: nothing was counted or looked at.
  case mustWait(Duration)
}
