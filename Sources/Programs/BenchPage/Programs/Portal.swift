// SPDX-License-Identifier: Apache-2.0
import Cryptography
import CurlHTTP
import Glibc
import HTTP
import JSONValues

/// The portal of the bench: a client of the token server's portal API.
struct Portal: Sendable {
  static let client = "portal"

  let url: String
  let callback: String
  /// A file for curl with the portal's secret, so that command lines do not have it.
  let curlFile: String
  private let account: PortalFile
  private let transport: CurlHTTPTransport

  /// One call, for the page: without the portal's secret.
  struct Exchange: Sendable {
    var method: String
    var path: String
    var form: [(name: String, value: String)]
    var status: Int?
    var answer: JSONValue?
    var error: String?
    var duration: Duration
    var curl: String
  }

  /// - Parameters:
  ///   - curlFile: the file from which `account` was read.
  ///   - callback: where the token server announces the end of a request.
  init(url: String, account: PortalFile, curlFile: String, callback: String) {
    (self.url, self.account, self.curlFile, self.callback) = (url, account, curlFile, callback)
    transport = CurlHTTPTransport(trust: ServerTrust(authorityFile: account.authority).limited(to: [url]))
  }

  /// A portal of the bench's own token server.
  static func made(
    url: String, authority: String, secret: String, callback: String, folder: String
  ) throws -> Portal {
    let curlFile = folder + "/portal.curlrc"
    let file = open(curlFile, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    let text = "user = \"\(client):\(secret)\"\ncacert = \"\(authority)\"\nsilent\nshow-error\n"
    let bytes = Array(text.utf8)
    guard file >= 0, write(file, bytes, bytes.count) == bytes.count, close(file) == 0 else {
      throw BenchError("\(curlFile) cannot be written")
    }
    return Portal(url: url, account: try PortalFile(parsing: text), curlFile: curlFile, callback: callback)
  }

  /// - Throws: if the token server does not answer, or not to this portal.
  func check(of user: String) async throws {
    let found = await call(.get, "/oauth/api/v4/authenticate/user/\(user.percentEncoded)/enabled")
    let why: String
    switch found.status {
    case 200: return
    case nil: why = found.error ?? "it does not answer"
    case 401: why = "it refuses the portal \(account.client) of \(curlFile)"
    case 403: why = "the portal \(account.client) may not use mobile authentication"
    case .some(let status):
      why = "it answers \(status): \(found.answer?["error_description"]?.text ?? "not a token server of this project")"
    }
    throw BenchError("the token server at \(url): \(why)")
  }

  /// The newest device of a user; nil if there is none, or no such user.
  /// - Throws: if the token server does not answer.
  func device(of user: String) async throws -> String? {
    let found = await call(.get, "/oauth/api/v4/users/\(user.percentEncoded)/devices")
    if found.status == 404 { return nil }
    guard found.status == 200 else { throw BenchError("the devices of \(user) cannot be read") }
    let devices = found.answer?["devices"]?.list ?? []
    return devices.max { $0["createdAt"]?.integer ?? 0 < $1["createdAt"]?.integer ?? 0 }?["id"]?.text
  }

  /// The names of the types that can be used on a device of a user.
  func types(of user: String, on device: String) async -> [String] {
    let path = "/oauth/api/v4/authenticate/user/\(user.percentEncoded)/device/\(device.percentEncoded)/enabled"
    return await call(.get, path).answer?["enabled"]?.list?.compactMap(\.text) ?? []
  }

  /// Starts a request.
  func ask(_ user: String, on device: String, type: String, message: String, digits: String?) async -> Exchange {
    var form = [("type", type), ("user_id", user), ("device_id", device), ("message", message)]
    if let digits { form.append(("read_back", digits)) }
    form.append(("callback_uri", callback))
    return await call(.post, "/oauth/api/v4/authenticate/user", form)
  }

  func result(of transaction: String) async -> Exchange {
    await call(.get, "/oauth/api/v4/authenticate/transaction/\(transaction.percentEncoded)")
  }

  func cancel(_ transaction: String) async -> Exchange {
    await call(.delete, "/oauth/api/v4/authenticate/transaction/\(transaction.percentEncoded)")
  }

  /// A command for a shell that reads the result.
  func resultCommand(_ transaction: String) -> String {
    curl(.get, "/oauth/api/v4/authenticate/transaction/\(transaction.percentEncoded)", [])
  }

  /// What the token server says about its portal API, in OpenAPI.
  func description() async throws -> JSONValue {
    let found = await call(.get, "/oauth/api/openapi.json")
    guard found.status == 200, let answer = found.answer else {
      throw BenchError("the token server has no description: \(found.error ?? "status \(found.status ?? 0)")")
    }
    return answer
  }

  private func call(_ method: HTTPRequest.Method, _ path: String, _ form: [(String, String)] = []) async -> Exchange {
    var request = HTTPRequest(method, url + path, deadline: .seconds(5), maximumBodyBytes: 64 << 10)
    request.headers["Authorization"] = "Basic " + Array("\(account.client):\(account.secret)".utf8).base64
    if !form.isEmpty {
      request.headers["Content-Type"] = "application/x-www-form-urlencoded"
      request.body = Array(form.map { "\($0.percentEncoded)=\($1.percentEncoded)" }.joined(separator: "&").utf8)
    }
    let began = ContinuousClock.now
    var exchange = Exchange(
      method: method.rawValue, path: path, form: form.map { ($0, $1) }, duration: .zero,
      curl: curl(method, path, form))
    do {
      let response = try await transport.send(request)
      exchange.status = response.status
      exchange.answer = JSONValue(parsing: response.body)
    } catch { exchange.error = "\(error)" }
    exchange.duration = .now - began
    return exchange
  }

  /// A command for a shell that does the same.
  private func curl(_ method: HTTPRequest.Method, _ path: String, _ form: [(String, String)]) -> String {
    var words = ["curl --config \(curlFile.shellQuoted)"]
    if method == .delete { words.append("--request DELETE") }
    words += form.map { "--data-urlencode \("\($0)=\($1)".shellQuoted)" }
    return (words + [(url + path).shellQuoted]).joined(separator: " ")
  }
}

extension String {
  /// As a name or a value of a form.
  var percentEncoded: String {
    utf8.map { byte in
      let isPlain =
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || "-._~".utf8.contains(byte)
      return isPlain ? String(UnicodeScalar(byte)) : "%" + [byte].uppercaseHex
    }.joined()
  }

  /// As one word of a POSIX shell.
  var shellQuoted: String {
    let isPlain = utf8.allSatisfy {
      (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
        || "%+,-./:=@_".utf8.contains($0)
    }
    // By scalars: with a combining mark, an apostrophe is another `Character`, but not for a shell.
    return isPlain && !isEmpty
      ? self : "'" + unicodeScalars.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'"
  }
}
