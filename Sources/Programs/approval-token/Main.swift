// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import Secrets

@main
struct Main {
  // Not asynchronous: only the first thread may start the daemon's program.
  static func main() {
    forbidCrashReports()
    occupyClosedStandardStreams()
    ApprovalTokenCommand.main()
  }
}
