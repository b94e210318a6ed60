// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import MobileAuth
import Synchronization
import Threads

/// The open challenges of all accounts at one server, from the last polls. Each challenge is verified once and then
/// recognized by its nonce.
final class ChallengeStore: Sendable {
  struct Entry: Sendable, Equatable {
    let challenge: PushChallenge
    let account: AccountID
    let firstSeen: MonotonicInstant
    /// Milliseconds since 1970, by the server's clock, when the challenge was first listed. Later elements of a list
    /// get later times.
    let seenAtMilliseconds: Int64
    var wrongChoices = 0
  }

  private struct State {
    var entries: [TransactionID: Entry] = [:]
    /// Challenges answered by this token; a list requested before the answer must not restore them. Oldest first,
    /// bounded.
    var answered: [TransactionID] = []
    var parseErrors: [AccountID: String] = [:]
    var lists = ListOrder<AccountID>()
    var changes = 0
  }

  /// An account's list of open challenges with valid signatures.
  struct VerifiedList: Sendable {
    fileprivate let account: AccountID
    fileprivate var entries: [TransactionID: Entry] = [:]
    /// Why an element was dropped.
    fileprivate var parseError: String?
  }

  private static let rememberedAnswers = 256
  /// The maximum number of challenges of one list that are verified; further ones are with the next list.
  static let mostVerified = 500
  /// The number of forged challenges after which no more of a list are verified.
  static let mostForged = 8
  private let state = Mutex(State())
  private let server: TokenServerID

  init(of server: TokenServerID) { self.server = server }

  var entries: [TransactionID: Entry] { state.withLock { $0.entries } }

  func entry(_ transaction: TransactionID) -> Entry? { state.withLock { $0.entries[transaction] } }

  /// How often the challenges of an account became others by a list.
  var changes: Int { state.withLock { $0.changes } }

  /// Returns the number of a list that is requested after this.
  func nextList() -> Int { state.withLock { $0.lists.next() } }

  /// Verifies an account's list of open challenges. Of unknown ones, at most `mostVerified` are verified, and none
  /// after `mostForged` forged ones, so that a lying server cannot keep the processor busy with each list.
  func verify(
    _ elements: [JSONValue], of account: AccountID, serial: String, key: RSAPublicKey, now: MonotonicInstant,
    serverMilliseconds: Int64
  ) -> VerifiedList {
    let (known, answered) = state.withLock { ($0.entries, Set($0.answered)) }
    var list = VerifiedList(account: account)
    var (verified, forged) = (0, 0)
    for (index, element) in elements.enumerated() {
      let nonce = element["nonce"]?.text ?? ""
      let transaction = self.transaction(serial: serial, nonce: nonce)
      guard !answered.contains(transaction) else { continue }
      if let entry = known[transaction], entry.account == account {
        list.entries[transaction] = entry
        continue
      }
      guard verified < Self.mostVerified, forged < Self.mostForged else { continue }
      if verified == 0 { threadWillBlock() }
      verified += 1
      do throws(PushChallenge.ParseError) {
        let challenge = try PushChallenge(element, for: serial, verifiedWith: key)
        list.entries[transaction] = Entry(
          challenge: challenge, account: account, firstSeen: now,
          seenAtMilliseconds: serverMilliseconds + Int64(index))
      } catch {
        if error == .forged || error == .forgedCapabilities { forged += 1 }
        list.parseError = "a challenge was dropped: \(error)"
      }
    }
    return list
  }

  /// Replaces the challenges of the list's account, unless a newer list of it was applied before. What has happened to
  /// a challenge since the list was verified stays.
  /// - Parameter number: of `nextList`, from before the list was requested.
  /// - Returns: why an element was dropped, if that was not reported before.
  func replace(with list: VerifiedList, number: Int) -> String? {
    let account = list.account
    return state.withLock { state in
      guard state.lists.apply(number, of: account) else { return nil }
      let former = state.entries.filter { $0.value.account == account }
      var entries = list.entries.merging(former.filter { list.entries[$0.key] != nil }) { $1 }
      for transaction in state.answered { entries[transaction] = nil }
      if Set(former.keys) != Set(entries.keys) { state.changes += 1 }
      state.entries = state.entries.filter { $0.value.account != account }.merging(entries) { $1 }
      let isNews = list.parseError != nil && state.parseErrors[account] != list.parseError
      state.parseErrors[account] = list.parseError
      return isNews ? list.parseError : nil
    }
  }

  /// Removes a challenge: the server has accepted an answer, or will not accept any.
  func finish(_ transaction: TransactionID) {
    state.withLock { state in
      state.entries[transaction] = nil
      state.answered.append(transaction)
      if state.answered.count > Self.rememberedAnswers { state.answered.removeFirst() }
    }
  }

  /// Counts a wrong choice.
  /// - Returns: the number of wrong choices for this challenge.
  func countWrongChoice(_ transaction: TransactionID) -> Int {
    state.withLock { state in
      state.entries[transaction]?.wrongChoices += 1
      return state.entries[transaction]?.wrongChoices ?? Int.max
    }
  }

  /// Derives the transaction ID, a version 8 UUID (RFC 9562 §5.8). The same challenge has the same ID after every
  /// restart.
  func transaction(serial: String, nonce: String) -> TransactionID {
    let hash = SHA256.hash(Array("approval-token/push\n\(server)\n\(serial)\n\(nonce)".utf8))
    guard let transaction = TransactionID(derivedUUID(hash)) else { preconditionFailure("not a UUID") }
    return transaction
  }
}
