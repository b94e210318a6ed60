// SPDX-License-Identifier: Apache-2.0
import OpenPGP
import Testing

/// Certificates made by GnuPG, inside and outside the project's profile.
@Suite(.timeLimit(.minutes(5))) struct GnuPGCertificateTests {
  private let gpg: GnuPG

  init() throws { gpg = try GnuPG() }

  @Test("Refuses RSA") func refusesRSA() throws {
    let key = try gpg.generateKey("peer", "rsa2048", "sign,cert", "never")
    try gpg.run("--quick-add-key", key, "rsa2048", "encr", "never")
    expect(.unsupported("RSA key, expected EDDSA"), try gpg.export(key))
  }

  private func expect(_ error: OpenPGPError, _ bytes: [UInt8], at time: Int64? = nil) {
    #expect(throws: error) { try OpenPGPCertificate(parsing: bytes, at: time) }
  }

  @Test("Refuses certificates that cannot sign or cannot encrypt")
  func refusesCertificatesThatCannotSignOrCannotEncrypt() throws {
    let key = try gpg.generateKey("peer", "ed25519", "cert", "never")
    expect(.unsupported("0 subkeys"), try gpg.export(key))
    try gpg.run("--quick-add-key", key, "cv25519", "encr", "never")
    expect(.unsupported("key that may not sign"), try gpg.export(key))
    try gpg.run("--quick-add-key", key, "ed25519", "sign", "never")
    expect(.unsupported("2 subkeys"), try gpg.export(key))
  }

  @Test("Refuses secret keys and more than one") func refusesSecretKeysAndMoreThanOne() throws {
    let (one, other) = (try gpg.generateKey("one"), try gpg.generateKey("other"))
    expect(.unsupported("first packet of a key: 5"), try gpg.run("--export-secret-keys", one).output)
    expect(.unsupported("2 primary keys"), try gpg.export(one, other))
  }

  @Test("Refuses revoked certificates") func refusesRevokedCertificates() throws {
    let key = try gpg.generateKey("peer")
    _ = try OpenPGPCertificate(parsing: gpg.export(key))
    try gpg.revoke(key)
    expect(.certificateNotValid("revoked primary key"), try gpg.export(key))
  }

  @Test("Accepts several user IDs, and signatures by other keys") func acceptsSeveralUserIDsAndSignaturesByOtherKeys()
    throws
  {
    let (key, stranger) = (try gpg.generateKey("peer"), try gpg.generateKey("stranger"))
    try gpg.run("--quick-add-uid", key, "peer at work")
    try gpg.run("--local-user", stranger, "--quick-sign-key", key)
    #expect(try OpenPGPCertificate(parsing: gpg.export(key)).fingerprint == key)
  }

  /// A renewed certificate has signatures newer than its keys. They must be valid also with a clock that is behind.
  @Test("Expiration can be renewed, and is checked by the clock unless it is behind")
  func expirationCanBeRenewedAndIsCheckedByTheClockUnlessItIsBehind() throws {
    let year: Int64 = 31_536_000
    let key = try gpg.generateKey("peer", "future-default", "default", "seconds=1000")
    let listed = try gpg.run("--with-colons", "--list-keys").status
    let made = try #require(listed.first { $0.hasPrefix("pub") }.flatMap { Int64($0.split(separator: ":")[5]) })
    let short = try gpg.export(key)
    for clock in [0, made, made + 999] {
      #expect(try OpenPGPCertificate(parsing: short, at: clock).fingerprint == key, "\(clock)")
    }
    expect(.certificateNotValid("expired primary key"), short, at: made + 1001)

    try gpg.run("--faked-system-time", "\(made + 500)", "--quick-set-expire", key, "seconds=\(year)")
    let renewed = try gpg.export(key)
    for clock in [0, made, made + 1001, made + year] {
      #expect(try OpenPGPCertificate(parsing: renewed, at: clock).fingerprint == key, "\(clock)")
    }
    expect(.certificateNotValid("expired primary key"), renewed, at: made + 2 * year)
  }
}
