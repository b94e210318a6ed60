// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// The states of `reader-finger` with libfprint's virtual device, which compares the names of fingers.
@Suite("The states of the fingerprint reader", .serialized, .timeLimit(.minutes(5))) struct StateTests {
  private static let waiting = "waiting: finger"

  /// Presents fingers, one after each request for one.
  private func register(_ fingers: [String]) throws -> String {
    let reader = try ReaderProcess(.device)
    reader.ask("register")
    for (number, finger) in fingers.enumerated() {
      try #require(try reader.next() == "waiting: finger, scan \(number + 1) of 7")
      try reader.present("SCAN \(finger)")
    }
    let answer = try reader.next()
    #expect(try reader.next() == "end")
    #expect(try reader.end() == 0)
    return answer
  }

  private func registration() throws -> String {
    let answer = try register(Array(repeating: "index", count: 7))
    try #require(answer.hasPrefix("registration: "))
    return String(answer.dropFirst(14))
  }

  private func reader(asking registration: String, keepsEnd: Bool = false) throws -> ReaderProcess {
    let reader = try ReaderProcess(.device, keepsEnd: keepsEnd)
    reader.ask("authenticate", registration: registration)
    try #require(try reader.next() == Self.waiting)
    return reader
  }

  @Test("A finger is registered after five scans and two more, and is recognized") func registeredAndRecognized() throws
  {
    let reader = try reader(asking: registration())
    try reader.present("SCAN index")
    #expect(try reader.next() == "data: ")
    #expect(try reader.next() == "end")
    #expect(try reader.end() == 0)
  }

  @Test("The connection ends with the answer, also if the service manager keeps it open") func endOfTheConnection()
    throws
  {
    let reader = try reader(asking: registration(), keepsEnd: true)
    try reader.present("SCAN index")
    #expect(try reader.next() == "data: ")
    #expect(try reader.next() == "end")
  }

  @Test("Another finger does not match") func strangerDoesNotMatch() throws {
    let reader = try reader(asking: registration())
    try reader.present("SCAN thumb")
    #expect(try reader.next() == "cancel: no match")
    #expect(try reader.end() == 0)
  }

  @Test(
    "A finger that is on the sensor already counts only after it was lifted",
    arguments: [["FINGER 1", "FINGER 0"], ["FINGER 1", "SCAN index"], ["RETRY 2"]])
  func fingerThatIsThere(commands: [String]) throws {
    let registration = try registration()
    let reader = try ReaderProcess(.device, options: ["--virtual-readers", "5000"])
    reader.ask("authenticate", registration: registration)
    try reader.needsFinger()
    try reader.present(commands[0])
    #expect(try reader.next() == "retry: remove the finger")
    // The scan matches.
    for command in commands.dropFirst() { try reader.present(command) }
    try #require(try reader.next() == Self.waiting)
    try reader.present("SCAN index")
    #expect(try reader.next() == "data: ")
    #expect(try reader.end() == 0)
  }

  @Test(
    "A scan that failed is repeated, and decides nothing",
    arguments: [(0, "not recognized"), (1, "too short"), (2, "not centered"), (3, "remove the finger")])
  func retry(code: Int, advice: String) throws {
    let reader = try reader(asking: registration())
    for _ in 0..<4 {
      try reader.present("RETRY \(code)")
      #expect(try reader.next() == "retry: \(advice)")
      #expect(try reader.next() == Self.waiting)
    }
    try reader.present("SCAN index")
    #expect(try reader.next() == "data: ")
  }

  @Test("A failed scan of a registration does not count as one of the five") func retryOfRegistration() throws {
    let reader = try ReaderProcess(.device)
    reader.ask("register")
    for number in 1...7 {
      #expect(try reader.next() == "waiting: finger, scan \(number) of 7")
      try reader.present("RETRY 2")
      #expect(try reader.next() == "retry: not centered")
      #expect(try reader.next() == "waiting: finger, scan \(number) of 7")
      try reader.present("SCAN index")
    }
    #expect(try reader.next().hasPrefix("registration: "))
  }

  @Test("A registration whose last two scans are of another finger fails", arguments: [5, 6])
  func otherFingerAtTheEnd(from scan: Int) throws {
    let fingers = (0...scan).map { $0 < scan ? "index" : "thumb" }
    #expect(try register(fingers) == "cancel: not the same finger each time")
  }

  @Test(
    "A failure of the reader is an answer",
    arguments: [
      ("ERROR 0", "the reader failed"), ("ERROR 257", "the reader is too hot"), ("UNPLUG", "the reader was removed"),
    ])
  func failures(command: String, reason: String) throws {
    let registration = try registration()
    let asked = try reader(asking: registration)
    try asked.present(command)
    #expect(try asked.next() == "cancel: \(reason)")
    #expect(try asked.next() == "end")
    #expect(try asked.end() == 0)
    let registering = try ReaderProcess(.device)
    registering.ask("register")
    #expect(try registering.next().hasPrefix(Self.waiting))
    try registering.present(command)
    #expect(try registering.next() == "cancel: \(reason)")
    #expect(try registering.end() == 0)
  }

  @Test("A reader whose service hangs up ends without an answer", arguments: [true, false])
  func hungUp(registers: Bool) throws {
    let reader = try ReaderProcess(.device)
    if registers { reader.ask("register") } else { reader.ask("authenticate", registration: try registration()) }
    try #require(try reader.next().hasPrefix(Self.waiting))
    reader.hangUp()
    #expect(try reader.end() == 0)
  }

  @Test("A second line ends the reader without an answer") func secondLine() throws {
    let reader = try reader(asking: registration())
    reader.send("{}\n")
    #expect(try reader.next() == "end")
    #expect(try reader.end() == 0)
  }

  @Test("A virtual reader is refused without the option for tests") func virtualReadersAreRefused() throws {
    for virtual in [ReaderProcess.VirtualReader.device, .image] {
      let reader = try ReaderProcess(virtual, options: [])
      reader.ask("register")
      #expect(try reader.next() == "cancel: there is no fingerprint reader")
      #expect(try reader.end() == 0)
    }
  }

  @Test("Without a reader, there is an answer") func noReader() throws {
    let reader = try ReaderProcess(nil)
    reader.ask("authenticate", registration: "AAAA")
    #expect(try reader.next() == "cancel: there is no fingerprint reader")
  }

  @Test("A deregistration has nothing to remove") func deregistration() throws {
    let reader = try ReaderProcess(.device)
    reader.ask("deregister")
    #expect(try reader.next() == "data: ")
  }

  /// Why the service authenticates a registration before it is here.
  @Test("A damaged registration ends the reader, by a signal or with a reason", arguments: [0, 3, 24, 40])
  func damagedRegistration(length: Int) throws {
    let bytes = try #require(Data(base64Encoded: try registration()))
    let reader = try ReaderProcess(.device)
    reader.ask("authenticate", registration: bytes.prefix(length).base64EncodedString())
    let answer = try reader.next()
    #expect(["end", "cancel: the registration is of another reader"].contains(answer))
    _ = try reader.end()
  }
}
