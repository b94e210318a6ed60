import Logging
import ServiceLifecycle

/// Logs once, after the start, which rows cannot be read. Only requests of their owners fail.
struct UnreadableRowReport: Service {
  let store: Store
  let log: Logger

  func run() async throws {
    do {
      for line in try await store.read({ try $0.unreadableRows() }) { log.warning("\(line)") }
    } catch { log.error("the rows could not be checked: \(error)") }
    try? await gracefulShutdown()
  }
}
