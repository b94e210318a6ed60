// SPDX-License-Identifier: Apache-2.0
import ApprovalToken
import ArgumentParser
import Secrets

@main
struct Main {
  static func main() async {
    forbidCrashReports()
    await ApprovalTokenCommand.main()
  }
}
