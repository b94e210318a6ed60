import OpenPGP
import Secrets
import Testing

@Suite struct RoundTripTests {
  @Test func `what one seals the other opens`() throws {
    let one = try OpenPGPKey.generate(userID: "one")
    let other = try OpenPGPKey.generate(userID: "other")
    let message: [UInt8] = Array(repeating: 65, count: 1000)
    let sealed = try one.seal(message, to: other.certificate)
    #expect(try other.open(sealed, from: one.certificate) == message)
    print(
        for _ in 0..<20 {
          let k = try! OpenPGPKey(secret: other.secret); _ = try! k.open(sealed, from: one.certificate)
        }
      } / 20)
  }
}
