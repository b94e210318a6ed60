// SPDX-License-Identifier: Apache-2.0
import CBench
import Glibc

struct Response {
  let head: MessageParser.Head
  var body: [UInt8] = []

  var status: Int { head.status }
}

/// One TLS connection to the token server, with one request after the other.
final class Connection: Pollable {
  typealias Completion = (Response) -> Void

  private let site: Site
  private let descriptor: Int32
  private let tls: OpaquePointer
  private var isOpen = false
  private var output: [UInt8] = []
  private var parser = MessageParser()
  private var response: Response?
  private var waiting: [(request: [UInt8], completion: Completion)] = []
  private var completion: Completion?
  /// Receives the body data of responses that do not end.
  private var receive: (([UInt8]) -> Void)?

  init(to site: Site) {
    self.site = site
    descriptor = Loopback.connecting(to: site.port)
    guard let tls = bench_tls_open(site.tls, descriptor, Loopback.address) else { fatalError("no TLS") }
    self.tls = tls
    site.loop.watch(descriptor, for: readable | writable, by: self)
  }

  deinit {
    SSL_free(tls)
    close(descriptor)
  }

  func hangUp() { site.loop.forget(descriptor) }

  func send(_ request: [UInt8], _ completion: @escaping Completion) {
    waiting.append((request, completion))
    sendNext()
  }

  /// Opens a stream: all data after the response's header goes to `receive` until the connection ends.
  func stream(_ request: [UInt8], _ receive: @escaping ([UInt8]) -> Void) {
    self.receive = receive
    send(request) { _ in }
  }

  /// Sends a request and runs the loop until the response is complete.
  func exchange(_ request: [UInt8]) -> Response {
    var answer: Response?
    send(request) { answer = $0 }
    site.loop.run(for: 30) { answer != nil }
    guard let answer else { fatalError("no answer from the token server within 30 s") }
    return answer
  }

  func ready(_ events: UInt32) {
    if !isOpen {
      let code = SSL_do_handshake(tls)
      guard code == 1 else { return awaitProgress(of: code) }
      isOpen = true
      sendNext()
    }
    flush()
    read()
  }

  private func sendNext() {
    guard isOpen, completion == nil, !waiting.isEmpty else { return }
    let next = waiting.removeFirst()
    completion = next.completion
    output += next.request
    flush()
  }

  private func flush() {
    while !output.isEmpty {
      let count = SSL_write(tls, output, Int32(output.count))
      guard count > 0 else { return awaitProgress(of: count) }
      output.removeFirst(Int(count))
    }
    site.loop.watch(descriptor, for: readable, by: self)
  }

  private func read() {
    while true {
      let count = SSL_read(tls, site.scratch.baseAddress, Int32(site.scratch.count))
      guard count > 0 else { return awaitProgress(of: count) }
      parser.append(site.scratch[..<Int(count)])
      do { while let piece = try parser.next() { take(piece) } } catch { fatalError("not HTTP: \(error)") }
    }
  }

  private func take(_ piece: MessageParser.Piece) {
    switch piece {
    case .head(let head):
      response = Response(head: head)
      if let nonce = head["dpop-nonce"] { site.nonce = nonce }
      if receive != nil, head.status != 200 { site.fail("a stream was answered with \(head.status)") }
    case .body(let bytes):
      if let receive { receive(bytes) } else { response?.body += bytes }
    case .end:
      guard let response, let completion else { return }
      (self.response, self.completion) = (nil, nil)
      completion(response)
      sendNext()
    }
  }

  private func awaitProgress(of code: Int32) {
    switch SSL_get_error(tls, code) {
    case SSL_ERROR_WANT_READ: break
    case SSL_ERROR_WANT_WRITE: site.loop.watch(descriptor, for: readable | writable, by: self)
    default:
      if !isOpen {
        site.fail("the TLS handshake failed")
      } else if completion != nil {
        site.fail("the token server closed a connection")
      }
      hangUp()
    }
    ERR_clear_error()
  }
}
