// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation

/// Logins at a privacyIDEA with its built-in HTTP server and SQLite, one after the other: its processor time for each,
/// beside the token server's. A login is triggered by the portal, found by a poll of the token, accepted, and seen and
/// finished by the portal.
final class PrivacyIDEARows {
  private static let logins = 20

  private let stage: Stage
  private let directory: String
  private let origin: String
  private let child: Child
  private let key: RSAPrivateKey
  private var authorization: String?

  static func measure(on stage: Stage) throws -> [Row] {
    let measurement = try PrivacyIDEARows(on: stage)
    defer { measurement.child.end() }
    return try measurement.rows()
  }

  /// Installs privacyIDEA at the first run, which takes minutes.
  private init(on stage: Stage) throws {
    guard let program = ProcessInfo.processInfo.environment["BENCH_PUSH_SERVER"] else {
      throw BenchError("BENCH_PUSH_SERVER is not set: use scripts/bench")
    }
    self.stage = stage
    directory = "\(stage.directory)/privacyidea"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    let port = Loopback.freePort()
    origin = "https://localhost:\(port)/"
    // It ends with its standard input: a pipe to which nobody writes.
    child = try Child(
      "/bin/bash",
      [
        "-c", #"mkfifo "$2/input" && exec "$0" "$1" "$2" "$3" <>"$2/input""#, program, "privacyidea",
        directory, "\(port)",
      ],
      log: "\(stage.directory)/privacyidea.log")
    guard try child.readLine() == "ready" else { throw BenchError("privacyIDEA is not ready") }
    key = try RSAPrivateKey(bits: 2048)
  }

  private func rows() throws -> [Row] {
    let admin = try call("auth", form: ["username": "admin", "password": "admin"])
    authorization = (value(of: admin) as? [String: Any])?["token"] as? String
    try configure()
    let serial = try enroll()
    _ = try logIn(serial)
    let server = try readings()
    let (before, began) = (server.processorSeconds, Instant.now)
    for _ in 0..<Self.logins { try logIn(serial) }
    let each = (server.processorSeconds - before) / Double(Self.logins)
    let seconds = (Instant.now - began) / Double(Self.logins)
    return [
      Row("privacyIDEA, SQLite, one login after the other", "\((seconds * 1e3).text(0)) ms each, n = \(Self.logins)"),
      Row("  processor for each", "\((each * 1e3).text(0)) ms server"),
    ]
  }

  /// The server's process, a child of the script.
  private func readings() throws -> ProcessReadings {
    let file = "/proc/\(child.processID)/task/\(child.processID)/children"
    let children = try String(contentsOfFile: file, encoding: .utf8).split(separator: " ").compactMap { Int32($0) }
    guard let server = children.first, children.count == 1 else { throw BenchError("privacyIDEA has no process") }
    return ProcessReadings(processID: server)
  }

  private func configure() throws {
    let action = [
      "push_firebase_configuration": "poll only", "push_registration_url": "\(origin)ttype/push",
    ]
    _ = try call(
      "policy/push",
      json: [
        "scope": "enrollment", "action": action, "active": true, "realm": "", "resolver": "", "user": "", "client": "",
      ])
  }

  /// - Returns: the token's serial.
  private func enroll() throws -> String {
    let made = try call("token/init", json: ["type": "push", "genkey": 1])["detail"] as? [String: Any] ?? [:]
    guard let serial = made["serial"] as? String, let uri = (made["pushurl"] as? [String: Any])?["value"] as? String,
      let items = URLComponents(string: uri)?.queryItems,
      let credential = items.first(where: { $0.name == "enrollment_credential" })?.value
    else { throw BenchError("no push token: \(made)") }
    _ = try call(
      "ttype/push",
      form: [
        "serial": serial, "enrollment_credential": credential, "fbtoken": "no_firebase_token",
        "pubkey": key.publicKey.subjectPublicKeyInfo.base64,
      ])
    return serial
  }

  private func logIn(_ serial: String) throws {
    let triggered = try call("validate/triggerchallenge", form: ["serial": serial, "type": "push"])
    guard let transaction = (triggered["detail"] as? [String: Any])?["transaction_id"] as? String else {
      throw BenchError("not triggered: \(triggered)")
    }
    let time = String(Date.now.ISO8601Format(.iso8601(timeZone: .gmt, includingFractionalSeconds: true)).dropLast())
    let stamp = "\(time)+00:00"
    let poll = [
      "serial": serial, "timestamp": stamp,
      "signature": try key.signature(for: Array("\(serial)|\(stamp)".utf8)).base32,
    ]
    let challenges = value(of: try call("ttype/push", query: poll)) as? [[String: Any]]
    guard let nonce = challenges?.last?["nonce"] as? String else { throw BenchError("no challenge: \(poll)") }
    let signature = try key.signature(for: Array("\(nonce)|\(serial)".utf8)).base32
    _ = try call("ttype/push", form: ["serial": serial, "nonce": nonce, "signature": signature])
    _ = try call("validate/polltransaction/\(transaction)", query: [:])
    let checked = try call("validate/check", form: ["serial": serial, "transaction_id": transaction, "pass": ""])
    guard (checked["result"] as? [String: Any])?["authentication"] as? String == "ACCEPT" else {
      throw BenchError("not accepted: \(checked)")
    }
  }

  private func value(of answer: [String: Any]) -> Any? { (answer["result"] as? [String: Any])?["value"] }

  /// With a form or JSON a POST, otherwise a GET.
  private func call(
    _ path: String, form: [String: String] = [:], json: [String: Any]? = nil, query: [String: String]? = nil
  ) throws -> [String: Any] {
    var arguments = ["--silent", "--max-time", "60", "--cacert", "\(directory)/tls.pem"]
    if let authorization { arguments += ["--header", "Authorization: \(authorization)"] }
    if query != nil { arguments.append("--get") }
    for (name, value) in form.merging(query ?? [:], uniquingKeysWith: { own, _ in own }) {
      arguments += ["--data-urlencode", "\(name)=\(value)"]
    }
    if let json {
      let body = String(decoding: try JSONSerialization.data(withJSONObject: json), as: UTF8.self)
      arguments += ["--header", "Content-Type: application/json", "--data", body]
    }
    let output = try Child.run("curl", arguments + [origin + path], log: "\(stage.directory)/curl.log")
    guard let answer = try JSONSerialization.jsonObject(with: Data(output)) as? [String: Any],
      (answer["result"] as? [String: Any])?["status"] as? Bool == true
    else { throw BenchError("\(path): \(String(decoding: output, as: UTF8.self))") }
    return answer
  }
}
