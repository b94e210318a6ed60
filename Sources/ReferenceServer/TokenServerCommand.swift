// SPDX-License-Identifier: Apache-2.0
public import ArgumentParser

public struct TokenServerCommand: AsyncParsableCommand {
  public static let configuration = CommandConfiguration(
    commandName: "token-server", abstract: "The reference token server of Approval Token.",
    subcommands: [
      InitCommand.self, ServeCommand.self, UserCommand.self, ActivationCodeCommand.self, APIClientCommand.self,
      FleetTokenCommand.self, TypeCommand.self, DeviceCommand.self, TransactionCommand.self,
    ])

  public init() {}
}
