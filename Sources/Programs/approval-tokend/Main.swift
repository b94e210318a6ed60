// SPDX-License-Identifier: Apache-2.0
import OneShotCommands
import Secrets
import Threads

@main
struct Main {
  static func main() {
    forbidCrashReports()
    occupyClosedStandardStreams()
    MainThread.run { await DaemonCommandLine.run() }
  }
}
