// SPDX-License-Identifier: Apache-2.0
import CCurl
import COpenSSL
import CTLS
import CertificateTrust
import HTTP
import Threads

/// Sets the options of one easy handle and stores the first error of libcurl. A transfer with a missing option must not
/// start.
struct TransferOptions {
  let handle: UnsafeMutableRawPointer
  private(set) var failure: HTTPTransportError?

  init(handle: UnsafeMutableRawPointer) {
    self.handle = handle
  }

  mutating func setTransport(connectWithin deadline: Duration) {
    set(CURLOPT_NOSIGNAL, to: 1)
    set(CURLOPT_PROTOCOLS_STR, to: "https")
    set(CURLOPT_HTTP_VERSION, to: Int(CURL_HTTP_VERSION_1_1))
    set(CURLOPT_FOLLOWLOCATION, to: 0)
    set(CURLOPT_DISALLOW_USERNAME_IN_URL, to: 1)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, to: 1)
    // An idle connection that is lost on the way is detected after 60 s and nine intervals.
    set(CURLOPT_TCP_KEEPALIVE, to: 1)
    set(CURLOPT_TCP_KEEPIDLE, to: 60)
    set(CURLOPT_TCP_KEEPINTVL, to: 10)
    // Buffers stay as long as a transfer: that of an event stream lasts.
    set(CURLOPT_UPLOAD_BUFFERSIZE, to: 16 << 10)
    set(CURLOPT_BUFFERSIZE, to: 4 << 10)
    // libcurl's own limit for connecting is 300 s, also for the value 0. The deadline is normally shorter.
    set(CURLOPT_CONNECTTIMEOUT_MS, to: Int(max(1, deadline.pollMilliseconds)))
    // Ending a transfer must not wait for a name server. The resolver's thread ends when it has its result.
    set(CURLOPT_QUICK_EXIT, to: 1)
  }

  mutating func setTrust(_ verifier: CertificateVerifier) {
    set(CURLOPT_SSLVERSION, to: Int(CURL_SSLVERSION_TLSv1_2))
    set(CURLOPT_SSL_VERIFYPEER, to: 1)
    set(CURLOPT_SSL_VERIFYHOST, to: 2)
    // A resumed session would skip certificate verification. A full handshake is affordable with one connection per
    // token.
    set(CURLOPT_SSL_SESSIONID_CACHE, to: 0)
    // OpenSSL reads only the needed issuer from the directory; the bundle would load 140 certificates into memory.
    set(CURLOPT_CAPATH, to: String(cString: X509_get_default_cert_dir()))
    set(CURLOPT_CAINFO, to: verifier.trust.authorityFile)
    if !verifier.trust.pins.isEmpty {
      set(CURLOPT_PINNEDPUBLICKEY, to: verifier.trust.pins.map { "sha256//\($0)" }.joined(separator: ";"))
    }
    set(CURLOPT_SSL_CTX_DATA, to: Unmanaged.passUnretained(verifier).toOpaque())
    record(
      approval_curl_set_tls_callback(handle) { _, tlsContext, verifier in
        guard let tlsContext, let verifier else { return CURLE_SSL_CERTPROBLEM }
        approval_ssl_refuse_silent_end(OpaquePointer(tlsContext))
        Unmanaged<CertificateVerifier>.fromOpaque(verifier).takeUnretainedValue().install(
          over: OpaquePointer(tlsContext))
        return CURLE_OK
      }, CURLOPT_SSL_CTX_FUNCTION)
  }

  /// - Parameter headerLines: must live as long as the handle.
  mutating func setRequest(_ request: HTTPRequest, headerLines: HeaderLines) {
    set(CURLOPT_URL, to: request.url)
    set(request.idleSeconds > 0 ? CURLOPT_MAXAGE_CONN : CURLOPT_FRESH_CONNECT, to: max(1, request.idleSeconds))
    set(CURLOPT_CUSTOMREQUEST, to: request.method.rawValue)
    record(approval_curl_set_list(handle, CURLOPT_HTTPHEADER, headerLines.first), CURLOPT_HTTPHEADER)
    guard !request.body.isEmpty || [.post, .put, .patch].contains(request.method) else { return }
    record(
      approval_curl_set_off(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count)),
      CURLOPT_POSTFIELDSIZE_LARGE)
    // libcurl copies the body, so the pointer need not outlive the call. It must not be nil even for an empty body.
    (request.body + [0]).withUnsafeBytes {
      set(CURLOPT_COPYPOSTFIELDS, to: UnsafeMutableRawPointer(mutating: $0.baseAddress))
    }
  }

  mutating func setCallbacks(
    context: UnsafeMutableRawPointer, start: @escaping curl_prereq_callback,
    header: @escaping approval_curl_data_callback, body: @escaping approval_curl_data_callback
  ) {
    set(CURLOPT_PREREQDATA, to: context)
    set(CURLOPT_HEADERDATA, to: context)
    set(CURLOPT_WRITEDATA, to: context)
    record(approval_curl_set_start_callback(handle, start), CURLOPT_PREREQFUNCTION)
    record(approval_curl_set_data_callback(handle, CURLOPT_HEADERFUNCTION, header), CURLOPT_HEADERFUNCTION)
    record(approval_curl_set_data_callback(handle, CURLOPT_WRITEFUNCTION, body), CURLOPT_WRITEFUNCTION)
  }

  mutating func set(_ option: CURLoption, to value: UnsafeMutableRawPointer?) {
    record(approval_curl_set_pointer(handle, option, value), option)
  }

  private mutating func set(_ option: CURLoption, to value: Int) {
    record(approval_curl_set_long(handle, option, value), option)
  }

  private mutating func set(_ option: CURLoption, to value: String?) {
    record(approval_curl_set_text(handle, option, value), option)
  }

  private mutating func record(_ result: CURLcode, _ option: CURLoption) {
    guard result != CURLE_OK, failure == nil else { return }
    let name = curl_easy_option_by_id(option).map { String(cString: $0.pointee.name) } ?? "\(option.rawValue)"
    failure = .unsendable("libcurl rejects \(name): \(String(cString: curl_easy_strerror(result)))")
  }
}

/// The request's header fields as libcurl's linked list.
final class HeaderLines {
  private(set) var first: UnsafeMutablePointer<curl_slist>?

  init(_ request: HTTPRequest) {
    for (name, value) in request.headers.fields {
      append(value.isEmpty ? "\(name);" : "\(name): \(value)")
    }
    // Disables two headers that libcurl adds by default: `Expect: 100-continue` and a form content type.
    append("Expect:")
    if request.headers["Content-Type"] == nil { append("Content-Type:") }
  }

  deinit { curl_slist_free_all(first) }

  private func append(_ line: String) {
    guard let longer = curl_slist_append(first, line) else { fatalError("no memory for a header line") }
    first = longer
  }
}
