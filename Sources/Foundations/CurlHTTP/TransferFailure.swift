// SPDX-License-Identifier: Apache-2.0
import CCurl
import COpenSSL
import CertificateTrust
import Glibc
import HTTP

/// The information from libcurl about a failed transfer.
struct TransferFailure {
  let result: CURLcode
  let text: String
  /// The result of OpenSSL's certificate verification (`X509_V_…`).
  let certificateError: Int32
  let isHeadComplete: Bool
  /// `errno` of the last failed system call for the connection; 0 if there was none.
  let systemError: Int32

  /// - Parameter hasNetwork: whether this machine has a network. Called only if no connection was attempted.
  func httpTransportError(
    for request: HTTPRequest, trust: ServerTrust, hasNetwork: () -> Bool = hasNetworkInterface
  ) -> HTTPTransportError {
    switch result {
    case CURLE_COULDNT_CONNECT where [ENETUNREACH, ENETDOWN].contains(systemError) && !hasNetwork(): .noNetwork(text)
    case CURLE_COULDNT_RESOLVE_HOST where !hasNetwork(): .noNetwork(text)
    case CURLE_PEER_FAILED_VERIFICATION
    where !trust.pins.isEmpty && CertificateVerifier.unknownIssuer.contains(certificateError):
      .untrusted("its key matches none of the pinned keys, and its issuer is unknown (\(text))")
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
      .untrusted(text)
    case CURLE_OPERATION_TIMEDOUT: .timedOut(after: request.deadline)
    // libcurl holds one header line of at most 100 kB. For a longer one it reports the first error (7.88) or the second
    // (8.6 and later).
    case CURLE_OUT_OF_MEMORY where !isHeadComplete, longLineRefused where !isHeadComplete:
      .tooLarge(limit: ResponseHead.maximumBytes)
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING: .malformed(text)
    case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED: .unsendable(text)
    default: .unreachable(text)
    }
  }
}

/// `CURLE_TOO_LARGE`, which is missing in headers before 8.6.
private let longLineRefused = CURLcode(rawValue: 100)
