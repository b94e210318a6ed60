// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import RelayProtocol
import Threads
package import UnixSockets

/// The network process: TLS, HTTP, MQTT and the push listener for the device process. It has no state directory, no
/// vault and no devices, and knows no account.
package struct NetworkProcess: Sendable {
  /// Why the process cannot start.
  package enum StartError: Error, CustomStringConvertible {
    case noSocket
    case socket(UnixSocket.SocketError)

    package var description: String {
      switch self {
      case .noSocket: "no socket: give --relay, or start this by a socket unit"
      case .socket(let error): "\(error)"
      }
    }
  }

  /// Longer than the device process takes to start again after a crash.
  private static let idleLimit = Duration.seconds(60)

  private let socket: UnixSocket
  private let idleLimit: Duration?

  /// - Parameters:
  ///   - path: where to listen; nil for the socket of the service manager.
  ///   - environment: reads a variable of the process's environment.
  package init(at path: String?, environment: (String) -> String?) throws(StartError) {
    if let path {
      do { socket = try UnixSocket.listening(at: path, unlessInUse: true) } catch { throw .socket(error) }
      idleLimit = nil
      return
    }
    // sd_listen_fds(3): the first descriptor is 3.
    guard environment("LISTEN_PID") == "\(getpid())", environment("LISTEN_FDS") == "1" else { throw .noSocket }
    _ = fcntl(3, F_SETFD, FD_CLOEXEC)
    socket = UnixSocket(descriptor: 3)
    idleLimit = Self.idleLimit
  }

  /// Runs until SIGTERM, SIGINT or SIGHUP; with the socket of the service manager, which starts it again, also until no
  /// device process has used it for a minute or two.
  /// - Parameters:
  ///   - manager: is notified by the watchdog.
  ///   - onReady: called once, when connections are accepted.
  ///   - onStop: called when a signal has come.
  package func run(
    under manager: ServiceManager, onReady: () -> Void, onStop: @escaping @Sendable () -> Void
  ) async {
    let clients = NetworkClients()
    let listener = RelayListener(socket, orders: RelayOrders(clients: clients), idleLimit: idleLimit)
    let watchdog = manager.watchdogInterval.map { NetworkWatchdog(manager: manager, interval: $0, clients: clients) }
    let serving = Task {
      await withTaskGroup { group in
        group.addTask { await listener.run() }
        if let watchdog { group.addTask { await watchdog.run() } }
        await group.next()
        group.cancelAll()
      }
    }
    MainThread.onStopSignal {
      onStop()
      serving.cancel()
    }
    defer { MainThread.onStopSignal(nil) }
    onReady()
    await serving.value
  }
}

/// Reports at intervals that the thread that waits for sockets, those of the tasks, and those of the HTTP clients work.
private struct NetworkWatchdog: Sendable {
  let manager: ServiceManager
  let interval: Duration
  let clients: NetworkClients

  /// Runs until the task is canceled.
  func run() async {
    guard let idle = IdleSocket() else { return }
    while await SocketPoller.shared.wait(for: idle.descriptor, .reading, until: .now + interval) == .timedOut {
      if clients.haveReacted() { manager.notify("WATCHDOG=1") }
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
