import ApprovalToken
import ArgumentParser

@main
struct Main {
  static func main() async {
    await ApprovalTokenCommand.main()
  }
}
