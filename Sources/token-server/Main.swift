import ArgumentParser
import ReferenceServer

@main
struct Main {
  static func main() async {
    await TokenServerCommand.main()
  }
}
