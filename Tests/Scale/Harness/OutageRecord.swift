// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Synchronization

/// The independent model: what devices have sent and which responses they got, and the callbacks that arrived. It knows
/// nothing of the servers' records.
final class OutageRecord: Sendable {
  /// How a transaction can end.
  enum Ending { case accepted, denied, pinLimit, deregistered }

  struct Entry {
    let device: String
    /// The URI of its callback.
    let callback: String
    let needsPIN: Bool
    /// Nil as long as the device has sent nothing that can end it.
    var ending: Ending?
    /// Whether the device got a response that says so.
    var isConfirmed = false
    /// The PIN attempts of confirmed responses.
    var pinAttempts = 0
  }

  private struct State {
    var entries: [String: Entry] = [:]
    /// The device of each callback, also of transactions whose begin got no response.
    var devices: [String: String] = [:]
    /// Those whose last PIN attempt was sent.
    var deregistered: Set<String> = []
    var violations: [String] = []
    /// Calls without a response, and other interruptions.
    var faults: [String: Int] = [:]
    var callbacks: [String: Int] = [:]
  }

  private let state = Mutex(State())

  var entries: [String: Entry] { state.withLock { $0.entries } }
  var violations: [String] { state.withLock { $0.violations } }
  var faults: [String: Int] { state.withLock { $0.faults } }
  /// The number of calls, by transaction.
  var callbacks: [String: Int] { state.withLock { $0.callbacks } }

  func violated(_ what: String) { state.withLock { $0.violations.append(what) } }

  func failed(_ error: any Error) { state.withLock { $0.faults["\(error)", default: 0] += 1 } }

  /// To be called before the portal begins a transaction.
  func asks(_ callback: String, for device: String) { state.withLock { $0.devices[callback] = device } }

  func begun(_ transaction: String, _ entry: Entry) { state.withLock { $0.entries[transaction] = entry } }

  /// To be called before the device sends what can end a transaction.
  func mayEnd(_ transaction: String, _ ending: Ending) { state.withLock { $0.entries[transaction]?.ending = ending } }

  func ended(_ transaction: String) { state.withLock { $0.entries[transaction]?.isConfirmed = true } }

  func verifiedPIN(for transaction: String) { state.withLock { $0.entries[transaction]?.pinAttempts += 1 } }

  /// To be called before the last PIN attempt of a device, which ends what else is open for it.
  func mayDeregister(_ device: String) {
    state.withLock { state in
      state.deregistered.insert(device)
      for (id, entry) in state.entries where entry.device == device && entry.ending == nil {
        state.entries[id]?.ending = .deregistered
      }
    }
  }

  /// - Parameter isDeregistered: whether the attempt was the last one.
  func concluded(_ device: String, isDeregistered: Bool) {
    state.withLock { state in
      if !isDeregistered { state.deregistered.remove(device) }
      for (id, entry) in state.entries where entry.device == device && entry.ending == .deregistered {
        if isDeregistered { state.entries[id]?.isConfirmed = true } else { state.entries[id]?.ending = nil }
      }
    }
  }

  /// Whether the portal refuses the first callback of a transaction.
  static func refusesFirst(_ transaction: String) -> Bool { "4567".contains(transaction.last ?? " ") }

  /// Checks a callback when it arrives.
  /// - Returns: whether the portal accepts it.
  func received(_ call: CallbackSink.Call) -> Bool {
    state.withLock { state in
      let transaction = call.members["transaction_id"] ?? ""
      if state.entries[transaction] == nil, let device = state.devices[call.members["callback_uri"] ?? ""],
        state.deregistered.contains(device)
      {
        return true
      }
      guard let entry = state.entries[transaction], entry.ending != nil,
        call.members == ["transaction_id": transaction, "callback_uri": entry.callback],
        entry.callback.hasSuffix(call.path)
      else {
        state.violations.append("an unexpected callback: \(call)")
        return true
      }
      state.callbacks[transaction, default: 0] += 1
      return state.callbacks[transaction] != 1 || !Self.refusesFirst(transaction)
    }
  }
}
