// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets

extension FakeServer {
  static let changeID = "00000000-0000-4000-8000-00000000000c"

  /// Accepts every login, and issues this refresh token at a PIN change.
  func serveChange(of next: SecretBytes, length: Int = 5, id: String = changeID) {
    let policy = PINPolicyDescription(
      length: length, maxRepeats: 2, sequencesAllowed: false, blockList: [], maxFailureCount: 3)
    let configuration = DeviceConfiguration(
      transports: [.sse], openPGPProfiles: [], minimumSoftwareVersion: "0", pinPolicy: policy, serverTimeMs: 1)
    on("/configuration") { _ in HTTPResponse(status: 200, body: JSON.encode(configuration)) }
    on("/oauth/token") { request in
      let isUser = String(decoding: request.body, as: UTF8.self).contains("grant-type%3Ajwt-bearer")
      let response = AccessTokenResponse(
        accessToken: isUser ? "U" : "D", expiresIn: 900, scope: isUser ? .user : .device,
        profileID: isUser ? "PROFIL" : nil)
      return HTTPResponse(status: 200, body: JSON.encode(response))
    }
    let signer = server
    on("/profiles/PROFIL/pin-changes") { request throws(HTTPTransportError) in
      guard let change = try? JSON.decode(PINChangeRequest.self, from: request.body),
        let binary = bytes(base64: change.ephemeralCertificate),
        let recipient = try? OpenPGPCertificate(parsing: binary),
        let sealed = try? signer.seal(next.withExposedSecret { Array($0) }, to: recipient)
      else { throw .malformed("not a change") }
      return HTTPResponse(
        status: 201, body: JSON.encode(PINChange(changeID: id, sealedToken: sealed.base64, expiresInMs: 600_000)))
    }
  }
}
