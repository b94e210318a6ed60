public import ArgumentParser

public struct TokenServerCommand: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "token-server", abstract: "The reference token server of Approval Token.")

  public init() {}
}
