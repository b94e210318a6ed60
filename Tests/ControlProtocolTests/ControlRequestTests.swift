// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct ControlRequestTests {
  private static var enrollment: EnrollmentOptions {
    var options = EnrollmentOptions(uri: "otpauth://totp/a?secret=A\n\u{1F600}")
    options.server = "https://a"
    options.name = "mail"
    options.authorities = "/ca.pem"
    options.pins = ["A", "B"]
    options.dropsPins = true
    options.asksPIN = true
    options.mailbox = "m"
    options.networkWait = 60
    return options
  }

  @Test(
    "Each request survives being written",
    arguments: [
      .status, .pending, .reload, .enroll(enrollment), .enroll(EnrollmentOptions(uri: "")),
      .push(message: "{\"a\":\"\\\"\"}"), .logIn(account: nil, authenticator: nil),
      .logIn(account: "a", authenticator: "b"), .authenticators(account: nil), .authenticators(account: "a"),
      .registerAuthenticator(account: "a", identifier: "b"), .deregisterAuthenticator(account: "a", identifier: "b"),
      .preferAuthenticator(account: "a", identifier: "b"), .logOut, .changePIN(account: nil),
      .oneTimePassword(account: "é"), .forget(account: "a"), .simulate(.hold(milliseconds: .max)),
      .simulate(.doublePress), .simulate(.notMe), .simulate(.keys(["1", "enter"])),
      .simulate(.chip(isConnected: false)), .led,
      .selfTest, .followLED, .followBoard, .pressButton(.approve), .pressButton(.deny),
      .releaseButton(heldMilliseconds: .min), .watch,
      .events(follow: true), .events(follow: false), .enrollAgain(account: "a"),
      .disenroll(account: "a", pushOnly: true), .disenroll(account: "a", pushOnly: false), .show(transaction: "t"),
      .factoryReset,
    ] as [ControlRequest])
  func roundTrip(request: ControlRequest) throws {
    #expect(try ControlRequest(line: request.line) == request)
    #expect(!request.line.contains(UInt8(ascii: "\n")))
  }

  @Test("The pins of an enrollment are few and short") func pinsAreBounded() throws {
    func request(_ pins: [String]) -> [UInt8] {
      var options = EnrollmentOptions(uri: "u")
      options.pins = pins
      return ControlRequest.enroll(options).line
    }
    let longest = String(repeating: "A", count: EnrollmentOptions.longestPin)
    let most = Array(repeating: longest, count: EnrollmentOptions.mostPins)
    #expect(try ControlRequest(line: request(most)).line == request(most))
    for pins in [most + ["A"], [longest + "A"]] {
      let error = try #require(throws: CommandError.self) { try ControlRequest(line: request(pins)) }
      #expect(error.code == .badData && error.description.contains("\"pins\""), "\(error)")
    }
  }

  @Test("The wait for a network has bounds", arguments: [-1, EnrollmentOptions.longestNetworkWait + 1])
  func networkWait(seconds: Int) throws {
    var options = EnrollmentOptions(uri: "u")
    options.networkWait = seconds
    let error = try #require(throws: CommandError.self) {
      try ControlRequest(line: ControlRequest.enroll(options).line)
    }
    #expect(error.code == .badData && error.description.contains("\"networkWait\""), "\(error)")
  }

  @Test("The form of requests without a version is that of version 1") func withoutVersion() throws {
    #expect(
      try ControlRequest(line: Array(#"{"request":"hold","milliseconds":1000,"more":[{}]}"#.utf8))
        == .simulate(.hold(milliseconds: 1000)))
    var options = EnrollmentOptions(uri: "u")
    options.name = "a"
    #expect(
      try ControlRequest(line: Array(#"{"account":"a","request":"enroll","uri":"u"}"#.utf8)) == .enroll(options))
    #expect(String(decoding: ControlRequest.led.line, as: UTF8.self) == #"{"request":"led","version":1}"#)
  }

  @Test(
    "What a simulated authenticator says survives the socket",
    arguments: [
      .data("4711"), .data(""), .cancel(reason: "no"), .retry(reason: "again"), .fallback, .touch, .badge("x"), .noKey,
      .noBadge,
    ]
      as [SimulatedAnswer])
  func simulatedAnswers(answer: SimulatedAnswer) throws {
    let request = ControlRequest.simulate(.authenticator(answer))
    #expect(try ControlRequest(line: request.line) == request)
  }

  @Test(
    "A request of another release is refused with a remedy",
    arguments: [
      (#"{"request":"status","version":2}"#, "uses version 2 of the control protocol, the service version 1"),
      (#"{"request":"fly","version":0,"x":1}"#, "uses version 0"),
      (#"{"request":"fly"}"#, "does not know the request \"fly\""),
      (#"{"request":"fly","version":1,"milliseconds":"soon"}"#, "does not know the request \"fly\""),
    ])
  func otherReleases(line: String, reason: String) throws {
    let error = try #require(throws: CommandError.self) { try ControlRequest(line: Array(line.utf8)) }
    #expect(error.code == .refused)
    #expect(error.description.contains(reason) && error.description.contains("restart the service"), "\(error)")
  }

  @Test(
    "A malformed request is bad data, and names the member",
    arguments: [
      ("", "not JSON"), ("[]", ""), ("{}", "\"request\" is missing"), (#"{"request":5}"#, "\"request\""),
      (#"{"request":"hold"}"#, "\"milliseconds\" is missing"), (#"{"request":"hold","milliseconds":1.5}"#, "number"),
      (#"{"request":"hold","milliseconds":9223372036854775808}"#, "number"),
      (#"{"request":"keys","keys":[1]}"#, "\"keys[0]\" is not a string"),
      (#"{"request":"push"}"#, "\"message\" is missing"),
      (#"{"request":"enroll"}"#, "\"uri\" is missing"), (#"{"request":"forget"}"#, "\"account\" is missing"),
      (#"{"request":"show"}"#, "\"transaction\" is missing"),
      (#"{"request":"log-in","account":5}"#, "\"account\""), (#"{"request":"led","request":"led"}"#, "there twice"),
    ])
  func malformed(line: String, reason: String) throws {
    let error = try #require(throws: CommandError.self) { try ControlRequest(line: Array(line.utf8)) }
    #expect(error.code == .badData && error.description.contains(reason), "\(error)")
  }

  @Test("A request with too many levels is bad data") func levels() throws {
    try malformed(line: #"{"request":"led","x":"# + String(repeating: "[", count: 100_000), reason: "levels")
  }
}

@Suite(.timeLimit(.minutes(5))) struct ControlResponseTests {
  private func read(_ line: String) throws -> ControlResponse<CodeResponse> {
    try ControlResponse(line: Array(line.utf8))
  }

  @Test("A failure keeps code and number; an unknown code is \"refused\"") func failures() throws {
    guard case .failure(let error) = try read(#"{"code":69,"error":"no","number":9003}"#),
      case .failure(let unknown) = try read(#"{"code":1,"error":"no"}"#)
    else {
      Issue.record("no failure")
      return
    }
    #expect(error.code == .unavailable && error.description == "no" && error.number == 9003)
    #expect(unknown.code == .refused && unknown.number == nil)
  }

  @Test("Progress differs from the answer, and the largest counter is read")
  func progressDiffersFromTheAnswerAndTheLargestCounterIsRead() throws {
    guard case .progress("type the PIN") = try read(#"{"progress":"type the PIN"}"#),
      case .answer(let code) = try read(#"{"account":"a","code":"123456","counter":9223372036854775807}"#)
    else {
      Issue.record("no progress or no answer")
      return
    }
    #expect(code.counter == UInt64(Int64.max) && code.code == "123456")
  }

  @Test("Another text is bad data") func otherTexts() throws {
    let error = try #require(throws: CommandError.self) { try read(#"{"done":true}"#) }
    #expect(error.code == .badData && error.description.contains("the service's answer is not understood"))
  }
}
