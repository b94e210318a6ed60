// SPDX-License-Identifier: Apache-2.0
import HTTP
import Testing

@Suite("Origins and https addresses", .timeLimit(.minutes(1))) struct HTTPOriginTests {
  @Test(
    "An origin has one form only",
    arguments: [
      ("https://bank.example", "https://bank.example"), ("https://Bank.Example:443", "https://bank.example"),
      ("https://bank.example:8443", "https://bank.example:8443"), ("https://192.0.2.1:1", "https://192.0.2.1:1"),
      ("https://[2001:DB8::1]:444", "https://[2001:db8::1]:444"), ("https://[::1]", "https://[::1]"),
      ("https://xn--bcher-kva.example", "https://xn--bcher-kva.example"), ("https://a", "https://a"),
    ])
  func oneForm(text: String, origin: String) { #expect(HTTPOrigin(text)?.text == origin) }

  @Test(
    "The host of an origin has no port",
    arguments: [
      ("https://bank.example", "bank.example"), ("https://192.0.2.1:1", "192.0.2.1"), ("https://[::1]:444", "[::1]"),
      ("https://[::1]", "[::1]"),
    ])
  func host(text: String, host: String) { #expect(HTTPOrigin(text)?.host == host) }

  /// Fails if a text that two programs read differently is an origin.
  @Test(
    "Any other text is no origin",
    arguments: [
      "", "https://", "http://bank.example", "HTTPS://bank.example", "https://bank.example/", "https://bank.example?q",
      "https://user@bank.example", "https://bank.example:", "https://bank.example:0", "https://bank.example:65536",
      "https://bank.example:0443", "https://bank.example:4 43", "https://bank.example:+43", "https://.example",
      "https://bank..example", "https://bank.example.", "https://-bank.example", "https://bank-.example",
      "https://bank_.example", "https://bücher.example", "https://bank.example\n", "https://bank.example\\a",
      "https://[::1", "https://[]", "https://[::1]x", "https://[::1%25eth0]", "https://::1", "https://bank.example:1:2",
      "https://a%2eb", "https://" + String(repeating: "x", count: 64), "https://" + String(repeating: "x.", count: 150),
    ])
  func noOrigin(text: String) { #expect(HTTPOrigin(text) == nil) }

  @Test(
    "An address is an origin and a target",
    arguments: [
      ("https://Bank.example", "https://bank.example", "/"),
      ("https://bank.example?q=1", "https://bank.example", "/?q=1"),
      ("https://bank.example:8443/a/b?c=%2F&d=..", "https://bank.example:8443", "/a/b?c=%2F&d=.."),
      ("https://bank.example//a/...", "https://bank.example", "//a/..."),
    ])
  func addresses(text: String, origin: String, target: String) throws {
    let address = try #require(HTTPSAddress(text))
    #expect(address.origin.text == origin && address.target == target && address.text == origin + target)
  }

  /// Fails if a library sends another address than the one that was compared with the allow-list and signed.
  @Test(
    "What would be normalized or misread is no address",
    arguments: [
      "https://bank.example/../a", "https://bank.example/a/.", "https://bank.example/%2e%2E/a",
      "https://bank.example/.%2e",
      "https://bank.example/a#b", "https://bank.example/a b", "https://bank.example/a%2", "https://bank.example/a%zz",
      "https://bank.example/\u{E9}", "https://bank.example/a\u{7F}", "https://bank.example/a\r\nb",
      "https://bank.example@evil.example/", "https://bank.example\\@evil.example", "https://user:p@bank.example/",
      "https://bank.example/" + String(repeating: "x", count: 2048), "bank.example/", "https:///a",
    ])
  func noAddress(text: String) { #expect(HTTPSAddress(text) == nil) }
}
