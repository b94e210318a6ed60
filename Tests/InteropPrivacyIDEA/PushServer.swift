// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import FreePorts
import ProgramHarness
import Synchronization

/// A private privacyIDEA or eduMFA on loopback, with administrator and portal calls by curl.
final class PushServer: Sendable {
  struct PushServerError: Error, CustomStringConvertible { let description: String }

  enum Product: String {
    case privacyIDEA = "privacyidea"
    case eduMFA = "edumfa"
  }

  /// One server for all tests, which use it one after the other.
  static let shared = Result { try PushServer() }

  let product: Product
  let tokenType: String
  let directory: URL
  let port: Int
  private let process: Process
  private let orders: Pipe
  private let output = Pipe()
  private let token = Mutex("")

  /// Returns when it listens. The first run installs it, which takes minutes.
  /// - Parameter tokenType: nil for the product's default.
  init(_ product: Product = .privacyIDEA, tokenType: String? = nil) throws {
    self.product = product
    self.tokenType = tokenType ?? (product == .eduMFA ? "edupush" : "push")
    directory = FileManager.default.temporaryDirectory.appending(path: "\(product.rawValue)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    port = try FreePort.reserve()
    process = Process()
    process.executableURL = Bundle.module.url(
      forResource: "push-server", withExtension: nil, subdirectory: "Fixtures")
    process.arguments = [product.rawValue, directory.path, "\(port)"]
    orders = Pipe()
    process.standardInput = orders
    process.standardOutput = output
    try process.run()
    try expect("ready")
    let answer = try call("auth", form: ["username": "admin", "password": "admin"])
    let value = (answer["result"] as? [String: Any])?["value"] as? [String: Any]
    token.withLock { $0 = value?["token"] as? String ?? "" }
    try policy(
      "push", scope: "enrollment",
      [
        "\(self.tokenType)_firebase_configuration": "poll only",
        "\(self.tokenType)_registration_url": "https://localhost:\(port)/ttype/\(self.tokenType)",
      ])
  }

  deinit {
    try? orders.fileHandleForWriting.close()
    waitForEnd(within: .seconds(60))
    try? FileManager.default.removeItem(at: directory)
  }

  /// Kills it if it has not ended in time. Other signals may be blocked in it, as in this process.
  private func waitForEnd(within limit: Duration) {
    let deadline = ContinuousClock.now + limit
    while process.isRunning, ContinuousClock.now < deadline { usleep(10_000) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  private func expect(_ word: String) throws {
    // It makes keys and a database first: some of its programs, each of which takes 5 s of an idle processor.
    let isThere = isReadable(output.fileHandleForReading.fileDescriptor, within: .seconds(300))
    let line = isThere ? String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) : ""
    guard line != "\(word)\n" else { return }
    // At the end of its output it ends by itself.
    waitForEnd(within: isThere && line.isEmpty ? .seconds(60) : .zero)
    process.waitUntilExit()
    let code = process.terminationReason == .exit ? "\(process.terminationStatus)" : "none"
    throw PushServerError(
      description: "\(product) did not say \(word) but \"\(line)\": exit code \(code), 69 is PyPI out of reach")
  }

  /// Stops the server; when this returns, its port is closed.
  func stop() throws {
    try orders.fileHandleForWriting.write(contentsOf: Data("stop\n".utf8))
    try expect("stopped")
  }

  /// Starts the server again with its stored data; returns when it listens.
  func start() throws {
    try orders.fileHandleForWriting.write(contentsOf: Data("start\n".utf8))
    try expect("ready")
  }

  var authority: String { directory.appending(path: "tls.pem").path }

  func policy(_ name: String, scope: String, _ action: [String: String]) throws {
    try configure(
      "policy/\(name)",
      ["scope": scope, "action": action, "active": true, "realm": "", "resolver": "", "user": "", "client": ""])
  }

  func removePolicy(_ name: String) throws { try call("policy/\(name)", method: "DELETE") }

  func setPolicy(_ name: String, isEnabled: Bool) throws {
    try configure("policy/\(isEnabled ? "enable" : "disable")/\(name)", [:])
  }

  func set(_ key: String, to value: String) throws { try configure("system/setConfig", [key: value]) }

  private func configure(_ path: String, _ settings: [String: Any]) throws {
    let answer = try call(path, json: settings)
    guard (answer["result"] as? [String: Any])?["status"] as? Bool == true else {
      throw PushServerError(description: "\(path): \(answer)")
    }
  }

  /// Enrolled tokens will get hints of logins at this address, in addition to polling.
  func postLogins(to url: String) throws {
    try configure(
      "smsgateway",
      [
        "name": "direct", "module": "privacyidea.lib.smsprovider.HttpSMSProvider.HttpSMSProvider", "option.URL": url,
        "option.HTTP_METHOD": "POST", "option.SEND_DATA_AS_JSON": "yes", "option.ALLOW_PUSH": "yes",
        "option.device": "{phone}", "option.challenge": "{message}",
      ])
    try policy(
      "push", scope: "enrollment",
      [
        "push_firebase_configuration": "direct",
        "push_registration_url": "https://localhost:\(port)/ttype/push",
      ])
  }

  /// Creates a realm with one user, and makes it not the default realm.
  func addUser(_ name: String) throws {
    let file = directory.appending(path: "passwd")
    try "\(name):x:1000:1000:\(name),,,:/nowhere:/bin/false\n".write(to: file, atomically: true, encoding: .utf8)
    try configure("resolver/people", ["type": "passwdresolver", "fileName": file.path])
    try configure("realm/lab", ["resolvers": "people"])
  }

  /// - Parameters:
  ///   - serial: the serial of a token that is enrolled again.
  ///   - user: in the realm that `addUser` made.
  /// - Returns: serial and enrollment URL.
  func makeToken(again serial: String? = nil, of user: String? = nil) throws -> (serial: String, url: String) {
    var body: [String: Any] = ["type": tokenType, "genkey": 1]
    body["serial"] = serial
    if let user { body.merge(["user": user, "realm": "lab"]) { $1 } }
    let detail = try call("token/init", json: body)["detail"] as? [String: Any] ?? [:]
    guard let serial = detail["serial"] as? String, let url = (detail["pushurl"] as? [String: Any])?["value"] as? String
    else { throw PushServerError(description: "no push token: \(detail)") }
    return (serial, url)
  }

  /// The device's public key as stored at the server.
  func deviceKey(of serial: String) throws -> String {
    let answer = try call("token/?serial=\(serial)", method: "GET")
    let value = (answer["result"] as? [String: Any])?["value"] as? [String: Any]
    let info = (value?["tokens"] as? [[String: Any]])?.first?["info"] as? [String: Any]
    return info?["public_key_smartphone"] as? String ?? ""
  }

  func deleteToken(_ serial: String) throws { try call("token/\(serial)", method: "DELETE") }

  func disableToken(_ serial: String) throws { try call("token/disable", form: ["serial": serial]) }

  /// Starts a login as a portal.
  func trigger(_ serial: String) throws -> (transaction: String, presence: String?) {
    try trigger(["serial": serial, "type": tokenType])
  }

  /// Starts a login with any token of the user, as a portal.
  func trigger(user: String) throws -> (transaction: String, presence: String?) {
    try trigger(["user": user, "realm": "lab", "type": tokenType])
  }

  private func trigger(_ form: [String: String]) throws -> (transaction: String, presence: String?) {
    let answer = try call("validate/triggerchallenge", form: form)
    let detail = answer["detail"] as? [String: Any] ?? [:]
    guard let transaction = detail["transaction_id"] as? String else {
      throw PushServerError(description: "not triggered: \(answer)")
    }
    let challenge = (detail["multi_challenge"] as? [[String: Any]])?.first
    return (transaction, challenge?["presence_answer"] as? String)
  }

  /// The portal's result: "pending", "accept", "declined" or "cancelled".
  func challengeStatus(_ transaction: String) throws -> String {
    let answer = try call("validate/polltransaction/\(transaction)", method: "GET")
    return (answer["detail"] as? [String: Any])?["challenge_status"] as? String ?? "\(answer)"
  }

  /// Finishes the login as a portal.
  func finalize(_ serial: String, _ transaction: String, code: String = "") throws -> String {
    try finalize(["serial": serial, "transaction_id": transaction, "pass": code])
  }

  func finalize(user: String, _ transaction: String) throws -> String {
    try finalize(["user": user, "realm": "lab", "transaction_id": transaction, "pass": ""])
  }

  private func finalize(_ form: [String: String]) throws -> String {
    let answer = try call("validate/check", form: form)
    return (answer["result"] as? [String: Any])?["authentication"] as? String ?? "\(answer)"
  }

  @discardableResult
  private func call(
    _ path: String, method: String = "POST", form: [String: String]? = nil, json: [String: Any]? = nil
  ) throws -> [String: Any] {
    var arguments = [
      "curl", "--silent", "--max-time", "60", "--cacert", authority, "--request", method, "--header",
      "Authorization: \(token.withLock { $0 })",
    ]
    for (name, value) in form ?? [:] { arguments += ["--data-urlencode", "\(name)=\(value)"] }
    if let json {
      let body = String(decoding: try JSONSerialization.data(withJSONObject: json), as: UTF8.self)
      arguments += ["--header", "Content-Type: application/json", "--data", body]
    }
    let output = try BuiltPrograms.run("/usr/bin/env", arguments + ["https://localhost:\(port)/\(path)"])
    guard let answer = try? JSONSerialization.jsonObject(with: Data(output.bytes)) as? [String: Any] else {
      throw PushServerError(description: "\(path): \(output.text)\(output.errors)")
    }
    return answer
  }
}
