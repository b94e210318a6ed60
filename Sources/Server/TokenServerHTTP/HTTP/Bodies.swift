// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import NIOCore
import ReferenceProtocol

extension Request {
  /// The maximum size of a body in bytes; no message of either protocol is larger.
  static let largestBody = 256 * 1024

  func bytes() async throws -> [UInt8] {
    do { return Array(buffer: try await body.collect(upTo: Self.largestBody)) } catch is NIOTooManyBytesError {
      throw ResponseError.tooLarge
    } catch {
      // Invalid chunks, a wrong length or a lost connection: a client error in each case.
      throw ResponseError.brokenBody
    }
  }

  /// - Parameter errorCode: the number of an invalid parameter in the error catalog of the API, if it has one.
  /// - Throws: `ResponseError` 400 if the body has another media type or is not a form.
  func form(errorCode: Int? = nil) async throws -> Form {
    let bytes = try await bytes()
    guard !bytes.isEmpty else { return Form() }
    guard Form.isMediaType(headers[.contentType]) else {
      throw ResponseError.invalidRequest("The body must be \(Form.mediaType).", code: errorCode)
    }
    do { return try Form(parsing: bytes) } catch { throw ResponseError.invalidRequest("\(error).", code: errorCode) }
  }
}

extension Form {
  /// The parameters of an address, with the limits of a form.
  /// - Throws: `ResponseError` 400.
  init(query: String?) throws(ResponseError) {
    do { try self.init(parsing: Array((query ?? "").utf8)) } catch { throw .invalidRequest("The query: \(error).") }
  }
}

extension Response {
  /// Prevents caching of all responses: RFC 6749 §5.1 requires `no-store`; portals expect the longer form.
  static let uncached: HTTPFields = [
    .cacheControl: "no-cache, no-store, must-revalidate", .pragma: "no-cache",
  ]

  static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok, headers: HTTPFields = [:]) -> Response {
    json(bytes: JSON.encode(value), status: status, headers: headers)
  }

  static func json(
    bytes: [UInt8], status: HTTPResponse.Status = .ok, type: String = "application/json;charset=UTF-8",
    headers: HTTPFields = [:]
  ) -> Response {
    var fields = uncached
    fields[.contentType] = type
    for field in headers { fields.append(field) }
    return Response(status: status, headers: fields, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }

  static func problem(_ problem: Problem, headers: HTTPFields = [:]) -> Response {
    json(
      bytes: JSON.encode(problem), status: .init(code: problem.status), type: "application/problem+json",
      headers: headers)
  }

  static let noContent = Response(status: .noContent, headers: uncached)
}

extension HTTPField.Name {
  static let dpop = Self("DPoP")!
  static let approvalProtocol = Self(ProtocolVersions.headerName)!
  static let dpopNonce = Self("DPoP-Nonce")!
  static let idempotencyKey = Self("Idempotency-Key")!
  static let lastEventID = Self("Last-Event-ID")!
  static let prefer = Self("Prefer")!
  static let pragma = Self("Pragma")!
}
