import ArgumentParser
import Glibc

struct Push: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Bring a push message of PingAM to the running service.",
    discussion: """
      Reads one message from standard input or a file: {"messageId": …, "message": …}, what Firebase hands to an app, \
      Apple's payload, or what AM gives to Amazon; at most 16 KiB. When this returns with 0 the message is on the card \
      and need not be brought again. 65: not a message; 77: for nobody here, or not to be believed; 69: bring it again.
      """)

  @Argument(help: ArgumentHelp("File that holds it; standard input without one.", valueName: "file"))
  var file: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  private static let longest = 16_384

  func run() async throws {
    try await reporting {
      let call = ControlCall(request: .push, message: try read())
      let facts = try ControlClient(path: state.controlSocket).call(call, PushFacts.self)
      json.print(facts) { $0.isKnown ? "known already, for \($0.account)" : "kept, for \($0.account)" }
    }
  }

  private func read() throws -> String {
    let descriptor = file.map { open($0, O_RDONLY | O_CLOEXEC) } ?? STDIN_FILENO
    guard descriptor >= 0 else {
      throw CommandFailure(.badData, "cannot read \(file ?? ""): \(String(cString: strerror(errno)))")
    }
    defer { if file != nil { close(descriptor) } }
    var bytes: [UInt8] = []
    while bytes.count <= Self.longest {
      var chunk = [UInt8](repeating: 0, count: Self.longest + 1 - bytes.count)
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw CommandFailure(.badData, "reading: \(String(cString: strerror(errno)))") }
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    guard bytes.count <= Self.longest else {
      throw CommandFailure(.badData, "the push message is larger than \(Self.longest) bytes")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw CommandFailure(.badData, "not a push message: not UTF-8")
    }
    return text
  }
}
