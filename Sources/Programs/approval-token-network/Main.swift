// SPDX-License-Identifier: Apache-2.0
import Glibc
import NetworkDaemon
import Secrets
import Threads

@main
struct Main {
  private static let usage = """
    usage: approval-token-network [--relay PATH]

    The network process of a token, without keys, devices and storage. --relay: socket for the device process
    (approval-tokend device). Default: the socket of the service manager (systemd.socket).

    """

  static func main() {
    forbidCrashReports()
    occupyClosedStandardStreams()
    MainThread.run { await serve() }
  }

  private static func serve() async {
    let arguments = CommandLine.arguments.dropFirst()
    guard arguments.isEmpty || (arguments.count == 2 && arguments.first == "--relay") else {
      let isHelp = arguments.contains("--help") || arguments.contains("-h")
      end(isHelp ? EXIT_SUCCESS : 64, usage, on: isHelp ? STDOUT_FILENO : STDERR_FILENO)
    }
    // The reader of the log may end before this process.
    signal(SIGPIPE, SIG_IGN)
    // Access tokens pass through this process.
    protectMemory()
    do throws(NetworkProcess.StartError) {
      let manager = ServiceManager(environment)
      try await NetworkProcess(at: arguments.last, environment: environment).run(
        under: manager, onReady: manager.reportReady, onStop: manager.reportStop)
    } catch {
      if case .noSocket = error { end(64, "Error: \(error)\n", on: STDERR_FILENO) }
      end(69, "Error: \(error)\n", on: STDERR_FILENO)
    }
  }

  private static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  private static func end(_ code: Int32, _ message: String, on descriptor: Int32) -> Never {
    _ = message.withCString { write(descriptor, $0, strlen($0)) }
    exit(code)
  }
}
