// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Logging
import ServiceLifecycle
import TokenServerCore
import TokenServerStore

/// Sends the notifications that administrators' commands have stored.
struct OutboxService: Service {
  let store: Store
  let wakePipe: WakePipe
  let announcer: any Announcer
  let clock: ServerClock

  func run() async throws {
    let wakeUp = AsyncSignal()
    let source = try wakePipe.listen { wakeUp.ring() }
    defer { source.cancel() }
    await cancelWhenGracefulShutdown {
      while !Task.isCancelled {
        do { announcer.announce(try await store.write { [clock] in try $0.collectOutbox(now: clock.now()) }) } catch {
          announcer.log.error("outbox: \(error)")
        }
        await wakeUp.wait(for: nil)
      }
    }
  }
}
