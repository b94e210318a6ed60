// SPDX-License-Identifier: Apache-2.0
import CBench
import Foundation
import Glibc
import Synchronization

/// A TLS server in this process: each connection has its own thread, until the process ends.
final class TLSStandIn: Sendable {
  struct Request {
    let method: String
    /// Path and query.
    let target: String
    let head: MessageParser.Head
    let body: [UInt8]
  }

  struct Response {
    let status: Int
    /// The JSON body.
    let content: String
    /// Called after the response was written.
    var afterwards: () -> Void = {}
  }

  typealias Service = @Sendable (Request) -> Response

  /// PEM file: the self-signed certificate.
  let authority: String
  /// `https://host:port`.
  let origin: String
  private let descriptor: Int32
  private nonisolated(unsafe) let tls: OpaquePointer
  private let malformed = Mutex(0)

  /// Listens; connections are not accepted before `serve`.
  init(on stage: Stage) throws {
    authority = "\(stage.directory)/stand-in.pem"
    try Certificate.make(at: authority, log: "\(stage.directory)/openssl.log")
    guard let tls = bench_tls_server_context(authority) else { throw BenchError("cannot read \(authority)") }
    self.tls = tls
    signal(SIGPIPE, SIG_IGN)
    let (descriptor, port) = Loopback.listening()
    self.descriptor = descriptor
    _ = bench_set_blocking(descriptor)
    origin = "https://\(Loopback.address):\(port)"
  }

  func serve(_ service: @escaping Service) {
    Thread.detachNewThread { [self] in
      while true {
        let caller = accept(descriptor, nil, nil)
        if caller >= 0 { Thread.detachNewThread { [self] in converse(with: caller, service) } }
      }
    }
  }

  /// The number of connections that ended because of invalid HTTP.
  var malformedCount: Int { malformed.withLock { $0 } }

  private func converse(with caller: Int32, _ service: Service) {
    defer { close(caller) }
    var yes: Int32 = 1
    setsockopt(caller, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    guard let session = bench_tls_accept(tls, caller) else { return }
    defer { SSL_free(session) }
    var parser = MessageParser()
    var (head, body): (MessageParser.Head?, [UInt8]) = (nil, [])
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = SSL_read(session, &chunk, Int32(chunk.count))
      guard count > 0 else { return }
      parser.append(chunk[..<Int(count)])
      do {
        while let piece = try parser.next() {
          switch piece {
          case .head(let new): (head, body) = (new, [])
          case .body(let bytes): body += bytes
          case .end:
            guard let head, let request = Request(head, body) else { throw MessageParser.MalformedMessageError() }
            write(service(request), to: session)
          }
        }
      } catch {
        malformed.withLock { $0 += 1 }
        return
      }
    }
  }

  private func write(_ response: Response, to session: OpaquePointer) {
    let bytes = Array(
      """
      HTTP/1.1 \(response.status) X\r\nDate: \(date())\r\nContent-Type: application/json\r
      Content-Length: \(response.content.utf8.count)\r\n\r\n\(response.content)
      """.utf8)
    SSL_write(session, bytes, Int32(bytes.count))
    response.afterwards()
  }

  /// The current time in the format of RFC 9110 §5.6.7.
  private func date() -> String {
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    var text = [CChar](repeating: 0, count: 64)
    let count = strftime(&text, text.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
    return String(decoding: text[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension TLSStandIn.Request {
  fileprivate init?(_ head: MessageParser.Head, _ body: [UInt8]) {
    let words = head.startLine.split(separator: " ")
    guard words.count == 3 else { return nil }
    self.init(method: String(words[0]), target: String(words[1]), head: head, body: body)
  }
}

/// A self-signed certificate for the loopback address.
private enum Certificate {
  /// - Parameter file: receives the certificate and its key.
  static func make(at file: String, log: String) throws {
    _ = try Child.run(
      "openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-keyout", file + ".key",
        "-out", file, "-days", "2", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:\(Loopback.address)",
      ], log: log)
    let key = try String(contentsOfFile: file + ".key", encoding: .utf8)
    let certificate = try String(contentsOfFile: file, encoding: .utf8)
    try (certificate + key).write(toFile: file, atomically: false, encoding: .utf8)
  }
}
