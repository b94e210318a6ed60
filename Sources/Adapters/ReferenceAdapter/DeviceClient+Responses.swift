// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import ReferenceProtocol

extension DeviceClient {
  /// The access token that a call uses.
  enum Authority: Sendable {
    case device
    /// A user access token, from an activation.
    case user(String)
  }

  static let neverContent = TokenServerError.unreachable("the token server repeatedly requires another proof")

  /// The maximum length of a nonce.
  static let longestNonce = 512

  /// Returns PROFILE of `/profiles/PROFILE/…`.
  static func profile(in path: String) -> String? {
    let steps = path.split(separator: "/")
    return steps.first == "profiles" && steps.count > 1 ? String(steps[1]) : nil
  }

  /// Decodes the body. A body of another form does not come from the token server.
  static func decode<Value: Decodable>(_ type: Value.Type, _ response: HTTPResponse) throws(TokenServerError) -> Value {
    do { return try JSON.decode(type, from: response.body) } catch {
      throw .unreachable("the token server's answer has an unknown form: \(error)")
    }
  }

  /// Returns the start of an error response's body: sufficient for a problem document, and bounded in size and time.
  func body(of stream: HTTPResponseStream) async -> [UInt8] {
    let reading = Task { await Self.beginning(of: stream) }
    let alarm = Task { [environment] in
      try await environment.sleep(for: HTTPRequest.defaultDeadline)
      reading.cancel()
    }
    defer { alarm.cancel() }
    return await withTaskCancellationHandler {
      await reading.value
    } onCancel: {
      reading.cancel()
    }
  }

  private static func beginning(of stream: HTTPResponseStream) async -> [UInt8] {
    var body: [UInt8] = []
    do {
      for try await chunk in stream.body {
        body += chunk
        if body.count > 16_384 { break }
      }
    } catch {
      // The part received before the connection was lost may still explain the status.
    }
    return body
  }
}
