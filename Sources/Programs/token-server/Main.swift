// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ReferenceServer
import Secrets

@main
struct Main {
  static func main() async {
    forbidCrashReports()
    occupyClosedStandardStreams()
    await TokenServerCommand.main()
  }
}
