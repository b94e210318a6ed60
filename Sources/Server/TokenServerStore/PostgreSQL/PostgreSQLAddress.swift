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
  /// The time limit of a connection to one host, in seconds.
  let connectTimeout: Int

  /// - Parameter text: `postgresql://[USER[:PASSWORD]@][HOST][:PORT]/DATABASE[?OPTION=VALUE&…]`, at most 2,000 bytes. A
  ///   host on another machine needs the option `sslmode`, because libpq's default uses TLS only if the server offers
  ///   it, and verifies nothing. At most four hosts; `connect_timeout`, for each, is at least 2 s, and at most 8 s for
  ///   all.
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
    connectTimeout = try Self.connectTimeout(options)
    guard options["dbname"]?.isEmpty == false else {
      throw AddressError(description: "the database URL names no database: postgresql://USER@HOST/DATABASE")
    }
    uri = text
    let port = options["port"].map { ":\($0)" } ?? ""
    publicName = "postgresql://\(options["host"] ?? options["hostaddr"] ?? "")\(port)/\(options["dbname"] ?? "")"
  }

  private static func connectTimeout(_ options: [String: String]) throws(AddressError) -> Int {
    let hosts = max(1, ["host", "hostaddr"].map { (options[$0] ?? "").count { $0 == "," } + 1 }.max() ?? 1)
    // Longer than 8 s, and the other servers take this one for ended while it tries the hosts. To libpq, 1 s is 2 s.
    let longest = 8 / hosts
    guard longest >= 2 else { throw AddressError(description: "the database URL names \(hosts) hosts; at most 4") }
    guard let seconds = options["connect_timeout"] else { return min(5, longest) }
    guard let seconds = Int(seconds), (2...longest).contains(seconds) else {
      throw AddressError(
        description: """
          connect_timeout of the database URL is a number of seconds from 2 to \(longest): at most 8 s for all hosts together
          """)
    }
    return seconds
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
