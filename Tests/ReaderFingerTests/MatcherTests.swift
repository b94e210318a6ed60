// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

/// libfprint's own matcher, with images of synthetic fingers.
@Suite("The matcher of the fingerprint reader", .serialized, .timeLimit(.minutes(5))) struct MatcherTests {
  private struct Result {
    let answer: String
    let advice: [String]
    /// What the matcher found, the best of the registered images for each scan; its threshold is 40.
    let scores: [Int]
  }

  /// Runs the reader and presents the images, one after each request for a finger.
  private func run(_ step: String, _ registration: String? = nil, _ images: [[UInt8]]) throws -> Result {
    let reader = try ReaderProcess(.image)
    reader.ask(step, registration: registration)
    var (images, advice) = (images[...], [String]())
    while let (name, value) = try reader.line() {
      switch name {
      case "waiting":
        try reader.present(try #require(images.first))
        images = images.dropFirst()
      case "retry": advice.append(value)
      default:
        #expect(try reader.next() == "end")
        #expect(try reader.end() == 0)
        let scores = reader.errors.matches(of: /score (\d+)\//).compactMap { Int($0.output.1) }
        return Result(answer: "\(name): \(value)", advice: advice, scores: scores)
      }
    }
    Issue.record("the reader ended without an answer: \(reader.errors.suffix(500))")
    return Result(answer: "end", advice: advice, scores: [])
  }

  private func registration(_ images: [[UInt8]]) throws -> String {
    let result = try run("register", nil, images)
    try #require(result.answer.hasPrefix("registration: "), "\(result)")
    return String(result.answer.dropFirst(14))
  }

  @Test("Three fingers are recognized, and are not mistaken for each other") func threeFingers() throws {
    let names = ["alice", "bob", "carol"]
    let fingers = try names.map { try SyntheticFinger($0) }
    let registrations = try fingers.map { finger in try registration((0..<7).map { finger.impression($0) }) }
    for (owner, registration) in zip(names, registrations) {
      for (name, finger) in zip(names, fingers) {
        for number in name == owner ? 10..<12 : 10..<11 {
          let result = try run("authenticate", registration, [finger.impression(number)])
          #expect(result.answer == (name == owner ? "data: " : "cancel: no match"), "\(name) for \(owner): \(result)")
          let best = try #require(result.scores.max())
          // Far from the threshold of 40: the fixtures are chosen for it.
          #expect(name == owner ? best > 100 : best < 25, "\(name) for \(owner): \(result.scores)")
        }
      }
    }
  }

  /// libfprint accepts the five images of an enrollment without a comparison.
  @Test("A registration of two fingers fails at the scans that repeat the finger") func mixedFingers() throws {
    let (alice, bob) = try (SyntheticFinger("alice"), SyntheticFinger("bob"))
    let images = (0..<5).map { alice.impression($0) } + [alice.impression(5), bob.impression(6)]
    #expect(try run("register", nil, images).answer == "cancel: not the same finger each time")
  }

  @Test("An image without ridges is repeated, and is not a wrong finger") func blankImage() throws {
    let alice = try SyntheticFinger("alice")
    let registration = try registration((0..<7).map { alice.impression($0) })
    let result = try run("authenticate", registration, [SyntheticFinger.blank, alice.impression(12)])
    #expect(result.answer == "data: " && result.advice.count == 1, "\(result)")
  }
}
