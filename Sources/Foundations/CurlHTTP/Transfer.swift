// SPDX-License-Identifier: Apache-2.0
import CCurl
import CertificateTrust
import HTTP

/// One request in progress: a libcurl easy handle and the callbacks that fill its buffer. Used only on the HTTP
/// client's thread.
final class Transfer {
  let handle: UnsafeMutableRawPointer
  let order: TransferOrder
  /// The time at which the transfer fails; nil once the head of a stream is complete.
  private(set) var deadline: ContinuousClock.Instant?

  private var head = ResponseHead()
  /// The reason why a callback stopped the transfer. libcurl reports only that it was stopped.
  private var refusal: HTTPTransportError?
  /// The number of bytes that libcurl had sent when it last began to send the request; nil before.
  private var bytesBefore: Int?
  private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
  private let headerLines: HeaderLines
  private let certificateVerifier: CertificateVerifier

  init(_ order: TransferOrder, verifier: CertificateVerifier) throws(HTTPTransportError) {
    guard let handle = curl_easy_init() else { throw .unsendable("libcurl has no memory for a transfer") }
    self.handle = handle
    self.order = order
    self.certificateVerifier = verifier
    deadline = order.deadline
    errorText.pointee = 0
    headerLines = HeaderLines(order.request)
    var options = TransferOptions(handle: handle)
    options.setTransport(connectWithin: order.request.deadline)
    options.setTrust(verifier)
    options.setRequest(order.request, headerLines: headerLines)
    options.set(CURLOPT_ERRORBUFFER, to: errorText)
    options.setCallbacks(
      context: Unmanaged.passUnretained(self).toOpaque(),
      start: { context, _, _, _, _ in
        guard let context else { return CURL_PREREQFUNC_ABORT }
        let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        return transfer.maySend() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
      },
      header: { bytes, _, count, context in received(bytes, count, context) { $0.takeHead($1) } },
      body: { bytes, _, count, context in received(bytes, count, context) { $0.takeBody($1) } })
    if let failure = options.failure { throw failure }
  }

  deinit {
    curl_easy_cleanup(handle)
    errorText.deallocate()
  }

  /// Resumes a paused transfer. May call the body callback before it returns.
  func resume() {
    curl_easy_pause(handle, CURLPAUSE_CONT)
  }

  func outcome(of result: CURLcode) -> Result<Void, HTTPTransportError> {
    if let refusal { return .failure(refusal) }
    guard result != CURLE_OK else { return .success(()) }
    var (verdict, systemError) = (0, 0)
    _ = approval_curl_get_long(handle, CURLINFO_SSL_VERIFYRESULT, &verdict)
    _ = approval_curl_get_long(handle, CURLINFO_OS_ERRNO, &systemError)
    let text = errorText.pointee == 0 ? String(cString: curl_easy_strerror(result)) : String(cString: errorText)
    let failure = TransferFailure(
      result: result, text: text, certificateError: Int32(truncatingIfNeeded: verdict),
      isHeadComplete: head.isComplete, systemError: Int32(truncatingIfNeeded: systemError))
    return .failure(failure.httpTransportError(for: order.request, trust: certificateVerifier.trust))
  }

  /// Called when there is a connection. libcurl takes a new one if a kept one ended before the response began; the
  /// server may have carried out the request nevertheless.
  /// - Returns: false if the request is not a GET and something of it was sent before.
  fileprivate func maySend() -> Bool {
    var bytes = 0
    _ = approval_curl_get_long(handle, CURLINFO_REQUEST_SIZE, &bytes)
    defer { self.bytesBefore = bytes }
    guard let before = bytesBefore, bytes > before, order.request.method != .get else { return true }
    refusal = .unreachable("the connection was lost before the response")
    return false
  }

  /// - Returns: the number of bytes consumed; any other number stops the transfer.
  fileprivate func takeHead(_ line: UnsafeRawBufferPointer) -> Int {
    do throws(HTTPTransportError) {
      guard try head.take(line: line) else { return line.count }
    } catch {
      refusal = error
      return 0
    }
    if order.deadlineScope == .headOnly { deadline = nil }
    var response = head.response
    response.certificateExpiry = certificateVerifier.expiry
    order.buffer.put(head: response)
    return line.count
  }

  /// - Returns: the number of bytes consumed, or the value that makes libcurl pause and offer the bytes again later.
  fileprivate func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    order.buffer.put(bytes) ? bytes.count : Int(CURL_WRITEFUNC_PAUSE)
  }
}

/// Calls the transfer from a libcurl callback. `size` is always 1, so `count` is the number of bytes.
private func received(
  _ bytes: UnsafeMutablePointer<CChar>?, _ count: Int, _ context: UnsafeMutableRawPointer?,
  _ take: (Transfer, UnsafeRawBufferPointer) -> Int
) -> Int {
  guard let context else { return 0 }
  let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  return take(transfer, UnsafeRawBufferPointer(start: bytes, count: count))
}
