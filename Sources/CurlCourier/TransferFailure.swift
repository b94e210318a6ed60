import CCurl
import COpenSSL
import CertificateTrust
import Courier

/// What libcurl says about a transfer that failed.
struct TransferFailure {
  let result: CURLcode
  let text: String
  /// OpenSSL's verdict on the certificate (`X509_V_…`).
  let certificateVerdict: Int32
  let isHeadComplete: Bool

  func courierError(for request: HTTPRequest, trust: ServerTrust) -> CourierError {
    switch result {
    case CURLE_PEER_FAILED_VERIFICATION
    where !trust.pins.isEmpty && CertificateJudge.unknownIssuer.contains(certificateVerdict):
      .untrusted("its key is none of the pinned ones, and its issuer is unknown (\(text))")
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
      .untrusted(text)
    case CURLE_OPERATION_TIMEDOUT: .timedOut(after: request.deadline)
    // libcurl holds one header line at a time, up to 100 kB, and calls more than that one (7.88) or the other (8.6 on).
    case CURLE_OUT_OF_MEMORY where !isHeadComplete, longLineRefused where !isHeadComplete:
      .tooLarge(limit: ResponseHead.maximumBytes)
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING: .malformed(text)
    case CURLE_URL_MALFORMAT, CURLE_LOGIN_DENIED: .unsendable(text)
    default: .unreachable(text)
    }
  }
}

/// `CURLE_TOO_LARGE`, which headers older than 8.6 do not have.
private let longLineRefused = CURLcode(rawValue: 100)
