// SPDX-License-Identifier: Apache-2.0
import CurlHTTP
import HTTP
import Testing

/// The rules of `ServerTrust`, one per row: which certificates are accepted, and why others are not.
@Suite("Server trust", .timeLimit(.minutes(5)))
struct TrustTests {
  /// Times after today, and after every expiry date of the fixtures.
  enum Floor: Int64, Sendable {
    /// 2080-01-01: before the start of a validity in 2090.
    case in2080 = 3_471_292_800
    /// 2091-01-01: after it.
    case in2091 = 3_818_448_000
  }

  enum Pin: Sendable { case none, right, wrong, wrongAndRight, unreadable }

  struct Row: Sendable, CustomTestStringConvertible {
    let certificate: Certificate
    var pin = Pin.none
    var knowsAuthority = false
    var host = "localhost"
    /// The board's lower bound of the time.
    var floor: Floor?
    /// A part of the reason for the rejection; nil if the server is trusted.
    let refusal: String?

    var testDescription: String {
      "\(certificate.rawValue), \(pin) pin, authority \(knowsAuthority ? "known" : "unknown"), \(host)"
        + (floor.map { ", clock behind, \($0)" } ?? "")
    }
  }

  static let rows: [Row] = [
    // A known authority is sufficient, also with unnecessary certificates in the chain.
    Row(certificate: .good, knowsAuthority: true, refusal: nil),
    Row(certificate: .good, knowsAuthority: true, host: "127.0.0.1", refusal: nil),
    Row(certificate: .chain, knowsAuthority: true, refusal: nil),
    Row(certificate: .chainWithRoot, knowsAuthority: true, refusal: nil),
    // A pin must match as well.
    Row(certificate: .good, pin: .right, knowsAuthority: true, refusal: nil),
    Row(certificate: .good, pin: .wrongAndRight, knowsAuthority: true, refusal: nil),
    Row(certificate: .good, pin: .wrong, knowsAuthority: true, refusal: "pinned"),
    Row(certificate: .good, pin: .unreadable, knowsAuthority: true, refusal: "pinned"),
    // Without pins an unknown issuer is rejected.
    Row(certificate: .good, refusal: "issuer"),
    Row(certificate: .chain, refusal: "issuer"),
    Row(certificate: .chainWithRoot, refusal: "self-signed"),
    Row(certificate: .selfSigned, refusal: "self-signed"),
    // A pin replaces the authority.
    Row(certificate: .good, pin: .right, refusal: nil),
    Row(certificate: .selfSigned, pin: .right, refusal: nil),
    Row(certificate: .selfSigned, pin: .wrongAndRight, refusal: nil),
    Row(certificate: .chain, pin: .right, refusal: nil),
    Row(certificate: .missingIssuer, pin: .right, refusal: nil),
    Row(certificate: .missingIssuer, pin: .right, knowsAuthority: true, refusal: nil),
    Row(certificate: .chainWithRoot, pin: .right, refusal: nil),
    // A wrong pin does not.
    Row(certificate: .good, pin: .wrong, refusal: "none of the pinned"),
    Row(certificate: .selfSigned, pin: .wrong, refusal: "none of the pinned"),
    Row(certificate: .selfSigned, pin: .unreadable, refusal: "none of the pinned"),
    Row(certificate: .chainWithRoot, pin: .wrong, refusal: "none of the pinned"),
    // A pin never replaces a date of any certificate in the chain.
    Row(certificate: .expired, knowsAuthority: true, refusal: "expired"),
    Row(certificate: .expired, pin: .right, refusal: "expired"),
    Row(certificate: .expired, pin: .right, knowsAuthority: true, refusal: "expired"),
    Row(certificate: .expiredSelfSigned, pin: .right, refusal: "expired"),
    Row(certificate: .expiredIssuer, pin: .right, refusal: "expired"),
    Row(certificate: .expiredIssuer, pin: .right, knowsAuthority: true, refusal: "expired"),
    Row(certificate: .chainWithExpiredRoot, pin: .right, refusal: "expired"),
    Row(certificate: .notYetValid, knowsAuthority: true, refusal: "not yet valid"),
    Row(certificate: .notYetValid, pin: .right, refusal: "not yet valid"),
    // While the clock is behind, its time is used in neither direction.
    Row(certificate: .notYetValid, knowsAuthority: true, floor: .in2091, refusal: nil),
    Row(certificate: .notYetValid, pin: .right, floor: .in2091, refusal: nil),
    Row(certificate: .notYetValid, knowsAuthority: true, floor: .in2080, refusal: nil),
    Row(certificate: .notYetValid, pin: .right, floor: .in2080, refusal: nil),
    Row(certificate: .notYetValid, pin: .right, knowsAuthority: true, floor: .in2080, refusal: nil),
    Row(certificate: .notYetValid, floor: .in2080, refusal: "issuer"),
    Row(certificate: .notYetValid, pin: .wrong, floor: .in2080, refusal: "none of the pinned"),
    Row(certificate: .expired, pin: .right, floor: .in2091, refusal: "expired"),
    Row(certificate: .expiredIssuer, pin: .right, floor: .in2091, refusal: "expired"),
    // A pin does not replace the name.
    Row(certificate: .wrongName, knowsAuthority: true, refusal: "localhost"),
    Row(certificate: .wrongName, pin: .right, refusal: "localhost"),
    Row(certificate: .wrongName, pin: .right, host: "127.0.0.1", refusal: "127.0.0.1"),
  ]

  @Test("Judges", arguments: rows)
  func verifies(_ row: Row) async throws {
    let server = try HostileServer(row.certificate)
    let http = CurlHTTPTransport(trust: try trust(of: row, server))
    let request = HTTPRequest(.get, server.url("status/204", host: row.host))
    // Twice: the result for one connection must not affect the next.
    for _ in 1...2 {
      let outcome: Result<HTTPResponse, HTTPTransportError>
      do throws(HTTPTransportError) {
        outcome = .success(try await http.send(request))
      } catch {
        outcome = .failure(error)
      }
      switch (outcome, row.refusal) {
      case (.success, nil): break
      case (.failure(.untrusted(let reason)), let expected?): #expect(reason.contains(expected))
      default: Issue.record("expected \(row.refusal ?? "an answer"), got \(outcome)")
      }
    }
  }

  @Test(
    "A response and a stream report the expiry of the server certificate",
    arguments: [Certificate.good, .chain, .selfSigned])
  func expiry(certificate: Certificate) async throws {
    let server = try HostileServer(certificate)
    let http = CurlHTTPTransport(trust: ServerTrust(pins: [try Certificate.pin()]))
    let response = try await http.send(HTTPRequest(.get, server.url("status/204")))
    // 2099-12-31T00:00:00Z, as set in make-certificates.sh.
    #expect(response.certificateExpiry == 4_102_358_400)
    let stream = try await http.stream(HTTPRequest(.get, server.url("status/204")))
    #expect(stream.certificateExpiry == 4_102_358_400)
  }

  private func trust(of row: Row, _ server: HostileServer) throws -> ServerTrust {
    var trust = ServerTrust(
      authorityFile: row.knowsAuthority ? server.authorityFile : nil,
      earliestNow: row.floor?.rawValue ?? 0)
    let (right, wrong) = (try Certificate.pin(), try Certificate.pin(of: "other"))
    switch row.pin {
    case .none: break
    case .right: trust.pins = [right]
    case .wrong: trust.pins = [wrong]
    case .wrongAndRight: trust.pins = [wrong, right]
    case .unreadable: trust.pins = ["", "no pin", String(right.dropLast())]
    }
    return trust
  }

  @Test("Refuses TLS before 12") func refusesTLSBefore12() async throws {
    let server = try HostileServer(oldTLS: true)
    let http = CurlHTTPTransport(trust: ServerTrust(pins: [try Certificate.pin()]))
    let failure = await #expect(throws: HTTPTransportError.self) {
      try await http.send(HTTPRequest(.get, server.url("status/204")))
    }
    guard case .unreachable(let reason) = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(reason.contains("alert protocol version") || reason.contains("unsupported protocol"))
  }

  @Test("Refuses an authority file it cannot read") func refusesAnAuthorityFileItCannotRead() async throws {
    let server = try HostileServer()
    for file in ["/nonexistent.pem", "/dev/null"] {
      let http = CurlHTTPTransport(trust: ServerTrust(pins: [try Certificate.pin()], authorityFile: file))
      let failure = await #expect(throws: HTTPTransportError.self) {
        try await http.send(HTTPRequest(.get, server.url("status/204")))
      }
      guard case .untrusted(let reason) = failure else {
        Issue.record("\(file): \(String(describing: failure))")
        continue
      }
      #expect(reason.contains(file))
    }
  }

  /// A resumed session would not be verified again, so sessions must not be resumed.
  @Test("Resumes no session") func resumesNoSession() async throws {
    let server = try HostileServer()
    let http = CurlHTTPTransport(trust: server.trust)
    for _ in 1...2 {
      #expect(try await http.send(HTTPRequest(.get, server.url("resumed"))).body == Array("False".utf8))
    }
  }
}
