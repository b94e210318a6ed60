// SPDX-License-Identifier: Apache-2.0
import CLinux
package import ControlProtocol
import Glibc
import MobileAuth
import RelayProtocol
import ServiceLifecycle
import Threads

/// The network process: TLS, HTTP, MQTT and the push listener for the device process. It has no state directory, no
/// vault and no devices, and knows no account.
package struct NetworkProcess: Sendable {
  /// Longer than the device process takes to start again after a crash.
  private static let idleLimit = Duration.seconds(60)

  private let socket: UnixSocket
  private let idleLimit: Duration?

  /// - Parameters:
  ///   - path: where to listen; nil for the socket of the service manager.
  ///   - environment: reads a variable of the process's environment.
  package init(at path: String?, environment: (String) -> String?) throws(CommandError) {
    if let path {
      do { socket = try UnixSocket.listening(at: path) } catch { throw CommandError(.unavailable, "\(error)") }
      idleLimit = nil
      return
    }
    // sd_listen_fds(3): the first descriptor is 3.
    guard environment("LISTEN_PID") == "\(getpid())", environment("LISTEN_FDS") == "1" else {
      throw CommandError(.usage, "no socket: give --relay, or start this by a socket unit")
    }
    _ = fcntl(3, F_SETFD, FD_CLOEXEC)
    socket = UnixSocket(descriptor: 3)
    idleLimit = Self.idleLimit
  }

  /// Runs until SIGTERM, SIGINT or SIGHUP; with the socket of the service manager, which starts it again, also until no
  /// device process has used it for a minute or two.
  /// - Parameters: as for `Daemon.run`.
  package func run(
    under manager: ServiceManager, onReady: @escaping @Sendable () -> Void, onStop: @escaping @Sendable () -> Void
  ) async throws {
    let environment = TokenEnvironment.system()
    let clients = NetworkClients()
    let listener = RelayListener(
      socket, orders: RelayOrders(clients: clients, environment: environment), idleLimit: idleLimit)
    let watchdog = manager.watchdogInterval.map { NetworkWatchdog(manager: manager, interval: $0, clients: clients) }
    let group = ServiceGroup([listener, watchdog], whenOneEnds: .gracefullyShutdownGroup)
    MainThread.onStopSignal {
      onStop()
      Task { await group.triggerGracefulShutdown() }
    }
    defer { MainThread.onStopSignal(nil) }
    onReady()
    try await group.run()
  }
}

/// Reports at intervals that the thread that waits for sockets, those of the tasks, and those of the HTTP clients work.
private struct NetworkWatchdog: Service {
  let manager: ServiceManager
  let interval: Duration
  let clients: NetworkClients

  func run() async throws {
    await cancelWhenGracefulShutdown {
      guard let idle = IdleSocket() else { return }
      while await SocketPoller.shared.wait(for: idle.descriptor, .reading, until: .now + interval) == .timedOut {
        if clients.haveReacted() { manager.notify("WATCHDOG=1") }
      }
    }
  }
}

/// A socket on which nothing is ever received.
private final class IdleSocket: Sendable {
  let descriptor: Int32

  init?() {
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if descriptor < 0 { return nil }
  }

  deinit { close(descriptor) }
}
