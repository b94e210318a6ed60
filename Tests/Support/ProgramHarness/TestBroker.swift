// SPDX-License-Identifier: Apache-2.0
import Foundation
import FreePorts
import Glibc
import Synchronization

/// Debian's mosquitto with TLS and passwords, with its own port and certificate authority.
package final class TestBroker: Sendable {
  package static let user = "token"
  package static let password = "c0rrect horse"

  package let port: Int
  package let directory: TemporaryDirectory
  private let process = Mutex<ChildProcess?>(nil)

  /// - Parameters:
  ///   - readable: the only topic that may be read; nil for all topics.
  ///   - options: more lines of the configuration.
  package init(readable: String? = nil, options: String = "") async throws {
    directory = try TemporaryDirectory()
    port = try FreePort.reserve()
    try await makeCertificates()
    let users = if let readable { try await restrict(to: readable) } else { try await letEverybodyIn() }
    // As root, mosquitto would switch to another user, who may not read this directory.
    let configuration = """
      user root
      listener \(port) 127.0.0.1
      certfile \(directory.file("broker.pem"))
      keyfile \(directory.file("broker.key"))
      allow_anonymous false
      \(users)
      persistence true
      persistence_location \(directory.path)/
      max_queued_messages 0
      log_dest stderr
      log_type all
      \(options)
      """
    _ = try directory.write(configuration, to: "broker.conf")
    try await start()
  }

  deinit {
    end()
    directory.remove()
  }

  package var authority: String { directory.file("ca.pem") }

  package func start() async throws {
    let child: ChildProcess
    do { child = try ChildProcess("/usr/sbin/mosquitto", ["-c", directory.file("broker.conf")]) } catch {
      throw OutputTimeoutError(description: "mosquitto, Debian's package of that name: \(error)")
    }
    process.withLock { $0 = child }
    try await child.errors.line(with: "running")
  }

  /// Sends SIGTERM: mosquitto stores its messages.
  package func stop() async throws {
    guard let child = process.withLock({ $0.take() }) else { return }
    // mosquitto ignores a signal that arrives just after it has logged that it is running.
    for _ in 1...30 {
      child.send(SIGTERM)
      if (try? await child.exit(within: .seconds(2))) != nil { return }
    }
    throw OutputTimeoutError(description: "the end of the broker")
  }

  package func end() { process.withLock { $0?.send(SIGKILL) } }

  /// The log of the running broker.
  package var log: Transcript? { process.withLock { $0?.errors } }

  /// Waits until clients have acknowledged this number of messages.
  package func acknowledged(_ count: Int) async throws {
    var mark = 0
    for _ in 0..<count {
      try await log?.line(with: "Received PUBACK", from: mark)
      mark = 1 + (log?.lines.dropFirst(mark).firstIndex { $0.contains("Received PUBACK") } ?? mark)
    }
  }

  // MARK: Clients

  /// Publishes with `mosquitto_pub` and QoS 1: returns when the broker has the message.
  package func publish(_ message: String, to topic: String, _ more: String...) async throws {
    try await run("mosquitto_pub", access + ["-t", topic, "-m", message, "-q", "1"] + more).succeeded()
  }

  /// Subscribes with `mosquitto_sub`: one message a line.
  /// - Parameter client: the client id, for which the broker keeps messages while there is no connection; nil for none.
  package func follow(_ topic: String, as client: String? = nil) async throws -> ChildProcess {
    let session = client.map { ["-i", $0, "-c"] } ?? []
    let follower = try ChildProcess(
      "stdbuf", ["-oL", "mosquitto_sub"] + access + session + ["-t", topic, "-q", "1", "-d"])
    try await follower.output.line(with: "Subscribed")
    return follower
  }

  package var access: [String] {
    ["-h", "localhost", "-p", "\(port)", "--cafile", authority, "-u", Self.user, "-P", Self.password]
  }

  // MARK: Users

  /// - Returns: lines of the configuration that allow all users.
  private func letEverybodyIn() async throws -> String {
    try await run("mosquitto_passwd", ["-b", "-c", directory.file("passwords"), Self.user, Self.password]).succeeded()
    return "password_file \(directory.file("passwords"))"
  }

  /// An access list does not reject a subscription; it only delivers no messages.
  private func restrict(to topic: String) async throws -> String {
    let file = directory.file("roles.json")
    try await run("mosquitto_ctrl", ["dynsec", "init", file, Self.user, Self.password]).succeeded()
    let roles = try String(contentsOfFile: file, encoding: .utf8)
    let restricted =
      roles
      .replacingOccurrences(of: "\"#\"", with: "\"\(topic)\"")
      .replacing(/"publishClientSend":\s*false/, with: "\"publishClientSend\": true")
    _ = try directory.write(restricted, to: "roles.json")
    let plugin = try await run("sh", ["-c", "ls /usr/lib/*/mosquitto_dynamic_security.so"]).succeeded().output
    return "plugin \(plugin)\nplugin_opt_config_file \(file)"
  }

  // MARK: Certificates

  private func makeCertificates() async throws {
    for authority in ["ca", "other-ca"] {
      try await openssl(
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
        "/CN=\(authority)", "-keyout", "\(authority).key", "-out", "\(authority).pem")
    }
    try await openssl(
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
      "/CN=broker", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE", "-CA",
      directory.file("ca.pem"), "-CAkey", directory.file("ca.key"), "-keyout", "broker.key", "-out", "broker.pem")
  }

  /// The last word after `-keyout` and `-out` is a file in the broker's directory.
  private func openssl(_ words: String...) async throws {
    var arguments = words
    for option in ["-keyout", "-out"] {
      if let index = arguments.firstIndex(of: option) { arguments[index + 1] = directory.file(arguments[index + 1]) }
    }
    try await run("openssl", arguments).succeeded()
  }

  /// Base64 of SHA-256 over the SubjectPublicKeyInfo, computed with the openssl command.
  package func pin(of certificate: String = "broker") async throws -> String {
    let script = """
      openssl x509 -in \(directory.file(certificate)).pem -noout -pubkey | openssl pkey -pubin -outform der |
      openssl dgst -sha256 -binary | base64
      """
    return try await run("sh", ["-c", script]).succeeded().output.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
