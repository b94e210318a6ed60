// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct TokenServerCommand: AsyncParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "token-server", abstract: "The reference token server of Approval Token.",
    version: "0.1.0",
    subcommands: [
      InitCommand.self, ServeCommand.self, MigrateCommand.self, UserCommand.self, ActivationCodeCommand.self,
      FleetCommand.self,
      APIClientCommand.self, FleetTokenCommand.self, TypeCommand.self, DeviceCommand.self, TransactionCommand.self,
      PepperCommand.self,
    ])

  package init() {}
}
