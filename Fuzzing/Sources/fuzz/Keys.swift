// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenPGP
import Secrets

/// Keys for fuzzing only: signatures with them have no meaning outside this package.
enum Keys {
  static let device = orTrap { try P256PrivateKey() }
  /// The key that signs a push server's challenges.
  static let pushServer = orTrap { try RSAPrivateKey(bits: 2048) }
  /// The 32 bytes that an account at PingAM shares with its server.
  static let shared = SecretBytes(copying: [UInt8](repeating: 7, count: 32))

  /// The two keys for OpenPGP messages. They are constant, so that seeds can be messages to them.
  static let token = orTrap { try OpenPGPKey(secret: secret(tokenKey)) }
  static let server = orTrap { try OpenPGPKey(secret: secret(serverKey)) }

  private static func secret(_ base64: String) -> SecretBytes { SecretBytes(copying: bytes(base64: base64) ?? []) }
}

/// For calls that cannot fail here.
func orTrap<Value>(_ body: () throws -> Value) -> Value {
  do { return try body() } catch { fatalError("\(error)") }
}

private let tokenKey = """
  lFgEZZIAgBYJKwYBBAHaRw8BAQdAm56atSBKZZWms7d5mEuRP1Dydrf1o03HlByTBhSnV88AAQDdyCNpvtjjuyy37qYMNMANlUOMk7j/3QLlsUr7\
  v0OfLRIgtApmdXp6IHRva2VuiJAEExYIADgWIQSBgj8OcTWcUo3voisbx/7Z+pGXxgUCZZIAgAIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAK\
  CRAbx/7Z+pGXxj5WAP4/KfaG6bAbUUP0YZR64sYTBOz5pEgtxC5wthzUUX8MMgEAmdx0XBIE6vunAbANpdQq47ZGfVtYFGLy45NF4pQkaA2cXQRl\
  kgCAEgorBgEEAZdVAQUBAQdA0JI3gKJpbNjBj+EvY+6NNm0jV5C18o9R7KJmaWBAXhYDAQgHAAD/Tn99hEYIAOPasH3tNVGU4LXXn/9ebSmcWJ5b\
  B1Tuw0ARQ4h4BBgWCAAgFiEEgYI/DnE1nFKN76IrG8f+2fqRl8YFAmWSAIACGwwACgkQG8f+2fqRl8bBaQEApLdORecvaB8JnO6GzyazfFkeSorC\
  Y/oz2E5dZk4Q9PsA/RhFZ32NUJioWZLr+gU0mBxyJ9iLTF20FmDDW7yPXjML
  """
private let serverKey = """
  lFgEZZIAgBYJKwYBBAHaRw8BAQdAFhsg/Y0BChtmgVWYsVGx0j88PRpHLldkl1vWoFrCoc8AAQDq6JoGK8Uh+hWWQTCJAdOix7x3UTHFv88YWNJn\
  RUvLFw+DtAtmdXp6IHNlcnZlcoiQBBMWCAA4FiEEazUwgRpMDxX2yRxNLmn11aypoXsFAmWSAIACGwMFCwkIBwIGFQoJCAsCBBYCAwECHgECF4AA\
  CgkQLmn11aypoXuXTgD9HOAItUOQZX6sZ9v5Y/L1IlQIAkrVOITBdmUjZhlYx+QA/A6l7tzlRj3yWKZbXA30PB/fN3B5J/2gy1NWgbwesnYOnF0E\
  ZZIAgBIKKwYBBAGXVQEFAQEHQM9eO6xGiqO2ZlpVR7rUhBZ/mqGeb2aFe+Yyojz1lu1bAwEIBwAA/1Nwg0s8QQ8mLwW7lvX+Z/AQwEq+XhD1Jta/\
  qcSKx72gESKIeAQYFggAIBYhBGs1MIEaTA8V9skcTS5p9dWsqaF7BQJlkgCAAhsMAAoJEC5p9dWsqaF7EpkA/3v32ZMj3yjHRf8jxHUaH1SrelDS\
  QAmMpnH3UZ+LBlz4AQDJhd0StNEXnmkSR3WAwHdEoIvfRvaF9+pXRxKnq2ePDA==
  """
