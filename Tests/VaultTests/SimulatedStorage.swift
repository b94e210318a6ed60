// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import VaultModel

/// Simulated storage: the durable contents and the pending writes, from the log of a `RecordingVFS` up to one point.
struct SimulatedStorage {
  /// The data that a power loss leaves of writes that were not synced.
  enum PowerLoss: CaseIterable {
    case nothingElse, everythingElse
    /// Each change separately, and each 512-byte sector of a write separately; the storage may reorder them.
    case someSectors
  }

  private var safe: [String: [UInt8]] = [:]
  private var unsafe: [String: [StorageEvent]] = [:]
  /// Files whose directory entries are not durable.
  private var unnamed: Set<String> = []

  mutating func add(_ event: StorageEvent) {
    switch event {
    case .created(let name):
      unnamed.insert(name)
      safe[name] = []
    case .wrote(let name, _, _), .truncated(let name, _): unsafe[name, default: []].append(event)
    case .synced(let name):
      for change in unsafe.removeValue(forKey: name) ?? [] { change.apply(to: &safe[name, default: []]) }
      unnamed.remove(name)
    case .deleted(let name, let isDurable):
      precondition(isDurable, "\(name) was deleted without waiting, which this card cannot show")
      safe[name] = nil
      unsafe[name] = nil
      unnamed.remove(name)
    case .returned: break
    }
  }

  /// The files after the power loss.
  func files(after cut: PowerLoss, _ random: inout SeededGenerator) -> [String: [UInt8]] {
    var files = safe
    for name in Set(unsafe.keys).union(unnamed).sorted() {
      for change in unsafe[name] ?? [] {
        switch cut {
        case .nothingElse: break
        case .everythingElse: change.apply(to: &files[name, default: []])
        case .someSectors:
          for piece in change.sectors where Bool.random(using: &random) { piece.apply(to: &files[name, default: []]) }
        }
      }
      let isLost = cut == .nothingElse || cut == .someSectors && Bool.random(using: &random)
      if unnamed.contains(name), isLost { files[name] = nil }
    }
    return files
  }

  /// Returns a text that is equal for equal files.
  static func fingerprint(of files: [String: [UInt8]]) -> String {
    files.sorted { $0.key < $1.key }.map { "\($0.key) \(SHA256.hash($0.value).lowercaseHex)" }.joined(separator: " ")
  }
}

extension StorageEvent {
  fileprivate func apply(to file: inout [UInt8]) {
    switch self {
    case .wrote(_, let offset, let bytes):
      if file.count < offset + bytes.count {
        file += [UInt8](repeating: 0, count: offset + bytes.count - file.count)
      }
      file.replaceSubrange(offset..<offset + bytes.count, with: bytes)
    case .truncated(_, let size): file.removeLast(max(0, file.count - size))
    default: break
    }
  }

  fileprivate var sectors: [StorageEvent] {
    guard case .wrote(let name, let offset, let bytes) = self else { return [self] }
    return stride(from: 0, to: bytes.count, by: 512).map {
      .wrote(name, offset: offset + $0, Array(bytes[$0..<min($0 + 512, bytes.count)]))
    }
  }
}
