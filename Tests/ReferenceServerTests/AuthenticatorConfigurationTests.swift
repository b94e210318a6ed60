// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import ReferenceServer
@testable import TokenServerCore

/// The settings about authenticators.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct AuthenticatorConfigurationTests {
  private static let switches = "[application]\npin = true\nbiometric = true\ncustom_authenticators = true\n"
  private static let finger = "[[authenticator]]\nid = \"finger\"\nname = \"F\"\nkind = \"biometric\"\n"
  private static let key = "[[authenticator]]\nid = \"key\"\nname = \"K\"\nkind = \"custom\"\n"
  private static let badge = """
    [[authenticator]]
    id = "badge"
    name = "Badge"
    kind = "custom"
    scripts = "badge"

    """
  private static func type(_ method: String, _ more: String = "") -> String {
    "[[type]]\nname = \"t\"\nmethod = \"\(method)\"\n\(more)\n"
  }

  @Test("Everything set") func everything() throws {
    let text =
      Self.switches + Self.finger + Self.badge + "time_limit_seconds = 5\nmax_failures = 7\nuser = \"nobody\"\n"
      + Self.type("push_with_custom_authenticator", "authenticator = \"badge\"\nfallback = \"none\"")
    let configuration = try ConfigurationFile.parse(text)
    let badge = try #require(configuration.authenticator("badge"))
    #expect(badge.kind == .custom && badge.name == "Badge" && badge.scripts == "badge" && badge.user == "nobody")
    #expect(badge.timeLimitSeconds == 5 && badge.maxFailures == 7)
    #expect(configuration.types[0].authenticator == "badge" && !configuration.types[0].fallsBackToPIN)
    #expect(configuration.offered("finger", kind: .biometric) != nil)
    #expect(configuration.offered("finger", kind: .custom) == nil && configuration.offered("x", kind: .custom) == nil)
  }

  @Test("Fingerprint and custom authenticators are enabled each by itself", arguments: [true, false], [true, false])
  func eachByItself(hasFinger: Bool, hasCustom: Bool) throws {
    let switches = "[application]\npin = true\nbiometric = \(hasFinger)\ncustom_authenticators = \(hasCustom)\n"
    let configuration = try ConfigurationFile.parse(switches + Self.finger + Self.badge)
    #expect((configuration.offered("finger", kind: .biometric) != nil) == hasFinger)
    #expect((configuration.offered("badge", kind: .custom) != nil) == hasCustom)
  }

  @Test("Custom authenticators are a feature of a server that defines one") func definedByTheServer() throws {
    #expect(try ConfigurationFile.parse(Self.switches).offered("badge", kind: .custom) == nil)
    #expect(try ConfigurationFile.parse(Self.switches + Self.badge).offered("badge", kind: .custom) != nil)
    let type = Self.type("push_with_custom_authenticator")
    #expect(throws: ConfigurationFile.ConfigurationError.self) { try ConfigurationFile.parse(Self.switches + type) }
  }

  @Test("The application allows custom authenticators") func allowedByTheApplication() throws {
    let type = Self.type("push_with_custom_authenticator")
    let allowed = try ConfigurationFile.parse(Self.switches + Self.badge + type)
    #expect(allowed.offered("badge", kind: .custom) != nil && allowed.types[0].authenticator == "badge")
    let application = "[application]\npin = true\n"
    #expect(try ConfigurationFile.parse(application + Self.badge).offered("badge", kind: .custom) == nil)
    #expect(throws: ConfigurationFile.ConfigurationError.self) {
      try ConfigurationFile.parse(application + Self.badge + type)
    }
  }

  @Test("Alternatives can be of both kinds") func alternatives() throws {
    let text = Self.switches + Self.finger + Self.badge + Self.key + "signature = \"badge\"\n"
    let type = Self.type("push_with_fingerprint", "alternatives = [\"key\", \"badge\"]")
    let parsed = try #require(try ConfigurationFile.parse(text + type).types.first)
    #expect(parsed.authenticator == "finger" && parsed.alternatives == ["key", "badge"])
  }

  @Test("A built-in verifier needs no scripts", arguments: ServerConfiguration.Authenticator.SignatureScheme.allCases)
  func builtIn(scheme: ServerConfiguration.Authenticator.SignatureScheme) throws {
    let text = Self.switches + Self.key + "signature = \"\(scheme.rawValue)\"\nmax_failures = 7\n"
    let key = try #require(try ConfigurationFile.parse(text).authenticator("key"))
    #expect(key.signature == scheme && key.maxFailures == 7 && key.scripts.isEmpty)
  }

  @Test("Defaults: the only authenticator of the kind, and the PIN as the fallback") func defaults() throws {
    let text = Self.switches + Self.finger + Self.badge + Self.type("push_with_fingerprint")
    let configuration = try ConfigurationFile.parse(text)
    #expect(configuration.types[0].authenticator == "finger" && configuration.types[0].fallsBackToPIN)
    let badge = try #require(configuration.authenticator("badge"))
    #expect(badge.timeLimitSeconds == 10 && badge.maxFailures == 3 && badge.user == nil)
    let off = try ConfigurationFile.parse("[application]\npin = true\n" + Self.finger + Self.badge)
    #expect(off.offered("finger", kind: .biometric) == nil && off.offered("badge", kind: .custom) == nil)
    #expect(try ConfigurationFile.parse(Self.type("push", "requires_display = true")).types[0].requiresDisplay)
    #expect(try ConfigurationFile.parse(Self.type("push", "read_back = \"digits\"")).types[0].readsBack)
    #expect(try !ConfigurationFile.parse(Self.type("push")).types[0].readsBack)
  }

  static let refusals: [([String], String)] = [
    (["[application]\nbiometric = true\n"], "need application.pin = true"),
    ([switches, finger, finger], "\"finger\": is defined twice"),
    ([switches, "[[authenticator]]\nid = \"pin\"\nname = \"x\"\nkind = \"biometric\""], "not \"pin\""),
    ([switches, "[[authenticator]]\nid = \"..\"\nname = \"x\"\nkind = \"biometric\""], "and is not"),
    ([switches, "[[authenticator]]\nid = \"A b\"\nname = \"x\"\nkind = \"biometric\""], "1 to 64 of"),
    ([switches, "[[authenticator]]\nid = \"a\"\nname = \"\"\nkind = \"biometric\""], "the name has"),
    ([switches, "[[authenticator]]\nid = \"a\"\nname = \"x\"\nkind = \"pin\""], "the kind is"),
    ([switches, "[[authenticator]]\nid = \"a\"\nname = \"x\"\nkind = \"custom\""], "\"scripts\" must be"),
    ([switches, finger, "scripts = \"x\""], "are for kind = \"custom\""),
    ([switches, finger, "signature = \"badge\""], "are for kind = \"custom\""),
    ([switches, key, "signature = \"rsa\""], "is \"security_key\" or \"badge\""),
    ([switches, key, "signature = \"badge\"\nscripts = \"x\""], "are not for an authenticator with"),
    ([switches, key, "signature = \"badge\"\ntime_limit_seconds = 1"], "are not for an authenticator with"),
    ([switches, badge, "time_limit_seconds = 61"], "authenticator \"badge\": \"time_limit_seconds\" is 61"),
    ([switches, badge, "max_failures = 0"], "authenticator \"badge\": \"max_failures\" is 0"),
    ([switches, badge, "user = \"-x y\""], "not a user name"),
    ([switches, badge, "script = \"x\""], "script"),
    ([type("push_with_fingerprint")], "needs application.biometric = true"),
    (["[application]\npin = true\n", type("push_with_custom_authenticator")], "application.custom_authenticators"),
    ([switches, type("push_with_fingerprint")], "must be the id of one [[authenticator]]"),
    ([switches, finger, type("push_with_fingerprint", "authenticator = \"x\"")], "must be the id of one"),
    ([switches, finger, badge, type("push_with_fingerprint", "authenticator = \"badge\"")], "kind \"biometric\""),
    ([switches, finger, type("push_with_fingerprint", "fallback = \"sms\"")], "the fallback is"),
    ([type("push", "fallback = \"none\"")], "are for methods with an authenticator"),
    ([type("push", "alternatives = [\"finger\"]")], "are for methods with an authenticator"),
    ([switches, finger, type("push_with_fingerprint", "alternatives = [\"finger\"]")], "must be ids of other"),
    ([switches, finger, type("push_with_fingerprint", "alternatives = [\"x\"]")], "must be ids of other"),
    (
      ["[application]\npin = true\nbiometric = true\n", finger, badge]
        + [type("push_with_fingerprint", "alternatives = [\"badge\"]")], "must be ids of other"
    ),
    ([type("push", "read_back = \"words\"")], "\"read_back\" can only be \"digits\""),
    ([type("otp")], "this version offers the methods"),
  ]

  @Test("What is wrong is named", arguments: refusals)
  func refused(parts: [String], names: String) {
    let text = parts.joined()
    let error = #expect(throws: ConfigurationFile.ConfigurationError.self) { try ConfigurationFile.parse(text) }
    #expect(error?.description.contains(names) == true, "\(error?.description ?? "")")
  }
}
