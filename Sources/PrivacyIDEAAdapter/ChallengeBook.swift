import Cryptography
import JSONValues
import MobileAuth
import Synchronization

/// The open challenges of all accounts at one server, as the last polls had them. Each is verified once and known by
/// its nonce from then on.
final class ChallengeBook: Sendable {
  struct Entry: Sendable, Equatable {
    let challenge: PushChallenge
    let account: AccountID
    let firstSeen: Moment
    /// Milliseconds since 1970 by the server's clock when it was first listed, later in a list being later.
    let seenAtMilliseconds: Int64
    var wrongChoices = 0
  }

  private struct State {
    var entries: [TransactionID: Entry] = [:]
    /// Answered here; what was on its way meanwhile must not bring them back. Oldest first, bounded.
    var answered: [TransactionID] = []
    var flaws: [AccountID: String] = [:]
  }

  private static let rememberedAnswers = 256
  private let state = Mutex(State())
  private let server: TokenServerID

  init(of server: TokenServerID) { self.server = server }

  var entries: [TransactionID: Entry] { state.withLock { $0.entries } }

  func entry(_ transaction: TransactionID) -> Entry? { state.withLock { $0.entries[transaction] } }

  /// Takes an account's new list.
  /// - Returns: whether anything changed, and what is wrong with elements that were dropped, if that is news.
  func replace(
    _ elements: [JSONValue], of account: AccountID, serial: String, key: RSAPublicKey, now: Moment,
    serverMilliseconds: Int64
  ) -> (hasChanged: Bool, flaw: String?) {
    let (known, answered) = state.withLock { ($0.entries, Set($0.answered)) }
    var fresh: [TransactionID: Entry] = [:]
    var flaw: String?
    for (index, element) in elements.enumerated() {
      let nonce = element["nonce"]?.text ?? ""
      let transaction = self.transaction(serial: serial, nonce: nonce)
      guard !answered.contains(transaction) else { continue }
      if let entry = known[transaction], entry.account == account {
        fresh[transaction] = entry
        continue
      }
      do throws(PushChallenge.Flaw) {
        let challenge = try PushChallenge(element, for: serial, verifiedWith: key)
        fresh[transaction] = Entry(
          challenge: challenge, account: account, firstSeen: now,
          seenAtMilliseconds: serverMilliseconds + Int64(index))
      } catch { flaw = "a challenge was dropped: \(error)" }
    }
    return state.withLock { state in
      let former = state.entries.filter { $0.value.account == account }
      let hasChanged = Set(former.keys) != Set(fresh.keys)
      state.entries = state.entries.filter { $0.value.account != account }.merging(fresh) { $1 }
      let isNews = flaw != nil && state.flaws[account] != flaw
      state.flaws[account] = flaw
      return (hasChanged, isNews ? flaw : nil)
    }
  }

  /// The server has taken an answer, or never will.
  func finish(_ transaction: TransactionID) {
    state.withLock { state in
      state.entries[transaction] = nil
      state.answered.append(transaction)
      if state.answered.count > Self.rememberedAnswers { state.answered.removeFirst() }
    }
  }

  /// - Returns: how many there were with this one.
  func countWrongChoice(_ transaction: TransactionID) -> Int {
    state.withLock { state in
      state.entries[transaction]?.wrongChoices += 1
      return state.entries[transaction]?.wrongChoices ?? Int.max
    }
  }

  /// The same for the same challenge after every restart: a version 8 UUID (RFC 9562 §5.8).
  func transaction(serial: String, nonce: String) -> TransactionID {
    let hash = SHA256.hash(Array("approval-token/push\n\(server)\n\(serial)\n\(nonce)".utf8))
    guard let transaction = TransactionID(derivedUUID(hash)) else { preconditionFailure("not a UUID") }
    return transaction
  }
}
