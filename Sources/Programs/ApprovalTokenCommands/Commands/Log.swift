// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct Log: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "log", abstract: "Show the audit chain: every request and how it ended.",
    discussion: """
      Every line has a MAC over the line before it, made with a key of this device, so that a changed, added or \
      missing line is detected, unless the newest lines were cut off with an older copy of the storage. --verify \
      checks the whole chain and names the first broken link. Of a line that cannot be read the number is printed, \
      or with --json nothing; the exit code is then 65.
      """)

  @Flag(help: "Verify the chain instead of printing it. Exit code 1 if a link is broken.")
  package var verify = false

  @Option(name: [.customShort("n"), .customLong("lines")], help: "The number of newest lines to print.")
  package var count = 50

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}

  package func validate() throws {
    guard (1...100_000).contains(count) else { throw ValidationError("--lines takes 1 to 100000") }
  }
}
