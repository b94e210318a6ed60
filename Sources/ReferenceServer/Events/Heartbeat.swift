import ServiceLifecycle

/// One timer for the heartbeats of all streams.
struct Heartbeat: Service {
  let hub: EventHub

  func run() async throws {
    await cancelWhenGracefulShutdown {
      while (try? await Task.sleep(for: .seconds(20))) != nil { hub.sendHeartbeats() }
    }
  }
}
