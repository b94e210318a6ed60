// SPDX-License-Identifier: Apache-2.0
import Logging
import ServiceLifecycle
import TokenServerStore

/// Logs the unreadable rows once after the start. Only requests of their owners fail.
struct UnreadableRowReport: Service {
  let store: Store
  let log: Logger

  func run() async throws {
    do {
      for line in try await store.read({ try $0.unreadableRows() }) { log.warning("\(line)") }
    } catch is CancellationError {} catch { log.error("the rows could not be checked: \(error)") }
    try? await gracefulShutdown()
  }
}
