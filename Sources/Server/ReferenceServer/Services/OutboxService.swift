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
        var pause: Duration?
        do { announcer.announce(try await store.write { [clock] in try $0.collectOutbox(now: clock.now()) }) } catch {
          announcer.log.error("outbox: \(error)")
          // The command has ended, and nothing else would wake this service.
          pause = .seconds(1)
        }
        await wakeUp.wait(for: pause)
      }
    }
  }
}
