import ApprovalToken

@main
struct Main {
  static func main() async {
    await ApprovalTokenCommand.main()
  }
}
