public import ArgumentParser

public struct ApprovalTokenCommand: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "approval-token", abstract: "A physical approval token: button, LED, keypad.")

  public init() {}
}
