// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct AccountNameTests {
  @Test("A name is made of the user, the host and, if it is taken, a number")
  func suggestion() {
    let server = TokenServerID("example.com:8443")
    #expect(accountName(of: "ann", at: server, except: []) == "ann@example.com")
    #expect(accountName(of: "ann", at: server, except: ["ann@example.com"]) == "ann@example.com-2")
    #expect(
      accountName(of: "ann", at: server, except: ["ann@example.com", "ann@example.com-2"]) == "ann@example.com-3")
  }

  @Test(
    "No name is made of a user who cannot be part of one",
    arguments: [
      "", "ann smith", "a\nb", "\u{202E}", "$(reboot)", "a;b", "--json", "-a", ".a", "münch",
      String(repeating: "x", count: 64),
    ])
  func noSuggestion(user: String) {
    #expect(accountName(of: user, at: TokenServerID("example.com"), except: []) == nil)
  }

  @Test("The host of an IPv6 address is the address") func addressHost() {
    #expect(accountName(of: "a.b", at: TokenServerID("[2001:db8::1]:443"), except: []) == "a.b@[2001:db8::1]")
  }

  @Test("No number is endless") func bounded() {
    let taken = Set(["a@b"] + (2...99).map { "a@b-\($0)" })
    #expect(accountName(of: "a", at: TokenServerID("b"), except: taken) == nil)
  }
}
