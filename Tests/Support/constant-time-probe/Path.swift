// SPDX-License-Identifier: Apache-2.0
import Cryptography
import PINProtection
import Secrets

/// The way of a PIN: from the keypad's reports to the input of the key derivation, and the questions that are asked
/// about it on the way.
func walk(_ typist: Typist) async throws {
  let pin = try await typist.type("24689")
  let again = try await typist.type("24689")
  let other = try await typist.type("24680")
  print("typed again, the same:", Secrecy.revealed("result of typing again", pin == again))
  print("typed again, another:", Secrecy.revealed("result of typing again", pin == other))

  let policy = try PINPolicy(length: 5, maxRepeats: 2, sequencesAllowed: false, blockList: ["24680", "12121", "1234"])
  for digits in ["24689", "24680", "13579", "98765", "11129", "55555"] {
    let ordinal = policy.brokenRule(of: try await typist.type(digits))
    print("rule broken by \(digits):", Secrecy.revealed("result of the policy", ordinal))
  }

  // scrypt's memory access depends on its input by design (RFC 7914 §2): the way ends at its door.
  pin.digits.withExposedSecret { Secrecy.reveal("input of the key derivation", $0) }
  let parameters = Scrypt.Parameters(cost: 16, blockSize: 8, parallelization: 1)
  let (token, binding) = (Random.secret(32), Random.secret(32))
  let wrapped = try WrappedToken.wrap(token, under: pin, binding: binding, parameters: parameters)
  let known = PIN(digits: SecretBytes(copying: Array("24689".utf8)))
  print("token unwrapped with the digits that were typed:", try wrapped.unwrap(with: known, binding: binding) == token)

  // The other side of the door, where a token judges PINs itself: the key that came of one.
  let (key, otherKey) = (Random.secret(32), Random.secret(32))
  key.withExposedSecret(Secrecy.hide)
  otherKey.withExposedSecret(Secrecy.hide)
  let commitment = KeyCommitment(to: key)
  print("commitment, the key:", Secrecy.revealed("result of the commitment", commitment.isValid(by: key)))
  print("commitment, another:", Secrecy.revealed("result of the commitment", commitment.isValid(by: otherKey)))
}

private func == (one: SecretBytes, other: SecretBytes) -> Bool { SecretBytes.constantTimeEqual(one, other) }
