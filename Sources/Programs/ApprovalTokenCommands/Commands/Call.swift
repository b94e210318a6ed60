// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import DisplayText
import Glibc
import JSONValues

struct Call: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "call", abstract: "Call a resource server as the logged-in user.",
    discussion: """
      The running service adds the access token of the session (see `login`) and a proof with the device's key (DPoP, \
      RFC 9449), which it gives to no other program. It calls only origins on the account's allow-list (see `allow`), \
      follows no redirect, and takes at most 1 MiB. Prints the response's body. Exits with 77 if the resource server \
      answers with a status from 300 to 499, and with 69 from 500 on; the body is printed, too.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Argument(
    help: ArgumentHelp(
      "Method, and https address. The method is GET by default, with --data POST.", valueName: "method-and-url"))
  var words: [String]

  @Option(help: ArgumentHelp("Body: a text, @FILE, or @- for standard input.", valueName: "text"))
  var data: String?

  @Option(help: "Media type of the body.")
  var contentType = "application/json"

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    guard (1...2).contains(words.count) else { throw ValidationError("give [METHOD] URL after the account") }
  }

  func run() throws {
    try reporting(json) {
      let body = try data.map { try Self.body($0) }
      let call = ResourceCall(
        account: account, method: words.count == 2 ? words[0].uppercased() : body == nil ? "GET" : "POST",
        url: words.last ?? "", contentType: body == nil ? nil : contentType, body: body)
      let response = try ResourceServerResponse(of: call, by: ControlClient(path: state.controlSocket))
      try response.print(as: json)
      if let failure = response.failure { throw failure }
    }
  }

  /// - Parameter text: as in `--data`.
  static func body(_ text: String) throws -> [UInt8] {
    guard text.hasPrefix("@") else { return try limited(Array(text.utf8)) }
    let path = String(text.dropFirst())
    let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw unreadable(path) }
    defer { if descriptor != 0 { close(descriptor) } }
    var body: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while body.count <= ResourceCall.longestBody {
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw unreadable(path) }
      guard count > 0 else { break }
      body += chunk[..<count]
    }
    return try limited(body)
  }

  private static func unreadable(_ path: String) -> CommandError {
    CommandError(.badData, "cannot read \(path): \(String(cString: strerror(errno)))")
  }

  private static func limited(_ body: [UInt8]) throws -> [UInt8] {
    guard body.count <= ResourceCall.longestBody else {
      throw CommandError(.badData, "the body is larger than \(ResourceCall.longestBody) bytes")
    }
    return body
  }
}

/// A resource server's response, received from the service in parts.
struct ResourceServerResponse {
  private(set) var status = 0
  private(set) var contentType: String?
  private(set) var body: [UInt8] = []

  /// - Throws: `.unavailable` if the service ends before the whole response is there.
  init(of call: ResourceCall, by client: ControlClient) throws {
    var size: Int?
    try client.follow(.call(call), ResourceReply.self) { reply in
      switch reply {
      case .head(let status, let contentType, let announced):
        (self.status, self.contentType, size) = (status, contentType, announced)
      case .part(let bytes): body += bytes
      }
      return body.count < size ?? Int.max
    }
    guard size == body.count else {
      throw CommandError(.unavailable, "the service ended without a whole answer; see its log")
    }
  }

  /// The error for a status that is not 2xx.
  var failure: CommandError? {
    switch status {
    case 200..<300: nil
    case 500...: CommandError(.unavailable, "the resource server answered with status \(status)")
    default: CommandError(.refused, "the resource server answered with status \(status)")
    }
  }

  /// - Throws: `.unavailable` if standard output takes only a part.
  func print(as json: JSONOption) throws {
    guard !json.isWanted else { return json.print(Printed(self)) { _ in "" } }
    // A terminal would interpret control characters.
    guard isatty(1) == 0 else { return json.print(Printed(self)) { _ in String(decoding: body, as: UTF8.self) } }
    var rest = body[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else {
        throw CommandError(.unavailable, "cannot write the whole body: \(String(cString: strerror(errno)))")
      }
      rest = rest.dropFirst(count)
    }
  }

  private struct Printed: Encodable {
    var status: Int
    var contentType: String?
    /// Nil if the body is not UTF-8.
    var body: String?
    var base64: Base64Bytes?

    init(_ response: ResourceServerResponse) {
      status = response.status
      contentType = response.contentType
      body = String(validating: response.body, as: UTF8.self)
      base64 = body == nil ? Base64Bytes(response.body) : nil
    }

    enum CodingKeys: String, CodingKey {
      case status, body
      case contentType = "content_type"
      case base64 = "body_base64"
    }
  }
}
