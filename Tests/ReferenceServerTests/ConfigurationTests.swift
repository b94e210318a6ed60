// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing

@testable import ReferenceServer
@testable import TokenServerCore

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ConfigurationTests {
  @Test("What init writes is the defaults", arguments: [false, true])
  func whatInitWritesIsTheDefaults(pin: Bool) throws {
    let configuration = try ConfigurationFile.parse(ConfigurationTemplate.text(pin: pin))
    var expected = ServerConfiguration()
    expected.application.pin = pin
    expected.types = [
      .init(name: "login", messages: ["en": "Do you want to log in?"]),
      .init(name: "payment", method: pin ? .pushWithPIN : .push, requestExpiresIn: 120),
    ]
    #expect(configuration == expected)
    #expect((configuration.application.pinPolicy != nil) == pin)
  }

  @Test("The URL of a database is one text of TOML, whatever characters it has") func escapedURL() {
    let text = ConfigurationTemplate.text(pin: false, database: "a\"\u{301}\\\u{301}")
    let setting = text.unicodeScalars.split(separator: "\n").first { String($0).hasPrefix("url = ") }
    #expect(setting.map { Array($0) } == Array("url = \"a\\\"\u{301}\\\\\u{301}\"".unicodeScalars))
  }

  private static let everySetting = """
    listen = "::1"
    port = 0
    issuer = "https://auth.example"
    access_log = true
    [tls]
    certificate = "a.pem"
    key = "b.key"
    [mobile_authentication]
    enabled = false
    enrollment = false
    push_enrollment_mode = "override"
    unique_server_keys = true
    max_message_length = 10
    callback_allow_list = true
    portal_platform_alias = "ios"
    result_retention_hours = 1
    minimum_software_version = "2.1"
    [limits]
    device_requests_per_second = 7
    open_requests_per_device = 3
    [application]
    id = "app"
    name = "App"
    pin = true
    max_pin_attempts = 10
    [application.pin_policy]
    length = 6
    max_repeats = 2
    sequences_allowed = true
    block_list = ["000000", "123456"]
    [mqtt]
    broker = "broker.example:99"
    authorities = "ca.pem"
    username = "u"
    password = "p"
    topic_prefix = "hints"
    [[callback]]
    url = "https://portal.example/cb"
    username = "u"
    password = "p"
    [[type]]
    name = "t"
    method = "push"
    request_expires_in = 5
    callback_on_expiry = true
    supersede = true
    delivery_required = true
    messages = { en = "Hello" }
    """

  @Test("Every setting") func everySetting() throws {
    let configuration = try ConfigurationFile.parse(Self.everySetting)
    #expect(configuration.listen == "::1" && configuration.port == 0 && configuration.accessLog)
    #expect(configuration.issuer == "https://auth.example")
    #expect(configuration.certificateFile == "a.pem" && configuration.privateKeyFile == "b.key")
    #expect(
      configuration.mobileAuthentication
        == .init(
          enabled: false, enrollment: false, pushEnrollmentMode: .override, uniqueServerKeys: true,
          maxMessageLength: 10,
          callbackAllowList: true, portalPlatformAlias: "ios", resultRetentionHours: 1, minimumSoftwareVersion: "2.1"))
    #expect(configuration.limits == .init(deviceRequestsPerSecond: 7, openRequestsPerDevice: 3))
    #expect(
      configuration.application
        == .init(
          id: "app", name: "App", pin: true, maxPINAttempts: 10, pinLength: 6, maxPINRepeats: 2,
          pinSequencesAllowed: true, pinBlockList: ["000000", "123456"]))
    #expect(
      configuration.application.pinPolicy
        == .init(
          length: 6, maxRepeats: 2, sequencesAllowed: true, blockList: ["000000", "123456"], maxFailureCount: 10))
    #expect(
      configuration.mqtt
        == .init(
          host: "broker.example", port: 99, authorityFile: "ca.pem", username: "u", password: "p",
          topicPrefix: "hints"))
    #expect(configuration.callbacks.first?.authorization == "Basic dTpw")
    #expect(
      configuration.types == [
        .init(
          name: "t", requestExpiresIn: 5, messages: ["en": "Hello"], callbackOnExpiry: true, supersede: true,
          deliveryRequired: true)
      ])
  }

  @Test(
    "Refused",
    arguments: [
      ("prot = 1", "unknown key \"prot\"; nearest is \"port\""),
      ("[mobile_authentication]\nenrolment = true", "is now called \"mobile_authentication.enrollment\""),
      ("port = 70000", "port"),
      ("port = \"x\"", "port"), ("issuer = \"http://a\"", "issuer"), ("issuer = \"https://a/\"", "issuer"),
      ("[mobile_authentication]\npush_enrollment_mode = \"many\"", "push_enrollment_mode"),
      ("[mobile_authentication]\nmax_message_length = 0", "max_message_length"),
      ("[[callback]]\nurl = \"ftp://a\"", "ftp://a"),
      ("[[callback]]\nurl = \"http://a\"\nusername = \"u\"", "both username and password"),
      ("[[callback]]\nusername = \"u\"", "url"), ("[[type]]\nname = \"a\"", "method"),
      ("[[type]]\nname = \"a\"\nmethod = \"otp\"", "not \"otp\""),
      ("[[type]]\nname = \"\"\nmethod = \"push\"", "name"),
      ("[[type]]\nname = \"a\"\nmethod = \"push\"\nrequest_expires_in = 0", "request_expires_in"),
      ("[[type]]\nname = \"a\"\nmethod = \"push\"\n[[type]]\nname = \"a\"\nmethod = \"push\"", "twice"),
      ("listen = ", "line 1, column 10"), ("port = 1\nport = 2", "line 2"),
      ("access_log = 1", "\"access_log\" must be true or false"), ("tls = 1", "\"tls\" must be a table"),
      ("callback = 1", "[[callback]]"), ("callback = [1]", "\"callback\" has an element that is not a table"),
      ("[[callback]]\nurl = \"https://a\"\n[[callback]]\nurl = 1", "\"callback[1].url\""),
      ("[[type]]\nname = \"a\"\nmethod = \"push\"\nmessages = { en = 1 }", "\"type[0].messages\""),
      ("[application.pin_policy]\nblock_list = [1]", "must be a list of strings"),
      ("[application]\nmax_pin_attempts = 0", "\"application.max_pin_attempts\" is 0; it must be 1 to 10"),
      ("[application]\nmax_pin_attempts = 11", "\"application.max_pin_attempts\" is 11; it must be 1 to 10"),
      ("[application.pin_policy]\nlength = 4", "\"application.pin_policy.length\" is 4; it must be 5 to 32"),
      ("[application.pin_policy]\nlength = 33", "\"application.pin_policy.length\" is 33"),
      ("[application.pin_policy]\nmax_repeats = 0", "\"application.pin_policy.max_repeats\" is 0"),
      ("[application.pin_policy]\nblock_list = [\"1234\"]", "has \"1234\"; a PIN has 5 digits"),
      ("[application.pin_policy]\nlength = 6\nblock_list = [\"12345\"]", "a PIN has 6 digits"),
      ("[application.pin_policy]\nblock_list = [\"1234x\"]", "block_list"),
      ("[application.pin_policy]\nblocklist = []", "blocklist"),
      ("[mqtt]\nusername = \"u\"", "mqtt.broker"), ("[mqtt]\nbroker = \"mqtts://b\"", "mqtt.broker"),
      ("[mqtt]\nbroker = \"b\"\nusername = \"u\"", "both username and password"),
      ("[mqtt]\nbroker = \"b\"\ntopic_prefix = \"a/#\"", "mqtt.topic_prefix"),
      ("[[type]]\nname = \"a\"\nmethod = \"push_with_pin\"", "needs application.pin = true"),
    ])
  func refused(text: String, names: String) { expectRefused(text, names) }

  private static let type = "[[type]]\nname = \"a\"\nmethod = \"push\"\n"
  private static let callback = "[[callback]]\nurl = \"https://a/\"\n"

  private static let issuers: [String] = [
    "https://a/x", "https://a b", "https://u@a", "https://a?x", "https://a:0", "https://a:65536", "https://é.example",
    "https://", "https://a:", "https://a#x", "HTTPS://a", "https://token_server:8443", "https://a!b", "https://a%41",
  ]
  private static let versions: [String] = ["x", "", "1.", "1..2", "1.0-beta", "99999999999999999999.0"]
  private static let others: [(String, String)] = [
    (
      "[mobile_authentication]\nmax_message_length = 3\n" + type + "messages = { nl = \"hallo\" }",
      "type \"a\": the message \"nl\" is longer than max_message_length, 3"
    ),
    ("[mobile_authentication]\nportal_platform_alias = \"a\\nb\"", "portal_platform_alias"),
    ("[application]\nname = \"\"", "application.name"), ("[application]\nid = \"a\\u0007\"", "application.id"),
    (callback + callback, "callback \"https://a/\" is defined twice"),
    (callback + "username = \"u:v\"\npassword = \"p\"", "has a colon in its username"),
    (callback + "username = \"u\"\npassword = \"p\\n\"", "has a control character"),
    ("[[callback]]\nurl = \"https://u:p@a/\"", "has a user or password"),
    ("[[type]]\nname = \"a\\nb\"\nmethod = \"push\"", "a type's name"),
    (type + "request_expires_in = 0", "type \"a\": \"request_expires_in\" is 0"),
    ("listen = \"\"", "\"listen\" is empty"), ("[operations]\nlisten = \"\"", "\"operations.listen\" is empty"),
    ("port = 9464\n[operations]", "\"operations.port\" and \"port\" are both 9464"),
    ("listen = \"0.0.0.0\"\n[operations]\nport = 8443", "are both 8443"),
  ]

  private static var wrongValues: [(String, String)] {
    var values = others
    for issuer in issuers { values.append(("issuer = \"\(issuer)\"", "\"issuer\" must be https://HOST[:PORT]")) }
    for version in versions {
      values.append(
        ("[mobile_authentication]\nminimum_software_version = \"\(version)\"", "must be numbers with dots"))
    }
    return values
  }

  @Test("A value that would fail later is refused", arguments: wrongValues)
  func wouldFailLater(text: String, names: String) { expectRefused(text, names) }

  @Test(
    "Values at the edge are accepted",
    arguments: [
      "issuer = \"https://[::1]:65535\"", "issuer = \"https://a.example\"", "port = 0\n[operations]\nport = 0",
      "[mobile_authentication]\nminimum_software_version = \"1\"",
      "listen = \"127.0.0.1\"\n[operations]\nlisten = \"127.0.0.2\"\nport = 8443",
    ])
  func accepted(text: String) throws { _ = try ConfigurationFile.parse(text) }

  @Test("A block list has as many PINs as tokens take, and no more") func longBlockList() throws {
    func text(count: Int) -> String {
      "[application.pin_policy]\nblock_list = [" + String(repeating: "\"28064\",", count: count) + "]"
    }
    let longest = try ConfigurationFile.parse(text(count: 10_000))
    #expect(longest.application.pinBlockList.count == 10_000)
    expectRefused(
      text(count: 10_001), "\"application.pin_policy.block_list\" has 10001 PINs; tokens take at most 10000")
  }

  private func expectRefused(_ text: String, _ names: String) {
    let refusal = #expect(throws: ConfigurationFile.ConfigurationError.self) { try ConfigurationFile.parse(text) }
    #expect(refusal?.description.contains(names) == true, "\(refusal?.description ?? "")")
  }

  @Test(
    "What the server calls itself",
    arguments: [
      ("127.0.0.1", "https://127.0.0.1:1"), ("::1", "https://[::1]:1"), ("0.0.0.0", "https://localhost:1"),
      ("::", "https://localhost:1"), ("auth.local", "https://auth.local:1"),
    ])
  func whatTheServerCallsItself(listen: String, issuer: String) {
    var configuration = ServerConfiguration()
    configuration.listen = listen
    #expect(configuration.issuer(onPort: 1) == issuer)
  }

  @Test(
    "Versions",
    arguments: [
      ("1.0.0", "1.0", false), ("0.9", "1.0", true), ("1.10", "1.9", false), ("1.9", "1.10", true),
      ("2.0-beta1", "2.0", false), ("", "0.0.1", true),
    ])
  func versions(one: String, other: String, isOlder: Bool) {
    #expect((SoftwareVersion(one) < SoftwareVersion(other)) == isOlder)
  }
}
