// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import Glibc

struct Push: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "push", abstract: "Deliver a push message of PingAM to the running service.",
    discussion: """
      Reads one message from standard input or a file: {"messageId": …, "message": …}, the payload for a Firebase app, \
      Apple's payload, or what AM sends to Amazon SNS; at most 16 KiB. Exit code 0: the message is stored durably and \
      need not be delivered again. 65: not a message; 77: unknown recipient or invalid signature; 69: deliver it \
      again.
      """)

  @Argument(help: ArgumentHelp("File with the message. Default: standard input.", valueName: "file"))
  var file: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  private static let longest = 16_384

  func run() throws {
    try reporting(json) {
      let request = ControlRequest.push(message: try read())
      let response = try ControlClient(path: state.controlSocket).call(
        request, PushResponse.self, within: ControlClient.patience)
      json.print(response) { $0.isKnown ? "already received, for \($0.account)" : "stored, for \($0.account)" }
    }
  }

  private func read() throws -> String {
    let descriptor = file.map { open($0, O_RDONLY | O_CLOEXEC) } ?? STDIN_FILENO
    guard descriptor >= 0 else {
      throw CommandError(.badData, "cannot read \(file ?? ""): \(String(cString: strerror(errno)))")
    }
    defer { if file != nil { close(descriptor) } }
    var bytes: [UInt8] = []
    while bytes.count <= Self.longest {
      var chunk = [UInt8](repeating: 0, count: Self.longest + 1 - bytes.count)
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw CommandError(.badData, "cannot read the message: \(String(cString: strerror(errno)))")
      }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    guard bytes.count <= Self.longest else {
      throw CommandError(.badData, "the push message is larger than \(Self.longest) bytes")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw CommandError(.badData, "not a push message: not UTF-8")
    }
    return text
  }
}
