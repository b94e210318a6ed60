// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The cost of idle mechanisms of AM: memory by their number, with messages over the control socket or a broker.
enum PingAMIdleRows {
  private static let counts = [1, 100]
  /// The time after which the effects of the start are over.
  private static let settling = 5.0

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try AMStandIn(on: stage)
    let token = PushToken(on: stage, authority: server.wire.authority, named: "pingam-idle")
    let broker = try BenchBroker(on: stage, certificate: server.wire.authority)
    defer {
      token.end()
      broker.end()
    }
    var rows: [Row] = []
    var enrolled = 0
    for count in counts {
      for number in enrolled..<count { try server.register("user\(number)", at: token) }
      enrolled = count
      let mechanisms = "PingAM, \(count) \(count == 1 ? "mechanism" : "mechanisms")"
      for (settings, way) in [("", "control socket"), (broker.settings, "broker")] {
        let readings = try token.start(settings).readings
        pause(seconds: settling)
        if way == "broker" { try broker.requireSubscribers(count) }
        let (switches, processor) = (readings.wakeUps, readings.processorSeconds)
        pause(seconds: IdleRows.seconds)
        let perSecond = Double(readings.wakeUps(since: switches)) / IdleRows.seconds
        let busy = (readings.processorSeconds - processor) / IdleRows.seconds
        rows += [
          Row("\(mechanisms), \(way): memory", readings.memory),
          Row(
            "  idle: threads, wake-ups, processor",
            "\(readings.threads) threads, \(perSecond.text(2)) per second, \((busy * 100).text(2)) % of a core"),
        ]
        token.end()
      }
    }
    return rows
  }
}

/// Debian's mosquitto over TLS, which accepts all clients.
final class BenchBroker {
  private let child: Child
  private let port: UInt16
  private let log: String
  private let certificate: String

  init(on stage: Stage, certificate: String) throws {
    self.certificate = certificate
    log = "\(stage.directory)/mosquitto.log"
    let (descriptor, port) = Loopback.listening()
    close(descriptor)
    self.port = port
    let file = "\(stage.directory)/mosquitto.conf"
    // As root, mosquitto would switch to another user, who may not read this directory.
    try """
    user root
    listener \(port) \(Loopback.address)
    certfile \(certificate)
    keyfile \(certificate)
    allow_anonymous true
    log_dest stderr
    log_type subscribe
    """.write(toFile: file, atomically: false, encoding: .utf8)
    child = try Child("/usr/sbin/mosquitto", ["-c", file], log: log)
  }

  func end() { child.end() }

  /// For the token's configuration.
  var settings: String {
    "[mqtt]\nbroker = \"\(Loopback.address):\(port)\"\nauthorities = \"\(certificate)\"\n"
  }

  /// Requires this number of subscriptions since the broker's start: one per topic for each started token.
  func requireSubscribers(_ count: Int) throws {
    let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
    let mailboxes = Set(lines.filter { !$0.hasSuffix("/presence") }.compactMap { $0.split(separator: " ").last })
    guard mailboxes.count >= count else {
      throw BenchError("\(mailboxes.count) of \(count) mailboxes are subscribed to")
    }
  }
}
