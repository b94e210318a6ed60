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
