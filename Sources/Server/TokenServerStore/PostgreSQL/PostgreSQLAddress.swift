// SPDX-License-Identifier: Apache-2.0
import CPostgreSQL

/// Where a PostgreSQL database is: a connection URI of libpq, which may contain a password.
package struct PostgreSQLAddress: Sendable, Equatable {
  package struct AddressError: Error, Equatable, CustomStringConvertible {
    package let description: String
  }

  /// Contains the password, if the URI has one: never print it.
  let uri: String
  /// The URI without user and password, to be shown.
  package let publicName: String

  /// - Parameter text: `postgresql://[USER[:PASSWORD]@][HOST][:PORT]/DATABASE[?OPTION=VALUE&…]`, at most 2,000 bytes. A
  ///   host on another machine needs the option `sslmode`, because libpq's default uses TLS only if the server offers
  ///   it, and verifies nothing. `connect_timeout` is 2 to 8 s.
  package init(_ text: String) throws(AddressError) {
    guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://"), text.utf8.count <= 2000,
      !text.utf8.contains(0)
    else {
      throw AddressError(description: "a database URL is postgresql://USER@HOST/DATABASE, at most 2000 bytes long")
    }
    let options = try Self.options(text)
    let hosts = ["host", "hostaddr"].flatMap {
      (options[$0] ?? "").split(separator: ",", omittingEmptySubsequences: false)
    }
    // A service is a file with more options.
    let isHere = options["service"] == nil && hosts.allSatisfy { Self.isThisMachine($0) }
    guard options["sslmode"] != nil || isHere else {
      throw AddressError(
        description: """
          the database URL names another machine and no TLS mode: append ?sslmode=verify-full&sslrootcert=FILE (with & \
          instead of ? if it has options)
          """)
    }
    // Longer than 8 s, and the other servers take this one for ended while it connects.
    guard let seconds = Int(options["connect_timeout"] ?? "5"), (2...8).contains(seconds) else {
      throw AddressError(description: "connect_timeout of the database URL is a number of seconds from 2 to 8")
    }
    guard options["dbname"]?.isEmpty == false else {
      throw AddressError(description: "the database URL names no database: postgresql://USER@HOST/DATABASE")
    }
    uri = text
    let port = options["port"].map { ":\($0)" } ?? ""
    publicName = "postgresql://\(options["host"] ?? options["hostaddr"] ?? "")\(port)/\(options["dbname"] ?? "")"
  }

  private static func isThisMachine(_ host: Substring) -> Bool {
    host.isEmpty || host.hasPrefix("/") || ["localhost", "127.0.0.1", "::1"].contains(host)
  }

  /// - Returns: what the URI sets.
  private static func options(_ uri: String) throws(AddressError) -> [String: String] {
    var complaint: UnsafeMutablePointer<CChar>?
    guard let list = PQconninfoParse(uri, &complaint) else {
      defer { PQfreemem(complaint) }
      // libpq quotes the URI with its password in some errors.
      throw AddressError(description: "the database URL cannot be read: see \"Connection URIs\" in PostgreSQL's manual")
    }
    defer { PQconninfoFree(list) }
    var options: [String: String] = [:]
    var next = list
    while let keyword = next.pointee.keyword {
      if let value = next.pointee.val { options[String(cString: keyword)] = String(cString: value) }
      next += 1
    }
    return options
  }
}
