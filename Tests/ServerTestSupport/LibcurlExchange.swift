// SPDX-License-Identifier: Apache-2.0
import CCurl
import Foundation

/// One HTTP exchange with libcurl in this process, over a connection of its own. It blocks the calling thread.
///
/// A test of the token server makes hundreds of exchanges; starting the program `curl` for each took a third of their
/// processor time.
final class LibcurlExchange {
  /// The options of the program `curl` that the tests use.
  struct Options {
    var url = ""
    var method: String?
    var user: String?
    var authority: String?
    /// The local address.
    var source: String?
    var headers: [String] = []
    /// The parts of a form, which are joined.
    var form: [String] = []
    var seconds = Curl.patience

    /// - Throws: `CurlError` for an option that is not known here.
    init(_ arguments: [String]) throws {
      var rest = arguments[...]
      while let argument = rest.popFirst() {
        guard argument.hasPrefix("-") else {
          url = argument
          continue
        }
        guard let value = rest.popFirst() else { throw Curl.CurlError(description: "\(argument) has no value") }
        switch argument {
        case "--request", "-X": method = value
        case "--user", "-u": user = value
        case "--header", "-H": headers.append(value)
        case "--data", "-d": form.append(value)
        case "--json":
          form.append(value)
          headers += ["Content-Type: application/json", "Accept: application/json"]
        case "--data-urlencode":
          let halves = value.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
          guard halves.count == 2 else { throw Curl.CurlError(description: "\(argument) \(value): no name") }
          form.append("\(halves[0])=\(Self.escaped(halves[1]))")
        case "--cacert": authority = value
        case "--interface": source = value
        case "--max-time": seconds = Int(value) ?? seconds
        default: throw Curl.CurlError(description: "\(argument) is not supported here")
        }
      }
    }

    private static func escaped(_ text: Substring) -> String {
      text.utf8.map { byte in
        let isSafe =
          UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte
          || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "-._~".utf8.contains(byte)
        return isSafe ? String(UnicodeScalar(byte)) : "%" + String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
      }.joined()
    }
  }

  private static let isReady: Bool = curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK

  private let handle: UnsafeMutableRawPointer
  private var list: UnsafeMutablePointer<curl_slist>?
  private var head: [UInt8] = []
  private var body: [UInt8] = []

  init() throws {
    guard Self.isReady, let handle = curl_easy_init() else { throw Curl.CurlError(description: "no libcurl") }
    self.handle = handle
  }

  deinit {
    curl_slist_free_all(list)
    curl_easy_cleanup(handle)
  }

  /// - Parameter input: the body; nil uses the form, or makes a request without a body.
  func perform(_ options: Options, input: [UInt8]?) throws -> Curl.Reply {
    set(CURLOPT_URL, options.url)
    set(CURLOPT_TIMEOUT, options.seconds)
    set(CURLOPT_NOSIGNAL, 1)
    if let authority = options.authority { set(CURLOPT_CAINFO, authority) }
    if let source = options.source { set(CURLOPT_INTERFACE, source) }
    if let user = options.user { set(CURLOPT_USERPWD, user) }
    if let body = input ?? (options.form.isEmpty ? nil : Array(options.form.joined(separator: "&").utf8)) {
      set(CURLOPT_POSTFIELDSIZE, body.count)
      // libcurl copies as many bytes as were set before.
      body.withUnsafeBytes { bytes in
        let start = UnsafeMutableRawPointer(mutating: bytes.baseAddress ?? UnsafeRawPointer(handle))
        _ = approval_curl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, start)
      }
    }
    if let method = options.method { set(CURLOPT_CUSTOMREQUEST, method) }
    for header in options.headers { list = curl_slist_append(list, header) }
    _ = approval_curl_set_list(handle, CURLOPT_HTTPHEADER, list)
    let context = Unmanaged.passUnretained(self).toOpaque()
    _ = approval_curl_set_pointer(handle, CURLOPT_HEADERDATA, context)
    _ = approval_curl_set_pointer(handle, CURLOPT_WRITEDATA, context)
    _ = approval_curl_set_data_callback(handle, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      LibcurlExchange.take(bytes, size * count, context) { $0.takeHead($1) }
    }
    _ = approval_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      LibcurlExchange.take(bytes, size * count, context) { $0.body += $1 }
    }
    let code = withExtendedLifetime(self) { curl_easy_perform(handle) }
    guard code == CURLE_OK else {
      throw Curl.CurlError(
        description: "curl ended with \(code.rawValue): \(String(cString: curl_easy_strerror(code)))")
    }
    return try Curl.reply(head: head, body: body)
  }

  private static func take(
    _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int, _ context: UnsafeMutableRawPointer?,
    _ body: (LibcurlExchange, UnsafeRawBufferPointer) -> Void
  ) -> Int {
    guard let context else { return 0 }
    body(
      Unmanaged<LibcurlExchange>.fromOpaque(context).takeUnretainedValue(),
      UnsafeRawBufferPointer(start: bytes, count: count))
    return count
  }

  /// A status line begins a new head: the one before was of an interim response.
  private func takeHead(_ bytes: UnsafeRawBufferPointer) {
    if bytes.starts(with: "HTTP/".utf8) { head = [] }
    head += bytes
  }

  private func set(_ option: CURLoption, _ value: String) { _ = approval_curl_set_text(handle, option, value) }
  private func set(_ option: CURLoption, _ value: Int) { _ = approval_curl_set_long(handle, option, value) }
}
