// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import ServerTestSupport
import Testing

/// OpenPGP certificates of devices that expire, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CertificateExpiryTests {
  /// Made with GnuPG; valid until 2020-01-02.
  private static let expired =
    """
    mDMEXgvhABYJKwYBBAHaRw8BAQdAVlmQ5erUFg3u/zBRGNuAPn7mcb6tQ+6dElzQJzhUf8a0BGJvdGiIlgQTFggAPhYhBKd+uQqpcBovPq7PSJ\
    XQx06KhEVKBQJeC+EAAhsDBQkAAVGABQsJCAcCBhUKCQgLAgQWAgMBAh4BAheAAAoJEJXQx06KhEVKY8wBAJldYSx+oThqnaaYGryPfe/P8EIu\
    WjVK6OlMb856WixTAP0a43Jd/M7CKn+ROCfx5Dich4C+I2PJe84VvdeT0QQXB7g4BF4L4QASCisGAQQBl1UBBQEBB0DHYxHx+kfbebG2gFkbGU\
    uZ8qPGcS2jkhUZrM049aX5UgMBCAeIeAQYFggAIBYhBKd+uQqpcBovPq7PSJXQx06KhEVKBQJeC+EAAhsMAAoJEJXQx06KhEVKE2IBAI0T3Uf3\
    66nHLIImqDxxHOFUbieqmgiBAQ6mRV1hQ4gBAP0Y0MtgNxbXoOoncHP4pk0EdSNbt/EY6skrEJjYp9rCAA==
    """
  /// Made with GnuPG; valid until 2099-12-31.
  private static let expiring =
    """
    mDMEXgvhABYJKwYBBAHaRw8BAQdANqwwscONa3SEquMnfVxfRSTMDRMe8CeMzztkgscAzue0A2ZhcoiWBBMWCAA+FiEE8tG6NLfz6u/Zx6q8zw\
    9TCHldjDsFAl4L4QACGwMFCZZ5JIAFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQzw9TCHldjDu/YQEAhRw58xaycGUBs6rP2ec7+cIy2rWG\
    4brlX/2bRyJEawkBAIVxfV0T+IZFLITtlawbBWl9W9PVo1cq3Fz0B3u++GUDuDgEXgvhABIKKwYBBAGXVQEFAQEHQJnt3FYun/y/GcQfr8oPq1\
    kYSPamEZGHgzGI12jaEq52AwEIB4h4BBgWCAAgFiEE8tG6NLfz6u/Zx6q8zw9TCHldjDsFAl4L4QACGwwACgkQzw9TCHldjDtMcgEA4s2+df4k\
    lstpaKVxjhu7sCpxzdMVzrjnqJJvmnH26+8BANek57nm42UHWl+3hh3UQl2BvL6cJGa3BlRhTfzIxA0E
    """

  @Test("A certificate that expires is refused at the exchange of keys") func refused() throws {
    let server = try TokenServerProcess()
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    try device.activate(code).expect(200)
    for certificate in [Self.expired, Self.expiring] {
      let reply = try device.call(
        "PUT", "/device/v1/profiles/\(device.profileID)/mobile-auth",
        body: KeyExchangeRequest(openPGPCertificate: certificate), token: device.userToken)
      let problem = try reply.expect(400).decoded(Problem.self)
      #expect(problem.slug == .invalidRequest && problem.detail?.contains("must have no expiry") == true, "\(problem)")
    }
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
  }

  /// As an earlier version of the server may have stored one.
  @Test("With an enrolled certificate that has expired, requests can be denied; all else is refused until new keys")
  func stored() throws {
    let ready = try ReadyServer(
      configuration: """
        [[type]]
        name = "login"
        method = "push"
        request_expires_in = 600
        messages = { en = "Log in?" }
        """)
    let (server, device, portal) = (ready.server, ready.device, ready.portal)
    let started = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
      "--data", "callback_uri=https://portal.example/", server.url + "/oauth/api/v4/authenticate/user")
    let transaction = try #require(try started.expect(200).json["transaction_id"] as? String)
    let answers = [try device.answer(transaction, .accept), try device.answer(transaction, .deny)]
    let hex = try #require(bytes(base64: Self.expired)).lowercaseHex
    let isPostgreSQL = TestDeployment.database(of: server.directory) != nil
    try server.query("UPDATE profile SET certificate = " + (isPostgreSQL ? "'\\x\(hex)'" : "x'\(hex)'"))

    let path = "/device/v1/requests/\(transaction)"
    #expect(try device.call("GET", path + "/message").expect(409).slug == .keysNotExchanged)
    #expect(try device.acknowledgeKeys().expect(409).slug == .keysNotExchanged)
    // None counts as an invalid answer, of which five end the request.
    for answer in answers + answers + answers {
      #expect(try device.send(answer, to: transaction).expect(409).slug == .keysNotExchanged)
    }
    #expect(try device.pending().map(\.transactionID) == [transaction])
    let key = Random.uuid()
    let denied = try device.deny(transaction, .declined, key: key).expect(200).decoded(RequestStatus.self)
    #expect(denied.state == .rejected && denied.receipt != nil && denied.sealedReceipt == nil)
    #expect(try device.deny(transaction, .declined, key: key).expect(200).decoded(RequestStatus.self) == denied)
    #expect(try device.call("GET", path).expect(200).decoded(RequestStatus.self) == denied)

    try device.call("DELETE", "/device/v1/profiles/\(device.profileID)/mobile-auth").expect(204)
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
    #expect(!server.log.contains(" error token-server: "), "\(server.log)")
  }
}
