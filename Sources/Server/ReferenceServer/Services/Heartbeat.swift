// SPDX-License-Identifier: Apache-2.0
import ServiceLifecycle
import TokenServerHTTP

/// Sends the heartbeats of all streams with one timer.
struct Heartbeat: Service {
  let hub: EventHub

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while (try? await Task.sleep(for: .seconds(20))) != nil { hub.sendHeartbeats() }
    }
  }
}
