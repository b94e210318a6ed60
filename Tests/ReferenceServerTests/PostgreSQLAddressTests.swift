// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import TokenServerStore

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PostgreSQLAddressTests {
  @Test(
    "Accepted",
    arguments: [
      ("postgresql:///tokens", "postgresql:///tokens"),
      ("postgresql://ann:secret@localhost:5433/tokens", "postgresql://localhost:5433/tokens"),
      ("postgres://ann@/tokens?host=/run/postgresql", "postgresql:///run/postgresql/tokens"),
      ("postgresql://db.example/tokens?sslmode=verify-full", "postgresql://db.example/tokens"),
      ("postgresql:///tokens?connect_timeout=8", "postgresql:///tokens"),
    ])
  func accepted(text: String, shown: String) throws {
    #expect(try PostgreSQLAddress(text).publicName == shown)
  }

  @Test(
    "Refused, without the password in the error",
    arguments: [
      "", "sqlite:///secret", "postgresql://ann:secret@db.example/tokens", "postgresql://[::1/tokens?password=secret",
      "postgresql://ann:secret@localhost/", "postgresql://localhost,db.example/tokens?password=secret",
      "postgresql://localhost/tokens?nonsense=secret", "postgresql://localhost/t?hostaddr=10.0.0.5&password=secret",
      "postgresql:///t?service=secret", "postgresql:///t?password=secret\0", "postgresql:///t?connect_timeout=0",
      "postgresql:///t?connect_timeout=-1", "postgresql:///t?connect_timeout=9",
      "postgresql:///t?connect_timeout=secret", "postgresql://localhost,127.0.0.1/t?connect_timeout=5",
      "postgresql:///t?host=/a,/b,/c,/d,/e",
      "postgresql:///" + String(repeating: "t", count: 3000),
    ])
  func refused(text: String) {
    let error = #expect(throws: PostgreSQLAddress.AddressError.self) { try PostgreSQLAddress(text) }
    #expect(error?.description.contains("secret") == false)
  }

  @Test(
    "The time limits of all hosts together are at most 8 s",
    arguments: [
      ("localhost", 5), ("localhost,127.0.0.1", 4), ("localhost,127.0.0.1,[::1]", 2),
      ("localhost,localhost,localhost,localhost", 2),
    ])
  func connectTimeout(hosts: String, seconds: Int) throws {
    #expect(try PostgreSQLAddress("postgresql://\(hosts)/t").connectTimeout == seconds)
  }

  @Test(
    "Placeholders are numbered",
    arguments: [("?", "$1"), ("a = ? AND b IN (?, ?)", "a = $1 AND b IN ($2, $3)"), ("", "")])
  func placeholders(text: String, numbered: String) { #expect(Placeholders.numbered(text) == numbered) }
}
