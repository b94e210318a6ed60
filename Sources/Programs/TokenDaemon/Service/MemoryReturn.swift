// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Synchronization

/// Gives freed memory back to the kernel a moment after the end of a request: the LED's confirmation, and a request
/// that follows at once, do not wait for it.
final class MemoryReturn: Sendable {
  private static let pause = Duration.seconds(2)
  private let isDue = Atomic(false)

  func begin(in environment: TokenEnvironment) {
    guard !isDue.exchange(true, ordering: .relaxed) else { return }
    Task { [self] in
      try? await environment.sleep(for: Self.pause)
      isDue.store(false, ordering: .relaxed)
      giveBackFreedMemory()
    }
  }
}
