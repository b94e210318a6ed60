// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import ReferenceProtocol
import ServerBackends
import Testing

@testable import ReferenceAdapter

/// The texts that the server signed, against those of the pending list.
@Suite(.timeLimit(.minutes(5))) struct SignedTextsTests {
  private let server: FakeServer

  init() throws { server = try FakeServer() }

  private func open(
    message: String? = "m", pushMessage: String? = "p", type: String = "login", listed: String? = "p",
    listedType: String? = "login"
  ) async throws -> MobileAuthRequest {
    var request = server.request()
    (request.message, request.pushMessage, request.type) = (message, pushMessage, type)
    try server.serve(JSON.encode(request))
    var pending = server.pending
    pending.message = listed
    pending.summary.type = listedType
    return try await server.adapter(server.makeHTTPTransport()).open(pending)
  }

  /// Fails if a server that requires a display sends nothing to a token that has one.
  @Test("A display is announced to the server", arguments: [false, true]) func display(hasDisplay: Bool) {
    let board = BoardCapabilities(hasKeypad: true, hasColorLED: false, hasDisplay: hasDisplay)
    var announced = ApprovalCapabilities(display: hasDisplay ? .text : .none, keypad: true, button: true, led: .mono)
    announced.readBack = true
    #expect(ApprovalCapabilities(board) == announced)
  }

  @Test("The signed texts are kept, with line feeds and without other control characters") func textsAreKept()
    async throws
  {
    let message = "Pay 12 EUR\r\nto \u{202E}Bob\u{1B}[2J"
    let texts = try #require(try await open(message: message).contents.texts)
    #expect(texts.signature == .openPGP && texts.type == "login")
    #expect(texts.message == "Pay 12 EUR\nto Bob[2J" && texts.pushMessage == "p")
    #expect(texts.digest == SHA256.hash(Array(message.utf8)).lowercaseHex)
  }

  @Test("The digest is that of the whole message, or of the push message if there is no other") func digests()
    async throws
  {
    let long = String(repeating: "x", count: VerifiedTexts.longestMessage + 1)
    let texts = try #require(try await open(message: long).contents.texts)
    #expect(texts.message?.unicodeScalars.count == VerifiedTexts.longestMessage && texts.message?.last == "…")
    #expect(texts.digest == SHA256.hash(Array(long.utf8)).lowercaseHex)
    let short = try #require(try await open(message: nil).contents.texts)
    #expect(short.message == nil && short.digest == SHA256.hash(Array("p".utf8)).lowercaseHex)
    let none = try #require(try await open(message: nil, pushMessage: nil, listed: nil).contents.texts)
    #expect(none.message == nil && none.pushMessage == nil && none.digest == nil)
  }

  /// As long as a portal may write it, where each byte takes six in JSON.
  @Test("The longest message is opened") func longest() async throws {
    let message = String(repeating: "\u{1}", count: 65_535) + "x"
    let texts = try #require(try await open(message: message).contents.texts)
    #expect(texts.message == "x" && texts.digest == SHA256.hash(Array(message.utf8)).lowercaseHex)
  }

  /// Fails if the text of the list, which a proxy can change, is shown beside a genuine request.
  @Test(
    "A list that shows another text than the signed one is refused",
    arguments: [
      ("p", "q", "login"), (nil, "p", "login"), ("", "p", "login"), ("p", "p", "payment"),
    ] as [(String?, String, String)])
  func otherTexts(signed: String?, listed: String, listedType: String) async throws {
    await #expect {
      try await open(pushMessage: signed, listed: listed, listedType: listedType)
    } throws: { error in
      (error as? TokenServerError)?.number == 10018 && "\(error)".contains("the pending list shows another")
    }
  }

  @Test("A list without texts is not compared") func listWithoutTexts() async throws {
    #expect(try await open(listed: nil, listedType: nil).contents.texts?.pushMessage == "p")
  }

  @Test("Texts are compared as they are shown") func comparedAsShown() async throws {
    let long = String(repeating: "a\n", count: 300)
    let shown = String(repeating: "a", count: 199) + "…"
    #expect(try await open(pushMessage: long, listed: shown).contents.texts?.pushMessage == long)
  }
}
