// SPDX-License-Identifier: Apache-2.0
import OneShotCommands
import Secrets

@main
struct Main {
  static func main() async {
    forbidCrashReports()
    await DaemonCommandLine.run()
  }
}
